//! Ack: sends the outcomes of runs, many in one request, and acts on the verdicts.
//!
//! Outcomes that arrive while a request is in flight go with the next one; there is no timer. The node sends an outcome until
//! the store has judged it, over any number of links; its token makes a repeat harmless. The log has a line for each verdict, and one more
//! for a DEAD job; `docs/guide/logs.md` has the table of levels.

use std::time::Duration;

use super::Outcomes;
use crate::context::topic::flight::Subject;
use crate::context::topic::held::Held;
use crate::context::topic::moment::{Effect, Moment};
use crate::context::topic::slab::HeldId;
use crate::context::topic::stage::{HeldJob, Stage};
use crate::job::{Cause, JobId, Metadata};
use crate::listener::log_text;
use crate::store::step::{Change, Settle, Verdict};
use crate::store::{FollowUpBatches, RequestKind};

/// How many requests with outcomes may be in flight. The store settles the next one while the node reads the answer to the last.
const MAX_IN_FLIGHT: usize = 2;
/// A second request has at least this many outcomes, because a small one costs the store more for each.
const FEWEST_BESIDE: usize = 100;

/// How long an outcome that the store could not settle waits. The others of its request are settled.
const UNSETTLED_PAUSE: Duration = Duration::from_secs(1);

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

impl Outcomes {
    /// Sends the outcomes that are ready, as many as the budget allows in a request. While a request is in flight, a second one goes
    /// out if it has many.
    pub(crate) fn settle(&mut self, moment: &mut Moment) -> Option<Duration> {
        let ready = moment.held.to_settle();
        if ready == 0 {
            return None;
        }
        let (most, bytes) = moment.flight.limits(RequestKind::Settle);
        let in_flight = if ready >= FEWEST_BESIDE.min(most) { MAX_IN_FLIGHT } else { 1 };
        if !moment.can_send_beside(RequestKind::Settle, in_flight) {
            return moment.pause_end(RequestKind::Settle);
        }
        let at_most = ready.min(most);
        let (mut outcomes, mut settled) = (Vec::with_capacity(at_most), Vec::with_capacity(at_most));
        let (mut jobs, mut size) = (0, 0);
        while jobs < most
            && size < bytes
            && let Some((id, outcome)) = moment.held.next_to_settle(outcomes.is_empty())
        {
            let goes_alone = moment.held.defects.accuses(&outcome.id);
            size += outcome.metadata.as_ref().map_or(0, Metadata::text_bytes);
            jobs += 1;
            size += outcome.change.follow_ups().map_or(0, FollowUpBatches::size);
            if let Change::Tick(tick) = &outcome.change {
                size += tick.size();
                jobs += tick.jobs.len();
            }
            settled.push(id);
            outcomes.push(outcome);
            if goes_alone {
                break;
            }
        }
        if !outcomes.is_empty() {
            let (last_seen, lease) = (moment.flight.last_seen(), self.parts.node.lease);
            moment.send_about(Subject::Outcomes(settled), Settle { last_seen, lease, bytes, outcomes });
        }
        None
    }

    pub(crate) fn on_settled(&mut self, asked: Vec<HeldId>, verdicts: Vec<Verdict>, moment: &mut Moment) {
        let _settle = tracing::debug_span!("dq.settle", topic = %self.parts.key.topic, jobs = asked.len()).entered();
        for (id, verdict) in asked.into_iter().zip(verdicts) {
            self.on_verdict(id, verdict, moment);
        }
    }

    fn on_verdict(&mut self, id: HeldId, verdict: Verdict, moment: &mut Moment) {
        let Some(job) = moment.held.at(id) else { return };
        let Stage::Settling { change, then_run, .. } = &job.stage else { return };
        let is_back = *change == Change::Rollback;
        self.report_verdict(job, change, &verdict);
        match verdict {
            Verdict::Done => {
                if change.follow_ups().is_some() {
                    self.parts.relay.wake();
                }
                self.parts.stats.settled(change);
                if *then_run {
                    return moment.push(Effect::RunAcked(id));
                }
            }
            Verdict::Stale if job.is_unknown => return self.forget_unknown(id, &mut moment.held),
            Verdict::Stale => {
                tracing::info!(topic = %self.parts.key.topic, job.id = %job.id, fence = job.token.fence.0, "another run has the job now; this outcome was refused");
                self.parts.stats.count.stale_outcomes.add(1);
            }
            Verdict::Dropped => self.report_dropped(&job.id),
            Verdict::Later => return moment.held.unsent(id),
            Verdict::Failed(reason) => {
                tracing::warn!(topic = %self.parts.key.topic, job.id = %job.id, reason, "the store could not settle this job; its outcome is sent again");
                return moment.held.rest(id, moment.now + UNSETTLED_PAUSE);
            }
        }
        if !is_back {
            moment.held.absolve(id);
        }
        moment.held.remove(id);
    }

    /// Logs and counts a job whose record the store has lost.
    pub(crate) fn report_dropped(&self, id: &JobId) {
        tracing::error!(topic = %self.parts.key.topic, job.id = %id, "the store has lost the record of this job; the job is dropped");
        self.parts.stats.count.dropped.add(1);
    }

    /// Forgets a job whose outcome the store cannot take any more. An earlier sending of it may have taken effect (rule 10).
    pub(crate) fn forget_unknown(&self, id: HeldId, held: &mut Held) {
        let Some(job) = held.get(id) else { return };
        if let Stage::Settling { change, then_run, .. } = &job.stage {
            self.report_unknown(job, change, job.is_unknown && *then_run);
        }
        held.remove(id);
    }

    /// Logs the verdict on an outcome.
    fn report_verdict(&self, job: &HeldJob, change: &Change, verdict: &Verdict) {
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
    fn report_unknown(&self, job: &HeldJob, change: &Change, was_to_run: bool) {
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
