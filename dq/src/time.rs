//! Points in time as a store keeps them, and delays as people write them.
//!
//! A store decides everything by its own clock, in milliseconds. It rounds due times up and the current time down, so
//! rounding never makes a job early.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dq_grammar::{InvalidValue, parse_time};

mod delay;

pub use delay::IntoDelay;
#[doc(inline)]
pub use dq_grammar::{MAX_DELAY, MAX_UNIQUE, MIN_UNIQUE};

#[doc(hidden)]
pub use delay::Delay;

/// A point in time of the store's clock, in milliseconds since the Unix epoch. It converts from and to `SystemTime`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// The point in time `ms` milliseconds after the Unix epoch.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Rounds `micros` down to the millisecond, as dq does with the current time.
    #[doc(hidden)]
    pub const fn floor_micros(micros: u64) -> Self {
        Self(micros / 1000)
    }

    /// Rounds `micros` up to the millisecond, as dq does with every due time.
    #[doc(hidden)]
    pub const fn ceil_micros(micros: u64) -> Self {
        Self(micros.div_ceil(1000))
    }

    /// This point in time plus `duration`, rounded up to whole milliseconds. It saturates.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis_ceil(duration)))
    }

    /// This point in time minus `duration`, rounded down to whole milliseconds; at least the epoch.
    pub(crate) fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis_ceil(duration)))
    }

    /// How long after `earlier` this is; zero if it is not later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// A length of time in µs.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// `duration` in whole milliseconds, rounded up.
pub(crate) fn millis_ceil(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Rounded up to whole milliseconds.
pub(crate) fn ceil_millis(time: Duration) -> Duration {
    Duration::from_millis(millis_ceil(time))
}

/// Rounded down to whole milliseconds.
pub(crate) fn floor_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// How answers and stores write durations: in whole milliseconds, rounded up.
pub(crate) mod in_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::millis_ceil;

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(millis_ceil(*time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }

    #[expect(clippy::ref_option, reason = "the form that serde needs")]
    pub(crate) fn optional<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        time.map(millis_ceil).serialize(to)
    }

    pub(crate) fn read_optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}

impl From<SystemTime> for Timestamp {
    /// Rounds up. A time before the epoch becomes the epoch.
    fn from(time: SystemTime) -> Self {
        Self(time.duration_since(UNIX_EPOCH).map_or(0, millis_ceil))
    }
}

impl From<Timestamp> for SystemTime {
    fn from(at: Timestamp) -> Self {
        UNIX_EPOCH + Duration::from_millis(at.0)
    }
}

/// Reads RFC 3339 with its offset, such as `2026-12-01T12:00:00+05:30`; a part of a millisecond rounds up. A space may stand for the `T`, and
/// ` UTC` for the `Z`. A number is milliseconds since the Unix epoch, from 10<sup>11</sup> on: a smaller one would be seconds, and is
/// an error.
impl FromStr for Timestamp {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        parse_time(text).map(Self)
    }
}

/// Shows RFC 3339 in UTC with milliseconds, for example `2026-11-21T12:00:00.250Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LAST: u64 = 253_402_300_799_999; // the end of the year 9999
        humantime::format_rfc3339_millis(Self(self.0.min(LAST)).into()).fmt(f)
    }
}

/// Shows what [`Display`](fmt::Display) shows.
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_time_rounds_up_and_now_rounds_down() {
        assert_eq!(Timestamp::ceil_micros(1_001), Timestamp::from_millis(2));
        assert_eq!(Timestamp::ceil_micros(1_000), Timestamp::from_millis(1));
        assert_eq!(Timestamp::floor_micros(1_999), Timestamp::from_millis(1));
        assert_eq!(Timestamp::from_millis(5).after(Duration::from_micros(1)), Timestamp::from_millis(6));
    }

    #[test]
    fn a_timestamp_reads_as_utc() {
        assert_eq!(Timestamp::from_millis(1_500).to_string(), "1970-01-01T00:00:01.500Z");
        assert_eq!(format!("{:?}", Some(Timestamp::from_millis(1_500))), "Some(1970-01-01T00:00:01.500Z)");
        assert!(Timestamp::from_millis(u64::MAX).to_string().starts_with("9999"));
    }

    #[test]
    fn a_timestamp_is_read_as_it_is_shown() {
        for at in [0, 1_500, 1_796_126_400_123, 253_402_300_799_999].map(Timestamp::from_millis) {
            assert_eq!(at.to_string().parse(), Ok(at));
        }
        assert_eq!("2026-12-01T12:00:00.500000+05:30".parse(), Ok(Timestamp::from_millis(1_796_106_600_500)));
        assert!("1796126400".parse::<Timestamp>().unwrap_err().to_string().contains("seconds since 1970"));
    }
}
