//! Retry: when a failed job runs again, and what happens when no attempt is left.
//!
//! The store learns that a job is exhausted before `final_retry` is called (rule 15). If the node dies in between, the next
//! claim calls `final_retry` again and never `on_due`.

use std::time::Duration;

use super::Outcomes;
use crate::context::topic::moment::{Effect, Moment};
use crate::context::topic::stage::{HeldJob, Stage};
use crate::job::{Cause, JobId, RetryPolicy, Token};
use crate::listener::{Failure, OnTimeout, RetryDelay};
use crate::store::RequestKind;
use crate::store::step::{Change, Exhaust, NoteVerdict};
use crate::time::LONGEST_DELAY;

/// What follows a failure.
#[derive(Debug)]
pub(super) struct Next {
    /// The delay before the next attempt; `None`: there is none.
    pub(super) delay: Option<Duration>,
    /// How many attempts there are in all; `None`: only the listener's `retry_delay` knows.
    pub(super) attempts: Option<u32>,
    /// The handler has given the job up.
    pub(super) is_fatal: bool,
}

impl Next {
    /// How many attempts are left after this failed one; `None`: only `retry_delay` knows.
    pub(super) fn attempts_left(&self, attempt: u16) -> Option<u32> {
        self.delay.map_or(Some(0), |_| self.attempts.map(|of| of.saturating_sub(attempt.into())))
    }
}

/// How many `exhaust` requests may be in flight.
const MOST_EXHAUSTS: usize = 32;

impl Outcomes {
    /// A handler failed: logs and counts that, and decides what follows.
    pub(super) fn on_failed(&mut self, id: &JobId, failure: Failure, asked: RetryDelay) {
        self.parts.stats.failed(Some(failure.cause));
        if let Some(next) = self.spend_attempt(id, failure, asked) {
            self.report_failure(id, &next);
        }
    }

    /// The job is retried after its delay or, if no attempt is left, goes on to `final_retry`. `asked` is what the listener's
    /// `retry_delay` says.
    pub(super) fn spend_attempt(&mut self, id: &JobId, failure: Failure, asked: RetryDelay) -> Option<Next> {
        let job = self.held.get(id)?;
        let failed = u32::from(job.metadata.attempts) + 1;
        let undecodable = failure.cause == Cause::Decode;
        let next = match undecodable || failure.is_fatal() {
            true => Next { delay: None, attempts: None, is_fatal: failure.is_fatal() },
            false => self.next(job, failed, failure.cause, asked),
        };
        let delay = next.delay;
        let metadata = self.held.metadata_mut(id)?;
        metadata.attempts = u16::try_from(failed).unwrap_or(u16::MAX);
        metadata.cause = Some(failure.cause);
        metadata.error = Some(failure.message);
        metadata.exhausted = delay.is_none();
        let stage = match delay {
            Some(delay) => Stage::settling(Change::Retry(delay)),
            None if undecodable => Stage::settling(Change::Dead),
            None => Stage::Exhausting { sent: false },
        };
        self.held.set(id, stage);
        Some(next)
    }

    /// What follows. The job's own policy overrides the listener's function, which overrides the settings.
    fn next(&self, job: &HeldJob, failed: u32, cause: Cause, asked: RetryDelay) -> Next {
        let random = self.parts.environment.random();
        let by = |policy: &RetryPolicy| Next {
            delay: policy.delay(failed, random),
            attempts: Some(policy.retries().saturating_add(1)),
            is_fatal: false,
        };
        let next = match job.own_policy() {
            Some(policy) => by(&policy),
            None => match asked {
                RetryDelay::BySettings | RetryDelay::NotWritten => by(&self.parts.topic.retry),
                RetryDelay::By(policy) => by(&policy),
                RetryDelay::After(delay) => {
                    Next { delay: Some(delay.min(LONGEST_DELAY)), attempts: None, is_fatal: false }
                }
                RetryDelay::Exhausted => Next { delay: None, attempts: None, is_fatal: false },
            },
        };
        let at_once = cause == Cause::Timeout && self.parts.topic.on_timeout == OnTimeout::Immediate;
        if at_once { Next { delay: next.delay.map(|_| Duration::ZERO), ..next } } else { next }
    }

    /// Sends an `exhaust` for each exhausted job, several in flight at a time, so that a topic whose jobs all fail does not
    /// wait for a round trip per job.
    pub(crate) fn exhaust(&mut self, moment: &mut Moment) -> Option<Duration> {
        while moment.can_send_beside(RequestKind::Exhaust, MOST_EXHAUSTS) {
            let Some((id, token, metadata)) = self.held.next_to_exhaust() else { break };
            let (last_seen, lease) = (moment.flight.last_seen(), self.parts.node.lease);
            moment.send(Exhaust { last_seen, lease, id, token, metadata });
        }
        moment.pause_end(RequestKind::Exhaust)
    }

    /// The store has noted that no attempt is left. Unless `final_retry` `may_start`, the job goes back.
    pub(crate) fn on_exhausted(
        &mut self,
        id: JobId,
        token: Token,
        note: &NoteVerdict,
        may_start: bool,
        moment: &mut Moment,
    ) {
        if !self.held.under(&id, token).is_some_and(|job| matches!(job.stage(), Stage::Exhausting { .. })) {
            return;
        }
        match note {
            NoteVerdict::Stale => drop(self.held.remove(&id)),
            NoteVerdict::Done if may_start => moment.push(Effect::FinalRetry(id)),
            NoteVerdict::Done | NoteVerdict::Ended => self.held.roll_back(&id),
        }
    }
}
