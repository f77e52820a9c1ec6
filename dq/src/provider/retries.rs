//! How long the provider waits for an answer and between repeats, and the repeats of a query.

use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;

use super::error::{Failed, FailureReason};
use super::request::Deadline;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::store::{StoreError, no_answer};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);

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
        if waited >= self.call_timeout {
            return no_answer(waited, Some("call_timeout"));
        }
        let (said, whole) = (no_answer(waited, None), format_duration(self.call_timeout));
        format!("{said}, on a connection that blocked threads of this program may hold up (`call_timeout` is {whole})")
    }

    /// Counts a failure and returns the pause before the next try, which is no longer than an answer may take.
    pub(super) fn pause_after_failure(&mut self, environment: &Environment) -> Duration {
        let pause = environment.growing_pause(FIRST_PAUSE, MAX_PAUSE.min(self.call_timeout), self.failures, 2);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    pub(super) const fn succeeded(&mut self) {
        self.failures = 0;
    }
}

/// Asks the store until it answers, no repeat can help, or the time is over. The store may have done what a try asked whose answer did
/// not come; then the result of a call that changes something is *unknown*, whatever the later ones say (rule 18). `ask` gets the
/// number of tries so far, and `silent` makes the error of one that has no answer, from how long it had and what says so.
pub(super) async fn repeat<T, A: Future<Output = Result<T, StoreError>>>(
    environment: &Environment,
    mut retries: Retries,
    deadline: Deadline,
    changes: bool,
    ask: impl Fn(u32) -> A,
    silent: impl Fn(Duration, &'static str) -> StoreError,
) -> Result<T, Failed> {
    let (mut tries, mut refusals, mut doubt, mut last) = (0, 0, None, None);
    loop {
        let (began, whole) = (environment.now(), retries.call_timeout);
        let rest = deadline.at.saturating_sub(began);
        let (most, limit) = if whole <= rest { (whole, "call_timeout") } else { (rest, deadline.limit) };
        let answer = tokio::select! {
            biased;
            answer = ask(tries) => answer,
            () = environment.sleep_until(began.saturating_add(most)) => Err(silent(most, limit)),
        };
        let error = match answer {
            Ok(answer) => return Ok(answer),
            Err(error) => Arc::new(error),
        };
        if changes && !error.nothing_done() {
            doubt = Some(Arc::clone(&error));
        }
        // Only a change gives up on a store that stays full: a query is repeated until its time is over.
        refusals = if error.passes() || !changes { 0 } else { refusals + 1 };
        let now = environment.now();
        let again = now + retries.pause_after_failure(environment);
        if !error.is_outage() || refusals > 1 || again >= deadline.at {
            // A last try that had less time says less than the one before.
            let is_short = most < whole && now >= deadline.at;
            let error = last.filter(|_| is_short).unwrap_or(error);
            return Err(match doubt {
                Some(doubt) => Failed::Unknown(FailureReason::Store(doubt)),
                None => Failed::NotDone(FailureReason::Store(error)),
            });
        }
        environment.sleep_until(again).await;
        (tries, last) = (tries + 1, Some(error));
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
