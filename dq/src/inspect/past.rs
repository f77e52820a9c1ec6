//! What is behind: how many jobs ran, and how late.

use std::time::Duration;

use serde::Serialize;

use super::inspector::Inspector;
use super::timeline::Scale;
use crate::provider::CallError;
use crate::store::{MINUTE, MinuteCounts};
use crate::time::{Timestamp, in_millis};

/// How many minutes an hour has.
const HOUR: u64 = 60;

/// What a topic counted of itself (`statistics = true`): all lists end with the present minute or hour, which is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct RunStats {
    /// The store's clock.
    pub now: Timestamp,
    /// The last 60 minutes of UTC.
    pub minutes: StatsBuckets,
    /// The last 24 hours of UTC.
    pub hours: StatsBuckets,
}

/// The minutes of an hour, or the hours of a day.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct StatsBuckets {
    /// All of it.
    pub whole: StatsBucket,
    /// Its parts, the earliest first.
    pub spans: Vec<StatsBucket>,
}

/// What a topic did in a span of time. Only the nodes whose topic has `statistics = true` are counted. Lateness is the time from due to
/// claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct StatsBucket {
    /// The first moment.
    pub from: Timestamp,
    /// The first moment behind it.
    pub to: Timestamp,
    /// Due jobs that nodes claimed. A job that a node gave back counts again when it is claimed again.
    pub claimed: u64,
    /// Runs that ended with an outcome of their own, ticks of schedules among them. A rollback, a crash and a job that expired
    /// before it ran are none.
    pub ran: u64,
    /// Of these, runs that ended with an ack.
    pub done: u64,
    /// Of these, runs that failed: those that are retried, and those that made their job DEAD.
    pub failed: u64,
    /// Jobs that became DEAD, by their outcome or by crashes.
    pub dead: u64,
    /// How late the claimed jobs were on average; `None` if there were none.
    #[serde(serialize_with = "in_millis::optional")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub mean_lateness: Option<Duration>,
    /// Half of the claimed jobs were at most this late. It is an estimate, never too low: 10 ms, 100 ms, 1 s, 10 s, 1 min, 10 min or
    /// 1 h, or the lateness of the latest job.
    #[serde(serialize_with = "in_millis::optional")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub p50_lateness: Option<Duration>,
    /// 99 of a hundred claimed jobs were at most this late; an estimate like that of half of them.
    #[serde(serialize_with = "in_millis::optional")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub p99_lateness: Option<Duration>,
    /// How late the latest of them was.
    #[serde(serialize_with = "in_millis::optional")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub max_lateness: Option<Duration>,
}

impl StatsBucket {
    /// The sum of what was counted in so many minutes from one on.
    fn sum(counted: &[MinuteCounts], from: u64, minutes: u64) -> Self {
        let counts = MinuteCounts::sum(counted, from, from + minutes - 1);
        let at = |minute: u64| Timestamp::from_millis(minute.saturating_mul(MINUTE));
        Self {
            from: at(from),
            to: at(from + minutes),
            claimed: counts.claimed,
            ran: counts.ran,
            done: counts.done,
            failed: counts.failed,
            dead: counts.dead,
            mean_lateness: counts.mean_lateness(),
            p50_lateness: counts.lateness_of(50),
            p99_lateness: counts.lateness_of(99),
            max_lateness: (counts.claimed > 0).then(|| Duration::from_millis(counts.late_most)),
        }
    }
}

impl Inspector {
    /// Reads how many jobs of a topic ran, and how late, in each of the last 60 minutes and 24 hours; `None` where the topic kept no
    /// statistics for a day (`statistics = true` of a topic makes its nodes count). It costs two queries.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn run_stats(&self, topic: &str) -> Result<Option<RunStats>, CallError> {
        let provider = self.of(topic)?;
        let now = provider.overview(0).await?.counts.clock;
        let (from, to) = minutes_of(Scale::Hours, now);
        let counted = provider.statistics(from, to).await?;
        if counted.is_empty() {
            return Ok(None);
        }
        Ok(Some(RunStats {
            now,
            minutes: spans(&counted, Scale::Minutes, now),
            hours: spans(&counted, Scale::Hours, now),
        }))
    }

    /// Reads one scale of the [`run_stats`](Self::run_stats) up to `now`, for a program that looks at many topics. The answer is empty where
    /// the topic kept no statistics, and on the scale of days. It costs one query.
    /// [`TopicSummary::store_time`](super::TopicSummary::store_time) is a good `now`, and [`rates`](super::TopicSummary::rates) says
    /// whether the topic keeps statistics.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn past_of(&self, topic: &str, scale: Scale, now: Timestamp) -> Result<StatsBuckets, CallError> {
        let provider = self.of(topic)?;
        if scale == Scale::Days {
            return Ok(StatsBuckets::default());
        }
        let (from, to) = minutes_of(scale, now);
        Ok(spans(&provider.statistics(from, to).await?, scale, now))
    }
}

/// The minutes of a scale: from the first one to the present one.
fn minutes_of(scale: Scale, now: Timestamp) -> (u64, u64) {
    let present = now.as_millis() / MINUTE;
    let from = match scale {
        Scale::Minutes => present.saturating_sub(HOUR - 1),
        // The present hour is one of the 24.
        _ => (present / HOUR * HOUR).saturating_sub(23 * HOUR),
    };
    (from, present)
}

fn spans(counted: &[MinuteCounts], scale: Scale, now: Timestamp) -> StatsBuckets {
    let ((from, to), length) = (minutes_of(scale, now), if scale == Scale::Minutes { 1 } else { HOUR });
    let spans = (from..=to).step_by(length as usize).map(|from| StatsBucket::sum(counted, from, length));
    StatsBuckets { whole: StatsBucket::sum(counted, from, to - from + 1), spans: spans.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(minute: u64, claimed: u64, late: u64) -> MinuteCounts {
        let mut counts = MinuteCounts { minute, ..MinuteCounts::default() };
        (counts.claimed, counts.ran, counts.late_sum, counts.late_most) = (claimed, claimed, late * claimed, late);
        counts.late[0] = claimed;
        counts
    }

    #[test]
    fn an_hour_has_what_its_minutes_have_and_no_others() {
        let counted = [minute(59, 1, 5), minute(60, 2, 4), minute(119, 3, 7), minute(120, 4, 9)];
        let hour = StatsBucket::sum(&counted, 60, 60);
        assert_eq!((hour.from.as_millis(), hour.to.as_millis()), (60 * MINUTE, 120 * MINUTE));
        assert_eq!((hour.claimed, hour.ran, hour.max_lateness), (5, 5, Some(Duration::from_millis(7))));
        assert_eq!(hour.mean_lateness, Some(Duration::from_millis(5)), "29 ms of 5 jobs");
        assert_eq!(StatsBucket::sum(&counted, 61, 1).max_lateness, None);
    }
}
