//! How long the provider waits for an answer, and between repeats.

use std::time::Duration;

use crate::config::NodeSettings;
use crate::environment::Environment;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The time limit of an answer, and the failures in a row.
#[derive(Debug, Clone)]
pub(super) struct Retries {
    pub(super) call_timeout: Duration,
    failures: u32,
}

impl Retries {
    pub(super) const fn new(settings: &NodeSettings) -> Self {
        Self { call_timeout: settings.call_timeout, failures: 0 }
    }

    /// Counts a failure and returns the pause before the next try, which is no longer than an answer may take.
    pub(super) fn pause_after_failure(&mut self, environment: &Environment) -> Duration {
        let pause = environment.growing_pause(FIRST_PAUSE, LONGEST_PAUSE.min(self.call_timeout), self.failures, 2);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    pub(super) const fn succeeded(&mut self) {
        self.failures = 0;
    }
}
