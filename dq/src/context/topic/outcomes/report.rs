//! Report: what the log says of failures and of the ends of runs. `docs/guide/logs.md` has the table of levels.
//!
//! A failed attempt is one line, when it is known what follows. A DEAD job is one more line, when the store has taken that. A
//! decoder's text quotes the payload, so it is kept with the job and stays out of the log. A batch that fails as a whole is one
//! line, not one for each of its jobs.

use humantime::format_duration;

use super::Outcomes;
use super::decide::Next;
use crate::context::topic::stage::HeldJob;
use crate::job::{Cause, JobId};
use crate::listener::{Failure, log_text};
use crate::store::step::{Change, Verdict};

/// What became of a job, in a word.
const fn word(change: &Change) -> &'static str {
    match change.alone() {
        Change::Ack | Change::Then(..) => "acked",
        Change::Rejoin(_) => "rejoined",
        Change::Retry(_) => "retried",
        Change::Rollback => "given back",
        Change::Park => "parked",
        Change::Dead => "DEAD",
        Change::Drop => "dropped",
        Change::Tick(_) => "ticked",
    }
}

/// How many of its jobs the line about a batch names.
const MOST_NAMED: usize = 3;

/// The failures of the jobs of a batch.
#[derive(Debug, Default)]
pub(super) struct Together {
    jobs: usize,
    /// The first of them.
    named: Vec<JobId>,
    /// The fewest that a job has; `None`: only `retry_delay` knows.
    attempts_left: Option<u32>,
    /// Those of the first; `None`: no job has failed.
    cause: Option<Cause>,
    error: String,
}

impl Together {
    /// Notes that a job failed.
    pub(super) fn add(&mut self, id: &JobId, attempts_left: Option<u32>, cause: Cause, error: &str) {
        if self.cause.is_none() {
            (self.cause, self.error) = (Some(cause), error.to_owned());
        }
        if self.named.len() < MOST_NAMED {
            self.named.push(id.clone());
        }
        self.jobs += 1;
        self.attempts_left = self.attempts_left.into_iter().chain(attempts_left).min();
    }
}

impl Outcomes {
    /// So many jobs of one batch end now. What they share is one line, in [`report_together`](Self::report_together).
    pub(super) fn begin_together(&mut self, jobs: usize) {
        self.together = (jobs > 1).then(Together::default);
    }

    /// Logs in one line what the jobs share that have failed since [`begin_together`](Self::begin_together).
    pub(super) fn report_together(&mut self) {
        let Some(Together { jobs, named, attempts_left, cause: Some(cause), error }) = self.together.take() else {
            return;
        };
        let (topic, named) = (&self.parts.key.topic, named.iter().map(JobId::as_str).collect::<Vec<_>>());
        if attempts_left.is_some_and(|left| left <= 1) {
            tracing::warn!(%topic, jobs, first = ?named, attempts_left, %cause, error, "a batch failed, and jobs of it have one attempt left, or none");
        } else {
            tracing::info!(%topic, jobs, first = ?named, attempts_left, %cause, error, "a batch failed, and its jobs are retried");
        }
    }

    /// Logs a failed attempt: the last but one, and what follows it, at WARN. The job has its new metadata. What it shares with
    /// other jobs of its batch is one line for all of them, after [`report_together`](Self::report_together).
    pub(super) fn report_failure(&mut self, job: &HeldJob, next: &Next) {
        let (topic, id, fence, metadata) = (&self.parts.key.topic, &job.id, job.token.fence.0, &job.metadata);
        let (attempt, of, cause) = (metadata.attempts, next.attempts, metadata.cause.unwrap_or(Cause::Error));
        let error = log_text(cause, metadata.error.as_deref().unwrap_or_default());
        let retry_in = next.delay.map(format_duration);
        if let Some(together) = &mut self.together {
            together.add(id, next.attempts_left(attempt), cause, error);
            let retry_in = retry_in.as_ref().map(tracing::field::display);
            tracing::debug!(%topic, job.id = %id, attempt, of, retry_in, fence, %cause, "the handler of the batch failed");
            return;
        }
        let Some(retry_in) = retry_in else {
            if cause == Cause::Decode {
                return; // no handler ran: the line about the DEAD job says all
            }
            if next.is_fatal {
                tracing::warn!(%topic, job.id = %id, attempt, fatal = true, fence, %cause, error, "the handler failed, and gave the job up: `final_retry` follows");
            } else {
                tracing::warn!(%topic, job.id = %id, attempt, of, fence, %cause, error, "the handler failed, and no attempt is left: `final_retry` follows");
            }
            return;
        };
        if next.attempts_left(attempt).is_some_and(|left| left <= 1) {
            tracing::warn!(%topic, job.id = %id, attempt, of, %retry_in, fence, %cause, error, "the handler failed, and one attempt is left");
        } else {
            tracing::info!(%topic, job.id = %id, attempt, of, %retry_in, fence, %cause, error, "the handler failed, and is retried");
        }
    }

    /// Logs that `final_retry` or `process_unacked` failed.
    pub(super) fn report_other_failure(&self, job: &HeldJob, failure: &Failure, is_final: bool) {
        let (topic, id, fence, cause) = (&self.parts.key.topic, &job.id, job.token.fence.0, failure.cause);
        let error = failure.log_text();
        if is_final {
            tracing::warn!(%topic, job.id = %id, fence, %cause, error, "`final_retry` failed; the job becomes DEAD all the same");
        } else {
            tracing::info!(%topic, job.id = %id, fence, %cause, error, "`process_unacked` failed; the job stays UNACKED for another period");
        }
    }

    /// Logs the verdict on an outcome.
    pub(super) fn report_verdict(&self, job: &HeldJob, change: &Change, verdict: &Verdict) {
        let (topic, id, fence) = (&self.parts.key.topic, &job.id, job.token.fence.0);
        let (attempt, outcome) = (job.metadata.attempts, word(change));
        let verdict = match verdict {
            Verdict::Done => {
                tracing::debug!(%topic, job.id = %id, attempt, fence, outcome, verdict = "taken", "{outcome}");
                if *change.alone() == Change::Dead {
                    self.report_dead(job);
                }
                return;
            }
            Verdict::Stale => "stale",
            Verdict::Dropped => "dropped",
            Verdict::Later => "later",
            Verdict::Failed(_) => "failed",
        };
        tracing::debug!(%topic, job.id = %id, attempt, fence, outcome, verdict, "the store did not take an outcome");
    }

    /// Logs the end of a job that was given up.
    fn report_dead(&self, job: &HeldJob) {
        let (attempts, cause, error) = end(job);
        let (topic, id, fence) = (&self.parts.key.topic, &job.id, job.token.fence.0);
        let crashes = Some(job.crashes).filter(|crashes| *crashes > 0);
        tracing::error!(%topic, job.id = %id, attempts, crashes, fence, %cause, error, "the job is DEAD");
    }

    /// Logs that it is unknown whether an outcome took effect: an earlier sending of it had no answer (rule 10).
    pub(super) fn report_unknown(&self, job: &HeldJob, change: &Change, was_to_run: bool) {
        let (topic, id, fence) = (&self.parts.key.topic, &job.id, job.token.fence.0);
        match change.alone() {
            _ if was_to_run => {
                tracing::error!(%topic, job.id = %id, fence, "the ack on claim of this job had no answer; its handler does not start, and the job may be lost");
            }
            Change::Dead => {
                let (attempts, cause, error) = end(job);
                tracing::error!(%topic, job.id = %id, attempts, fence, %cause, error, "the job is DEAD, or another run has it: the store's answer was lost");
            }
            other => {
                tracing::debug!(%topic, job.id = %id, fence, outcome = word(other), "it is unknown whether this outcome counted: the store has taken it before, or another run has the job");
            }
        }
    }
}

/// The attempts, the cause and the last error of a job that was given up.
fn end(job: &HeldJob) -> (u16, Cause, &str) {
    let (cause, error) = job.last_failure();
    (job.metadata.attempts, cause, log_text(cause, error))
}
