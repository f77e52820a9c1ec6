//! A store's clock that is moved by hand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::environment::StoreClock;

/// Stands still until it is moved; may be moved back, as a wall clock that is set can.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows `micros` since the Unix epoch.
    pub const fn at(micros: u64) -> Self {
        Self(AtomicU64::new(micros))
    }

    /// Shows `micros` since the Unix epoch from now on, earlier or later than before.
    pub fn set(&self, micros: u64) {
        self.0.store(micros, Ordering::SeqCst);
    }

    /// Moves on by `by`, to the microsecond; what is finer is cut off.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_micros() as u64, Ordering::SeqCst);
    }
}

impl StoreClock for ManualClock {
    fn micros(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_shows_what_it_was_set_to() {
        let clock = ManualClock::at(5);
        clock.advance(Duration::from_nanos(2_999));
        assert_eq!(clock.micros(), 7);
        clock.set(1);
        assert_eq!(clock.micros(), 1);
    }
}
