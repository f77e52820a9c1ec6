//! Outcomes: what becomes of the jobs that this node holds.
//!
//! Outcomes go out many in one request. Those that arrive while a request is in flight go with the next one; there is no timer. The node
//! sends an outcome until the store has judged it, over any number of links; its token makes a repeat harmless.
//!
//! | file | what |
//! |---|---|
//! | [`decide`] | what the end of a run means for its job, and when a failed one runs again |
//! | [`notes`] | saves the checkpoints of running handlers, and their progress |
//! | [`ticks`] | a claimed job that is a schedule |
//! | [`report`] | what the log says of all this |
//!
//! The fields are private to this folder. All owners borrow the jobs ([`Held`](super::held::Held)), which keep their own counters and
//! queues.

mod decide;
mod notes;
mod report;
mod ticks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Parts;
use super::flight::Subject;
use super::held::Held;
use super::moment::{Effect, Moment};
use super::slab::HeldId;
use super::stage::{HeldJob, Mode, Stage};
use crate::job::{Cause, JobId, Metadata, Suspicion};
use crate::listener::{AckMode, Failure};
use crate::schedule::checked;
use crate::store::step::{Change, Claim, Settle, Verdict};
use crate::store::{FollowUps, RequestKind};
use crate::time::Timestamp;
use notes::Notes;
use report::Together;

/// How many requests with outcomes may be in flight. The store settles the next one while the node reads the answer to the last.
const MOST_IN_FLIGHT: usize = 2;
/// A second request has at least this many outcomes, because a small one costs the store more for each.
const FEWEST_BESIDE: usize = 100;

/// How long an outcome that the store could not settle waits. The others of its request are settled.
const UNSETTLED_PAUSE: Duration = Duration::from_secs(1);

/// What becomes of the held jobs.
pub(super) struct Outcomes {
    parts: Arc<Parts>,
    /// The jobs of a batch fail together, just now.
    together: Option<Together>,
    /// When the log last named a schedule that no code of this program defines.
    strangers: BTreeMap<String, Duration>,
    notes: Notes,
}

impl Outcomes {
    pub(super) fn new(parts: Arc<Parts>) -> Self {
        Self { parts, together: None, strangers: BTreeMap::new(), notes: Notes::default() }
    }

    /// Takes in a claimed job, which starts then if it is not yet due. Undecodable and expired ones go to DEAD without a run.
    /// `is_over`: nothing starts any more.
    pub(super) fn admit(
        &mut self,
        claim: Claim,
        mode: Mode,
        clock: Timestamp,
        starts_at: Option<Duration>,
        is_over: bool,
        moment: &mut Moment,
    ) {
        let now = if mode == Mode::Due { clock.max(claim.token.due) } else { clock };
        let give_up = |metadata: Metadata, cause, error: String| {
            let error = Some(Failure::new(cause, error).message);
            let metadata = Metadata { cause: Some(cause), exhausted: true, error, ..metadata };
            (metadata, Stage::settling(Change::Dead))
        };
        moment.held.defects.at(&claim.id);
        let read = checked(&claim.id, &claim.record);
        let sentence = moment.held.defects.sentence(&claim.id, || read.clone().unwrap_or_default());
        let is_sentenced = sentence.is_some();
        let (metadata, stage) = match sentence.map_or(read, Ok) {
            Ok(metadata) if is_sentenced => (metadata, Stage::settling(Change::Dead)),
            Err(bad) => give_up(Metadata::default(), Cause::Decode, bad.to_string()),
            Ok(metadata)
                if mode == Mode::Due && !metadata.exhausted && metadata.expires_at.is_some_and(|at| at < now) =>
            {
                let error = format!("the job expired at {}", metadata.expires_at.unwrap_or_default());
                give_up(metadata, Cause::Expired, error)
            }
            Ok(metadata) if is_over && self.parts.node.crash_rollback => (metadata, Stage::settling(Change::Rollback)),
            Ok(metadata) => (metadata, self.tick_of(&claim, now, moment).unwrap_or(Stage::Waiting)),
        };
        tracing::debug!(job.id = %claim.id, attempt = metadata.attempts, fence = claim.token.fence.0, "claimed");
        self.parts.stats.claimed(clock.since(claim.token.due));
        let mut job = HeldJob::new(claim, metadata, mode, stage);
        job.starts_at = starts_at;
        job.suspicion = self.suspicion(&job);
        moment.held.insert(job);
    }

    /// How this job must run. A job that is acked on claim has no row while it runs, so no crash is charged to it.
    fn suspicion(&self, job: &HeldJob) -> Suspicion {
        let acked_first = self.parts.topic.ack == AckMode::OnClaim && job.mode == Mode::Due && !job.metadata.exhausted;
        if acked_first { Suspicion::Ordinary } else { Suspicion::of(job.crashes, self.parts.topic.max_crashes) }
    }

    /// Sends the outcomes that are ready, as many as the budget allows in a request. While a request is in flight, a second one goes
    /// out if it has many.
    pub(crate) fn settle(&mut self, moment: &mut Moment) -> Option<Duration> {
        let ready = moment.held.to_settle();
        if ready == 0 {
            return None;
        }
        let (most, bytes) = moment.flight.limits(RequestKind::Settle);
        let in_flight = if ready >= FEWEST_BESIDE.min(most) { MOST_IN_FLIGHT } else { 1 };
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
            size += outcome.change.follow_ups().map_or(0, FollowUps::size);
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
}
