//! Retry: when a failed job runs again, and what happens when no attempt is left.
//!
//! That a job is exhausted is written into the store before `final_retry` is called (rule 15): if the node dies in
//! between, the next claim calls `final_retry` again and never `on_due`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::topic::pipeline::RequestKind;
use super::topic::{HeldJob, Stage, Topic};
use crate::job::{Cause, JobId, Metadata, RetryPolicy, Sequence, Token};
use crate::listener::erased::Call;
use crate::listener::{Failure, OnTimeout, RetryDelay};
use crate::store::step::{Change, Exhaust, Note, Noted};
use crate::time::LONGEST_DELAY;

/// How many requests about exhausted jobs are under way at once.
const MOST_EXHAUSTS: usize = 32;

impl Topic {
    /// A run failed: retry it after its delay, or, when no attempt is left, go on to `final_retry`.
    pub(super) fn on_failure(&mut self, id: &JobId, failure: &Failure) {
        let Some(job) = self.held.get(id) else { return };
        let failed = u32::from(job.metadata.attempts) + 1;
        let undecodable = failure.cause == Cause::Decode;
        let delay = if undecodable { None } else { self.delay(job, failed, failure) };
        let metadata = Metadata {
            attempts: u16::try_from(failed).unwrap_or(u16::MAX),
            cause: Some(failure.cause),
            error: Some(failure.message.clone()),
            exhausted: delay.is_none(),
            ..job.metadata.clone()
        };
        self.held.set_metadata(id, metadata.clone());
        let stage = match delay {
            Some(delay) => Stage::settling(Change::Retry(delay), Some(metadata)),
            None if undecodable => Stage::settling(Change::Dead, Some(metadata)),
            None => Stage::Exhausting { asked: false },
        };
        self.held.set(id, stage);
    }

    /// The job's own policy goes before the listener's function, and that before the settings.
    fn delay(&self, job: &HeldJob, failed: u32, failure: &Failure) -> Option<Duration> {
        let random = self.parts.environment.random();
        let own = job.metadata.retry.as_deref().and_then(|text| text.parse::<RetryPolicy>().ok());
        let delay = match own {
            Some(policy) => policy.delay(failed, random),
            None => match self.listener_delay(failed, failure) {
                RetryDelay::BySettings => self.parts.topic.retry.delay(failed, random),
                RetryDelay::By(policy) => policy.delay(failed, random),
                RetryDelay::After(delay) => Some(delay.min(LONGEST_DELAY)),
                RetryDelay::Exhausted => None,
            },
        };
        let at_once = failure.cause == Cause::Timeout && self.parts.topic.on_timeout == OnTimeout::Immediate;
        if at_once { delay.map(|_| Duration::ZERO) } else { delay }
    }

    /// What the listener's own policy says; one that panics says nothing.
    fn listener_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        let listener = &self.parts.listener;
        let said = catch_unwind(AssertUnwindSafe(|| listener.retry_delay(failed, failure)));
        said.unwrap_or_else(|_| {
            tracing::error!(topic = %self.parts.key, "`retry_delay` of the listener panicked: its settings are used");
            RetryDelay::BySettings
        })
    }

    /// Tells the store of the exhausted jobs, one in a request and many requests behind one another: a topic whose jobs all
    /// fail does not wait for a round trip each.
    pub(super) fn exhaust(&mut self, now: Duration) -> Option<Duration> {
        while self.pipeline.can_send_beside(RequestKind::Exhaust, MOST_EXHAUSTS, now) {
            let Some((id, token, metadata)) = self.held.next_to_exhaust() else { break };
            let (last_seen, lease) = (self.pipeline.last_seen, self.parts.node.lease);
            self.pipeline.exhaust(Exhaust { last_seen, lease, id, token, metadata });
        }
        self.pipeline.pause_end(RequestKind::Exhaust, now)
    }

    /// Starts `final_retry`; where one of the two jobs runs alone, the one or the other waits for its turn.
    fn finally(&mut self, id: &JobId, now: Duration) {
        let Some(job) = self.held.get(id) else { return };
        if !self.stopping.is_ordered()
            && (self.is_quarantined(job) || self.runs.has_quarantined() || self.held.isolated(now).is_some())
        {
            return self.held.set(id, Stage::Waiting);
        }
        let failure = job.exhausted_by().unwrap_or_else(|| Failure::new(Cause::Error, ""));
        self.start(id, Call::FinalRetry(failure), now, false, false);
    }

    pub(super) fn on_exhausted(
        &mut self,
        id: &JobId,
        token: Token,
        noted: Noted,
        sent: Duration,
        named: Sequence,
        now: Duration,
    ) {
        self.lease.renewed_if(noted.lease_status, sent, named);
        if self.held.under(id, token).is_some_and(|job| matches!(job.stage(), Stage::Exhausting { .. })) {
            match noted.note {
                Note::Stale => self.held.remove(id).map_or((), drop),
                Note::Done if self.lease.is_good(now) && !self.stopping.is_cancelling() => self.finally(id, now),
                Note::Done | Note::Ended => self.held.set(id, Stage::settling(Change::Rollback, None)),
            }
        }
        self.compare_rows(noted.lease_status);
    }
}
