//! How long to wait: for an answer, between repeats, and in all.

use std::time::Duration;

use crate::config::NodeSettings;
use crate::environment::Environment;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The times of calls, and how often they failed in a row.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    pub(super) call_timeout: Duration,
    pub(super) call_total: Duration,
    failures: u32,
}

impl Pace {
    pub(super) const fn new(settings: &NodeSettings) -> Self {
        Self { call_timeout: settings.call_timeout, call_total: settings.call_total, failures: 0 }
    }

    /// The pause after one more failure: twice as long each, at most 1 s and at most the time for one answer, and of that
    /// between a half and the whole, so that many nodes do not come back together.
    pub(super) fn pause(&mut self, environment: &Environment) -> Duration {
        let longest = LONGEST_PAUSE.min(self.call_timeout);
        let half = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(longest) / 2;
        self.failures = self.failures.saturating_add(1);
        half + environment.random_below(half)
    }

    pub(super) const fn worked(&mut self) {
        self.failures = 0;
    }
}
