//! Ack: sends the outcomes of runs, many in one request, and acts on the verdicts.
//!
//! Outcomes that arrive while a request is in flight go with the next one; there is no timer. The node sends an outcome until
//! the store has judged it, over any number of links; its token makes a repeat harmless.

use std::time::Duration;

use super::pipeline::RequestKind;
use super::run_report::Ended;
use super::{HeldJob, Stage, Topic};
use crate::job::{Cause, JobId, Metadata, Sequence, Token};
use crate::listener::erased::{HandlerCall, Returned};
use crate::store::step::{Change, Settle, Settled, Verdict};

/// How many requests with outcomes may be in flight. The store settles the next one while the node reads the answer to the last.
const MOST_IN_FLIGHT: usize = 2;
/// A second request has at least this many outcomes, because a small one costs the store more for each.
const FEWEST_BESIDE: usize = 100;

/// How long an outcome that the store could not settle waits. The others of its request are settled.
const UNSETTLED_PAUSE: Duration = Duration::from_secs(1);

impl Topic {
    /// Sends the outcomes that are ready, as many as the budget allows in a request. While a request is in flight, a second one goes
    /// out if it has many.
    pub(super) fn settle(&mut self, now: Duration) -> Option<Duration> {
        while self.unsettled.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, id)) = self.unsettled.pop_front()
        {
            if matches!(self.held.get(&id).map(HeldJob::stage), Some(Stage::Settling { .. })) {
                self.held.unsent(&id);
            }
        }
        let ready = self.held.to_settle();
        if ready == 0 {
            return self.unsettled.front().map(|(at, _)| *at);
        }
        let many = ready >= FEWEST_BESIDE.min(self.budgets.outcomes.jobs());
        if !self.pipeline.can_send_beside(RequestKind::Settle, if many { MOST_IN_FLIGHT } else { 1 }, now) {
            return self.pipeline.pause_end(RequestKind::Settle, now);
        }
        let (most, bytes) = (self.budgets.outcomes.jobs(), self.budgets.outcomes.bytes());
        let (mut outcomes, mut jobs, mut size) = (Vec::new(), 0, 0);
        while jobs < most
            && size < bytes
            && let Some(outcome) = self.held.next_to_settle()
        {
            size += outcome.metadata.as_ref().map_or(0, Metadata::text_bytes);
            jobs += 1;
            if let Change::Tick(tick) = &outcome.change {
                size += tick.size();
                jobs += tick.jobs.len();
            }
            outcomes.push(outcome);
        }
        if !outcomes.is_empty() {
            self.pipeline.send(Settle {
                last_seen: self.pipeline.last_seen,
                lease: self.parts.node.lease,
                bytes,
                outcomes,
            });
        }
        None
    }

    pub(super) fn on_settled(
        &mut self,
        asked: Vec<(JobId, Token)>,
        settled: Settled,
        sent: Duration,
        named: Sequence,
        now: Duration,
    ) {
        let _settle = tracing::debug_span!("dq.settle", topic = %self.parts.key.topic, jobs = asked.len()).entered();
        for ((id, token), verdict) in asked.into_iter().zip(settled.verdicts) {
            if self.held.under(&id, token).is_some() {
                self.on_verdict(&id, token, verdict, now);
            }
        }
        self.on_lease_status(settled.lease_status, sent, named);
    }

    fn on_verdict(&mut self, id: &JobId, token: Token, verdict: Verdict, now: Duration) {
        let Some(job) = self.held.get(id) else { return };
        if let Stage::Settling { change, .. } = job.stage() {
            self.report_verdict(id, token, job, change, &verdict);
        }
        match verdict {
            Verdict::Done => {
                let Stage::Settling { change, then_run, .. } = job.stage() else { return };
                self.parts.stats.settled(change);
                if *then_run {
                    self.run_acked(id, now);
                }
                self.held.remove(id);
            }
            Verdict::Stale if job.is_unknown => self.forget_unknown(id),
            Verdict::Stale => {
                tracing::info!(topic = %self.parts.key.topic, job.id = %id, fence = token.fence.0, "another run has the job now; this outcome was refused");
                self.parts.stats.stale();
                self.held.remove(id);
            }
            Verdict::Dropped => {
                tracing::error!(topic = %self.parts.key.topic, job.id = %id, "the store has lost the record of this job; the job is dropped");
                self.parts.stats.dropped(1);
                self.held.remove(id);
            }
            Verdict::Later => self.held.unsent(id),
            Verdict::Failed(reason) => {
                tracing::warn!(topic = %self.parts.key.topic, job.id = %id, reason, "the store could not settle this job; its outcome is sent again");
                self.unsettled.push_back((now + UNSETTLED_PAUSE, id.clone()));
            }
        }
    }

    /// Forgets a job whose outcome the store cannot take any more. An earlier sending of it may have taken effect (rule 10).
    pub(super) fn forget_unknown(&mut self, id: &JobId) {
        let Some(job) = self.held.remove(id) else { return };
        if let Stage::Settling { change, then_run, .. } = job.stage() {
            self.report_unknown(id, &job, change, job.is_unknown && *then_run);
        }
    }

    /// Starts the handler of a job that was acked on claim.
    fn run_acked(&mut self, id: &JobId, now: Duration) {
        match self.held.take_entry(id) {
            Some(entry) if !self.handlers_gone && !self.stopping.is_cancelling() => {
                self.start(id, HandlerCall::OnDue, now, entry, true);
            }
            _ => self.report_lost(id, "the node stops", None),
        }
    }

    /// The handler of a job that was acked on claim has ended.
    pub(super) fn on_detached_end(&self, id: &JobId, ended: Ended) {
        match ended {
            Ended::Returned(Returned::Failed(failure)) => self.report_lost(id, failure.log_text(), Some(failure.cause)),
            Ended::Panicked(message) => self.report_lost(id, &message, Some(Cause::Panic)),
            Ended::Dropped => self.report_lost(id, "its runtime has shut down", None),
            Ended::Returned(_) | Ended::Asked(_) | Ended::AskedEach(_) | Ended::GivenBack => {}
        }
    }

    pub(super) fn report_lost(&self, id: &JobId, failure: &str, cause: Option<Cause>) {
        tracing::error!(topic = %self.parts.key.topic, job.id = %id, failure, "the handler failed after its job was acked on claim: the job is lost");
        self.parts.stats.failed(cause);
    }
}
