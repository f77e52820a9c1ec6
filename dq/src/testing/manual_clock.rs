//! A store's clock that a test sets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::environment::StoreClock;

/// A store's clock that stands still until a test moves it. It may go back, as a wall clock can.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Makes a clock that shows `micros` since the Unix epoch.
    pub const fn at(micros: u64) -> Self {
        Self(AtomicU64::new(micros))
    }

    /// Sets the clock to `micros` since the Unix epoch, earlier or later than before.
    pub fn set(&self, micros: u64) {
        self.0.store(micros, Ordering::SeqCst);
    }

    /// Advances the clock by `by`, rounded down to the microsecond.
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
    fn a_manual_clock_shows_the_time_it_was_set_to() {
        let clock = ManualClock::at(5);
        clock.advance(Duration::from_nanos(2_999));
        assert_eq!(clock.micros(), 7);
        clock.set(1);
        assert_eq!(clock.micros(), 1);
    }
}
