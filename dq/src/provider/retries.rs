//! How long the provider waits for an answer, and between repeats.

use std::time::Duration;

use humantime::format_duration;

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

    /// Says that no answer came within this time, which is shorter than `call_timeout` where the connection may be stuck.
    pub(super) fn no_answer(&self, waited: Duration) -> String {
        let (waited_for, whole) = (format_duration(waited), format_duration(self.call_timeout));
        if waited >= self.call_timeout {
            return format!("no answer within {waited_for} (`call_timeout`)");
        }
        format!(
            "no answer within {waited_for}, on a connection that blocked threads of this program may hold up (`call_timeout` is {whole})"
        )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_silence_of_the_whole_time_is_blamed_on_the_setting() {
        let retries = Retries::new(&NodeSettings::default());
        assert_eq!(retries.no_answer(Duration::from_secs(2)), "no answer within 2s (`call_timeout`)");
        let early = retries.no_answer(Duration::from_millis(500));
        assert!(
            early.starts_with("no answer within 500ms, on") && early.ends_with("(`call_timeout` is 2s)"),
            "{early}"
        );
    }
}
