//! Outcomes: what becomes of the jobs that this node holds.
//!
//! | file | what |
//! |---|---|
//! | [`decide`] | what the end of a run means for its job, when a failed one runs again, and what the log says of that |
//! | [`ack`] | sends the outcomes, acts on the verdicts and logs them |
//! | [`notes`] | saves the checkpoints of running handlers, and their progress |
//! | [`ticks`] | a claimed job that is a schedule |
//!
//! The fields are private to this folder. All owners borrow the jobs ([`Held`](super::held::Held)), which keep their own counters and
//! queues.

mod ack;
mod decide;
mod notes;
mod ticks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Parts;
use super::moment::Moment;
use super::stage::{HeldJob, Mode, Stage};
use crate::job::{Cause, Metadata, Suspicion};
use crate::listener::{AckMode, Failure};
use crate::schedule::{checked, schedule_name};
use crate::store::step::{Change, Claim};
use crate::time::Timestamp;
use notes::Notes;

/// What becomes of the held jobs.
pub(super) struct Outcomes {
    parts: Arc<Parts>,
    /// When the log last named a schedule that no code of this program defines.
    strangers: BTreeMap<String, Duration>,
    notes: Notes,
}

impl Outcomes {
    pub(super) fn new(parts: Arc<Parts>) -> Self {
        Self { parts, strangers: BTreeMap::new(), notes: Notes::default() }
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
            Ok(metadata) if is_over && self.parts.node.rollback_on_shutdown => {
                (metadata, Stage::settling(Change::Rollback))
            }
            Ok(metadata) => {
                let schedule = schedule_name(&claim.id);
                (metadata, schedule.map_or(Stage::Waiting, |name| self.tick(name, &claim, now, moment)))
            }
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
}
