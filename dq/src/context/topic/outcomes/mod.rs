//! Outcomes: the jobs that this node holds, and what becomes of them.
//!
//! | file | what |
//! |---|---|
//! | [`decide`] | what the end of a run means for its job |
//! | [`retry`] | when a failed job runs again, and what happens when no attempt is left |
//! | [`ack`] | sends outcomes, many in one request, and acts on the verdicts |
//! | [`ticks`] | a claimed job that is a schedule |
//! | [`report`] | what the log says of all this |
//!
//! The fields are private to this folder. The other owners borrow the jobs ([`Held`]), which keeps its own counters and queues.

mod ack;
mod decide;
mod report;
mod retry;
mod ticks;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::held::Held;
use super::parts::Parts;
use super::stage::{HeldJob, Mode, Stage};
use crate::context::topic::moment::Moment;
use crate::job::{Cause, JobId, Metadata, Record, Suspicion, Token};
use crate::listener::{AckMode, Failure};
use crate::store::RequestKind;
use crate::store::step::{Change, Claim};
use crate::time::Timestamp;
use report::Together;

/// The held jobs and their outcomes.
pub(super) struct Outcomes {
    parts: Arc<Parts>,
    held: Held,
    /// Outcomes that the store could not settle, and when each is sent again.
    unsettled: VecDeque<(Duration, JobId)>,
    /// The jobs of a batch fail together, just now.
    together: Option<Together>,
    /// When the log last named a schedule that no code of this program defines.
    strangers: BTreeMap<String, Duration>,
}

impl Outcomes {
    pub(super) fn new(parts: Arc<Parts>) -> Self {
        Self {
            held: Held::new(parts.environment.random()),
            unsettled: VecDeque::new(),
            together: None,
            strangers: BTreeMap::new(),
            parts,
        }
    }

    /// The held jobs.
    pub(super) const fn jobs(&self) -> &Held {
        &self.held
    }

    /// The held jobs, lent to another owner.
    pub(super) const fn jobs_mut(&mut self) -> &mut Held {
        &mut self.held
    }

    /// Takes in a claimed job, which starts then if it is not yet due. `is_over`: nothing starts any more.
    pub(super) fn admit(
        &mut self,
        claim: Claim,
        mode: Mode,
        clock: Timestamp,
        starts_at: Option<Duration>,
        is_over: bool,
        moment: &mut Moment,
    ) {
        let (metadata, stage) = self.first_stage(&claim, mode, clock, is_over, moment);
        tracing::debug!(job.id = %claim.id, attempt = metadata.attempts, fence = claim.token.fence.0, "claimed");
        self.parts.stats.claimed(clock.since(claim.token.due));
        let mut job = HeldJob::new(claim.token, claim.record, metadata, claim.crashes, mode, stage);
        job.starts_at = starts_at;
        job.suspicion = self.suspicion(&job);
        self.held.insert(claim.id, job);
    }

    /// The metadata and the first stage of a claimed job: undecodable and expired jobs go to DEAD without a run.
    fn first_stage(
        &mut self,
        claim: &Claim,
        mode: Mode,
        clock: Timestamp,
        is_over: bool,
        moment: &mut Moment,
    ) -> (Metadata, Stage) {
        let clock = if mode == Mode::Due { clock.max(claim.token.due) } else { clock };
        let give_up = |metadata: Metadata, cause, error: String| {
            let error = Some(Failure::new(cause, error).message);
            let metadata = Metadata { cause: Some(cause), exhausted: true, error, ..metadata };
            (metadata, Stage::settling(Change::Dead))
        };
        match claim.record.metadata() {
            Err(bad) => give_up(Metadata::default(), Cause::Decode, bad.to_string()),
            Ok(metadata)
                if mode == Mode::Due && !metadata.exhausted && metadata.expires_at.is_some_and(|at| at < clock) =>
            {
                let error = format!("the job expired at {}", metadata.expires_at.unwrap_or_default());
                give_up(metadata, Cause::Expired, error)
            }
            Ok(metadata) if is_over && self.parts.node.crash_rollback => (metadata, Stage::settling(Change::Rollback)),
            Ok(metadata) => (metadata, self.tick_of(claim, clock, moment).unwrap_or(Stage::Waiting)),
        }
    }

    /// How this job must run. A job that is acked on claim has no row while it runs, so no crash is charged to it.
    fn suspicion(&self, job: &HeldJob) -> Suspicion {
        let acked_first = self.parts.topic.ack == AckMode::OnClaim && job.mode == Mode::Due && !job.metadata.exhausted;
        if acked_first { Suspicion::Ordinary } else { Suspicion::of(job.crashes, self.parts.topic.max_crashes) }
    }

    /// Takes in a row whose claim had no answer: the job goes back as it was.
    pub(super) fn admit_unheld(&mut self, id: JobId, token: Token) {
        let (record, stage) = (Record::from_bytes(Bytes::new()), Stage::settling(Change::Rollback));
        self.held.insert(id, HeldJob::new(token, record, Metadata::default(), 0, Mode::Due, stage));
    }

    /// Lets the jobs start that are due by now. Returns when the next one is.
    pub(super) fn start_early(&mut self, now: Duration) -> Option<Duration> {
        let stats = &self.parts.stats;
        self.held.start_early(now, |late| stats.late(late))
    }

    /// Gives back the jobs that have begun and not ended.
    pub(super) fn roll_back_unfinished(&mut self) {
        let unfinished = |stage: &Stage| {
            matches!(stage, Stage::Running(_) | Stage::Making(_) | Stage::Isolating | Stage::Exhausting { .. })
        };
        for id in self.held.ids(unfinished) {
            self.held.roll_back(&id);
        }
    }

    /// Requests (of one kind, or all) will not be answered, so they are sent again.
    pub(super) fn send_again(&mut self, kind: Option<RequestKind>) {
        let is = |wanted| kind.is_none_or(|kind| kind == wanted);
        let sent = |stage: &Stage| match stage {
            Stage::Isolating => is(RequestKind::Isolate),
            Stage::Exhausting { sent } => *sent && is(RequestKind::Exhaust),
            Stage::Settling { sent, .. } => *sent && is(RequestKind::Settle),
            Stage::Waiting | Stage::Making(_) | Stage::Running(_) => false,
        };
        for id in self.held.ids(sent) {
            self.held.unsent(&id);
        }
    }

    /// Whether there is still a reason for a request of this kind, which the store refused.
    pub(super) fn asks(&self, refused: RequestKind) -> bool {
        match refused {
            RequestKind::Settle => self.held.counts().settling > 0,
            RequestKind::Exhaust => self.held.is_exhausting(),
            RequestKind::Isolate => self.held.counts().quarantined() > 0,
            RequestKind::Renew => self.held.counts().all > 0,
            _ => true,
        }
    }
}
