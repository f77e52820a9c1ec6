//! What this node holds of a topic: every job that is not yet confirmed gone.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use foldhash::fast::FixedState;

use super::runs::RunId;
use crate::job::{JobId, Metadata, Record, Token};
use crate::listener::Failure;
use crate::store::step::Change;

/// Which handler a claim is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It was due: `on_due`, or `final_retry` where no attempt is left.
    Due,
    /// It was UNACKED for its age: `process_unacked`.
    Swept,
}

/// How far a held job has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// For a permit.
    Waiting,
    /// For the answer to `isolate`.
    Beginning,
    /// In a handler.
    Running(RunId),
    /// For the answer to `exhaust`, if it was asked.
    Exhausting {
        /// The request is under way.
        asked: bool,
    },
    /// For the verdict on its outcome, if it was sent.
    Settling {
        /// The outcome.
        change: Change,
        /// The new front, where it changed.
        metadata: Option<Metadata>,
        /// The request is under way.
        asked: bool,
        /// Its handler starts when the verdict is good: acked on claim.
        then_run: bool,
    },
}

impl Stage {
    /// An outcome to be sent.
    pub(super) const fn settling(change: Change, metadata: Option<Metadata>) -> Self {
        Self::Settling { change, metadata, asked: false, then_run: false }
    }

    const fn needs_no_permit(&self) -> bool {
        matches!(self, Self::Settling { then_run: false, .. })
    }
}

/// A job that this node holds.
#[derive(Debug, Clone)]
pub(super) struct HeldJob {
    pub(super) token: Token,
    pub(super) record: Record,
    pub(super) metadata: Metadata,
    pub(super) crashes: u32,
    pub(super) mode: Mode,
    stage: Stage,
}

impl HeldJob {
    pub(super) const fn new(
        token: Token,
        record: Record,
        metadata: Metadata,
        crashes: u32,
        mode: Mode,
        stage: Stage,
    ) -> Self {
        Self { token, record, metadata, crashes, mode, stage }
    }

    pub(super) const fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Why no attempt is left, where none is.
    pub(super) fn exhausted_by(&self) -> Option<Failure> {
        let cause = self.metadata.cause.unwrap_or(crate::job::Cause::Crashes);
        self.metadata.exhausted.then(|| Failure::new(cause, self.metadata.error.clone().unwrap_or_default()))
    }
}

/// See the module. Jobs are found by id; whatever follows an order follows one of the queues, whose entries are
/// skipped when the job has gone on meanwhile.
#[derive(Debug)]
pub(super) struct Held {
    jobs: HashMap<JobId, HeldJob, FixedState>,
    to_start: VecDeque<(JobId, Token)>,
    to_settle: VecDeque<(JobId, Token)>,
    to_exhaust: VecDeque<(JobId, Token)>,
    waiting: usize,
    settling: usize,
    isolated: Option<Isolated>,
}

/// A job for which `isolate` was sent.
#[derive(Debug)]
struct Isolated {
    id: JobId,
    token: Token,
    until: Duration,
}

impl Held {
    pub(super) fn new(seed: u64) -> Self {
        let jobs = HashMap::with_hasher(FixedState::with_seed(seed));
        let (to_start, to_settle, to_exhaust) = Default::default();
        Self { jobs, to_start, to_settle, to_exhaust, waiting: 0, settling: 0, isolated: None }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// How many wait for a permit.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many wait for a verdict only.
    pub(super) const fn settling(&self) -> usize {
        self.settling
    }

    /// How many have, or will need, a permit.
    pub(super) fn needing_permits(&self) -> usize {
        self.jobs.len() - self.settling
    }

    pub(super) fn get(&self, id: &JobId) -> Option<&HeldJob> {
        self.jobs.get(id)
    }

    /// The job, if it is held under this token.
    pub(super) fn under(&self, id: &JobId, token: Token) -> Option<&HeldJob> {
        self.jobs.get(id).filter(|job| job.token == token)
    }

    pub(super) fn insert(&mut self, id: JobId, job: HeldJob) {
        debug_assert!(!self.jobs.contains_key(&id), "the older run is removed first");
        self.count(&job.stage, true);
        self.queue(&id, job.token, &job.stage);
        self.jobs.insert(id, job);
    }

    pub(super) fn remove(&mut self, id: &JobId) -> Option<HeldJob> {
        let job = self.jobs.remove(id)?;
        self.count(&job.stage, false);
        Some(job)
    }

    /// Moves a job on.
    pub(super) fn set(&mut self, id: &JobId, stage: Stage) {
        let Some(token) = self.jobs.get(id).map(|job| job.token) else { return };
        self.count(&stage, true);
        self.queue(id, token, &stage);
        if let Some(job) = self.jobs.get_mut(id) {
            let before = std::mem::replace(&mut job.stage, stage);
            self.count(&before, false);
        }
    }

    /// Replaces the front of a job, as the node knows it.
    pub(super) fn set_metadata(&mut self, id: &JobId, metadata: Metadata) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.metadata = metadata;
        }
    }

    fn count(&mut self, stage: &Stage, more: bool) {
        let counter = match stage {
            Stage::Waiting => &mut self.waiting,
            stage if stage.needs_no_permit() => &mut self.settling,
            _ => return,
        };
        *counter = if more { *counter + 1 } else { *counter - 1 };
    }

    fn queue(&mut self, id: &JobId, token: Token, stage: &Stage) {
        match stage {
            Stage::Waiting => self.to_start.push_back((id.clone(), token)),
            Stage::Settling { asked: false, .. } => self.to_settle.push_back((id.clone(), token)),
            Stage::Exhausting { asked: false } => self.to_exhaust.push_back((id.clone(), token)),
            _ => {}
        }
    }

    /// The job that starts next: the one that waits longest.
    pub(super) fn next_to_start(&mut self) -> Option<(JobId, Token)> {
        while let Some((id, token)) = self.to_start.front() {
            if self.under(id, *token).is_some_and(|job| job.stage == Stage::Waiting) {
                return self.to_start.front().cloned();
            }
            self.to_start.pop_front();
        }
        None
    }

    /// `isolate` is sent for this job: from now on the store may charge it for the end of this node.
    pub(super) fn isolate(&mut self, id: &JobId, until: Duration) {
        if let Some(token) = self.jobs.get(id).map(|job| job.token) {
            self.isolated = Some(Isolated { id: id.clone(), token, until });
        }
        self.set(id, Stage::Beginning);
    }

    /// The job that was begun and is not confirmed gone: nothing may start beside it, until then at the latest.
    pub(super) fn isolated(&self, now: Duration) -> Option<(&JobId, &HeldJob, Duration)> {
        let isolated = self.isolated.as_ref().filter(|isolated| now < isolated.until)?;
        Some((&isolated.id, self.under(&isolated.id, isolated.token)?, isolated.until))
    }

    /// Whether there may be outcomes to send.
    pub(super) fn has_outcomes(&self) -> bool {
        !self.to_settle.is_empty()
    }

    /// The next outcome to send; it counts as asked.
    pub(super) fn next_to_settle(&mut self) -> Option<(JobId, Token, Change, Option<Metadata>)> {
        while let Some((id, token)) = self.to_settle.pop_front() {
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.token == token) else { continue };
            if let Stage::Settling { change, metadata, asked: asked @ false, .. } = &mut job.stage {
                *asked = true;
                let (change, metadata) = (change.clone(), metadata.clone());
                return Some((id, token, change, metadata));
            }
        }
        None
    }

    /// The next job whose exhaustion must be told to the store; it counts as asked.
    pub(super) fn next_to_exhaust(&mut self) -> Option<(JobId, Token, Metadata)> {
        while let Some((id, token)) = self.to_exhaust.pop_front() {
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.token == token) else { continue };
            if let Stage::Exhausting { asked: asked @ false } = &mut job.stage {
                *asked = true;
                return Some((id, token, job.metadata.clone()));
            }
        }
        None
    }

    /// The ids of all jobs whose stage is as asked, in order.
    pub(super) fn ids(&self, wanted: impl Fn(&Stage) -> bool) -> Vec<JobId> {
        let mut ids: Vec<_> =
            self.jobs.iter().filter(|(_, job)| wanted(&job.stage)).map(|(id, _)| id.clone()).collect();
        ids.sort_unstable();
        ids
    }
}
