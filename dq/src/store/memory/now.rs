//! The store's clock at one step: *now* rounds down to the millisecond, later times round up (rule 4).

use std::time::Duration;

use crate::time::Timestamp;

/// Microseconds since the Unix epoch on the store's clock, which a step reads once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now(u64);

impl Now {
    /// The moment `micros` after the Unix epoch.
    pub(crate) const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    pub(super) const fn micros(self) -> u64 {
        self.0
    }

    /// *Now* in milliseconds: everything due at this time or earlier is due.
    pub(super) const fn floor(self) -> Timestamp {
        Timestamp::floor_micros(self.0)
    }

    /// The due time of a job that is to be due after `delay`, never earlier. Without a delay it is due now.
    pub(super) fn after(self, delay: Duration) -> Timestamp {
        if delay.is_zero() {
            return self.floor();
        }
        let nanos = u128::from(self.0) * 1_000 + delay.as_nanos();
        Timestamp::from_millis(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// The time until `at`, to the microsecond; zero if `at` is past.
    pub(super) const fn until(self, at: Timestamp) -> Duration {
        Duration::from_micros(at.as_millis().saturating_mul(1_000).saturating_sub(self.0))
    }
}
