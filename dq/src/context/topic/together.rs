//! Together: one line of the log for what many jobs share.
//!
//! A batch that fails as a whole is one line, not one for each of its jobs. A warning that every job could repeat comes once a
//! minute.

use std::time::Duration;

use super::Topic;
use crate::job::{Cause, JobId};
use crate::store::WARNING_PAUSE;

/// How many of its jobs the line about a batch names.
const MOST_NAMED: usize = 3;

/// What the topic knows of its lines.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The jobs of a batch fail together, just now.
    pub(super) together: Option<Together>,
    /// Handlers blocked their threads.
    pub(super) blocked: Warned,
    /// Processes died.
    pub(super) crashed: Warned,
}

/// When a warning was logged last.
#[derive(Debug, Default)]
pub(super) struct Warned(Option<Duration>);

impl Warned {
    /// Whether it is time to warn again; then it counts as done.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = self.0.is_none_or(|last| now >= last + WARNING_PAUSE);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

/// The failures of the jobs of a batch.
#[derive(Debug)]
pub(super) struct Together {
    jobs: usize,
    /// The first of them.
    named: Vec<JobId>,
    /// The fewest that a job has; `None`: only `retry_delay` knows.
    attempts_left: Option<u32>,
    cause: Cause,
    error: String,
}

impl Default for Together {
    fn default() -> Self {
        Self { jobs: 0, named: Vec::new(), attempts_left: None, cause: Cause::Error, error: String::new() }
    }
}

impl Together {
    /// Notes that a job failed.
    pub(super) fn add(&mut self, id: &JobId, attempts_left: Option<u32>, cause: Cause, error: &str) {
        if self.jobs == 0 {
            (self.cause, self.error) = (cause, error.to_owned());
        }
        if self.named.len() < MOST_NAMED {
            self.named.push(id.clone());
        }
        self.jobs += 1;
        self.attempts_left = self.attempts_left.into_iter().chain(attempts_left).min();
    }
}

impl Topic {
    /// Runs `end`, which ends so many jobs of one batch, and logs in one line what they share.
    pub(super) fn report_together(&mut self, jobs: usize, end: impl FnOnce(&mut Self)) {
        if jobs < 2 {
            return end(self);
        }
        self.reports.together = Some(Together::default());
        end(self);
        let Some(Together { jobs: jobs @ 1.., named, attempts_left, cause, error }) = self.reports.together.take()
        else {
            return;
        };
        let (topic, named) = (&self.parts.key.topic, named.iter().map(JobId::as_str).collect::<Vec<_>>());
        if attempts_left.is_some_and(|left| left <= 1) {
            tracing::warn!(%topic, jobs, first = ?named, attempts_left, %cause, error, "a batch failed, and jobs of it have one attempt left, or none");
        } else {
            tracing::info!(%topic, jobs, first = ?named, attempts_left, %cause, error, "a batch failed, and its jobs are retried");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_comes_once_a_minute() {
        let mut warned = Warned::default();
        let due = [0, 1, 59, 60, 61, 119, 120].map(|second| warned.is_due(Duration::from_secs(second)));
        assert_eq!(due, [true, false, false, true, false, false, true]);
    }
}
