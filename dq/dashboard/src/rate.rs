//! Bounds on how often something happens.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A bucket of permits that refills steadily.
#[derive(Debug)]
pub(crate) struct Rate {
    a_second: f64,
    most: f64,
    state: Mutex<(f64, Instant)>,
}

impl Rate {
    pub(crate) fn new(a_second: u32, most: u32) -> Self {
        Self { a_second: a_second.into(), most: most.into(), state: Mutex::new((most.into(), Instant::now())) }
    }

    pub(crate) fn per_minute(most: u32) -> Self {
        Self { a_second: f64::from(most) / 60.0, ..Self::new(1, most) }
    }

    /// Takes a permit, if there is one.
    pub(crate) fn take(&self) -> bool {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, then) = *state;
        let refilled = (left + now.saturating_duration_since(then).as_secs_f64() * self.a_second).min(self.most);
        let is_there = refilled >= 1.0;
        *state = (if is_there { refilled - 1.0 } else { refilled }, now);
        is_there
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bucket_is_used_up_and_refills() {
        let (rate, now) = (Rate::new(2, 3), Instant::now());
        assert_eq!([0; 4].map(|_| rate.take_at(now)), [true, true, true, false]);
        assert_eq!([0; 3].map(|_| rate.take_at(now + Duration::from_secs(1))), [true, true, false]);
        assert_eq!([0; 4].map(|_| rate.take_at(now + Duration::from_secs(60))), [true, true, true, false]);
    }
}
