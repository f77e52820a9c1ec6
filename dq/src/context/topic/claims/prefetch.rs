//! Prefetch: how many jobs to claim beyond those that can start at once. That is as many as ended lately, so that a fast topic
//! does not wait for the store between two jobs, and a slow one does not hoard.

use std::time::Duration;

use crate::store::step::MOST_JOBS;

/// As many jobs as ended within a window of this length wait beside those that run.
const WINDOW: Duration = Duration::from_millis(50);

/// How many runs ended in this window and in the one before.
#[derive(Debug)]
pub(super) struct Prefetch {
    window_start: Duration,
    ended: usize,
    ended_before: usize,
}

impl Prefetch {
    pub(super) const fn new(now: Duration) -> Self {
        Self { window_start: now, ended: 0, ended_before: 0 }
    }

    /// So many jobs have ended.
    pub(super) fn ended(&mut self, jobs: usize, now: Duration) {
        self.advance(now);
        self.ended += jobs;
    }

    /// How many jobs to claim beyond those that can start at once.
    pub(super) fn ahead(&mut self, now: Duration) -> usize {
        self.advance(now);
        self.ended_before.min(MOST_JOBS)
    }

    fn advance(&mut self, now: Duration) {
        let windows = now.saturating_sub(self.window_start).as_millis() / WINDOW.as_millis();
        if windows > 0 {
            self.ended_before = if windows == 1 { self.ended } else { 0 };
            self.ended = 0;
            self.window_start = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn as_many_are_taken_ahead_as_ended_lately() {
        let mut prefetch = Prefetch::new(Duration::ZERO);
        (0..20).for_each(|ms| prefetch.ended(1, ms * MS));
        assert_eq!(prefetch.ahead(40 * MS), 0, "the window is not over");
        assert_eq!(prefetch.ahead(60 * MS), 20);
        (61..64).for_each(|ms| prefetch.ended(1, ms * MS));
        assert_eq!(prefetch.ahead(110 * MS), 3, "those of one window only");
        assert_eq!(prefetch.ahead(400 * MS), 0, "nothing ended since");
    }
}
