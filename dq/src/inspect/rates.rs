//! What runs at present.

use std::time::Duration;

use serde::Serialize;

use crate::store::{MINUTE, MinuteCounts};
use crate::time::{Timestamp, in_millis};

/// What a topic did in the last five to six minutes: five whole ones and the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Rates {
    /// How long that is.
    #[serde(serialize_with = "in_millis::serialize")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub over: Duration,
    /// Jobs that nodes claimed in that time.
    pub claimed: u64,
    /// Runs that ended.
    pub ran: u64,
    /// Of these, runs that failed.
    pub failed: u64,
    /// Half of the claimed jobs were at most this late; `None` if there were none. An estimate, see [`StatsBucket::p50_lateness`](super::StatsBucket::p50_lateness).
    #[serde(serialize_with = "in_millis::optional")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub p50_lateness: Option<Duration>,
    /// 99 of a hundred were at most this late.
    #[serde(serialize_with = "in_millis::optional")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub p99_lateness: Option<Duration>,
}

impl Rates {
    pub(super) fn new(now: Timestamp, recent: &MinuteCounts) -> Self {
        Self {
            over: now.since(Timestamp::from_millis(recent.minute.saturating_mul(MINUTE))),
            claimed: recent.claimed,
            ran: recent.ran,
            failed: recent.failed,
            p50_lateness: recent.lateness_of(50),
            p99_lateness: recent.lateness_of(99),
        }
    }

    /// How many of this number that is a minute: `rates.per_minute(rates.ran)`.
    pub fn per_minute(&self, number: u64) -> f64 {
        number as f64 * 60.0 / self.over.as_secs_f64().max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_the_time_that_has_passed() {
        let recent = MinuteCounts { minute: 7, claimed: 11, ran: 22, ..MinuteCounts::default() };
        let rates = Rates::new(Timestamp::from_millis(12 * MINUTE + MINUTE / 2), &recent);
        assert_eq!(rates.over, Duration::from_secs(330));
        assert!((rates.per_minute(rates.claimed) - 2.0).abs() < 1e-9, "{rates:?}");
        assert!((rates.per_minute(rates.ran) - 4.0).abs() < 1e-9, "{rates:?}");
    }
}
