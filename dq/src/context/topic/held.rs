//! What this node holds of a topic: every job that is not yet confirmed gone, and the order in which they proceed.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use foldhash::fast::FixedState;

use super::stage::{HeldJob, Stage};
use crate::job::{JobId, Metadata, Token};
use crate::store::step::{Change, Outcome};

/// The held jobs by id, and queues of those that wait. A queue's entry is skipped if its job has moved on since.
#[derive(Debug)]
pub(super) struct Held {
    jobs: HashMap<JobId, HeldJob, FixedState>,
    to_start: VecDeque<(JobId, Token)>,
    to_settle: VecDeque<(JobId, Token)>,
    to_exhaust: VecDeque<(JobId, Token)>,
    waiting: usize,
    /// Of the records of the jobs that wait.
    waiting_bytes: usize,
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
        Self { jobs, to_start, to_settle, to_exhaust, waiting: 0, waiting_bytes: 0, settling: 0, isolated: None }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// How many jobs wait for a permit.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many bytes the records of these jobs have.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// How many jobs wait for nothing but a verdict.
    pub(super) const fn settling(&self) -> usize {
        self.settling
    }

    /// How many jobs have, or will need, a permit.
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
        debug_assert!(!self.jobs.contains_key(&id), "the caller removes the older run first");
        self.count(&job.stage, job.size(), true);
        self.queue(&id, job.token, &job.stage);
        self.jobs.insert(id, job);
    }

    pub(super) fn remove(&mut self, id: &JobId) -> Option<HeldJob> {
        let job = self.jobs.remove(id)?;
        self.count(&job.stage, job.size(), false);
        Some(job)
    }

    /// Moves a job to another stage.
    pub(super) fn set(&mut self, id: &JobId, stage: Stage) {
        let Some((token, size)) = self.jobs.get(id).map(|job| (job.token, job.size())) else { return };
        self.count(&stage, size, true);
        self.queue(id, token, &stage);
        if let Some(job) = self.jobs.get_mut(id) {
            let before = std::mem::replace(&mut job.stage, stage);
            self.count(&before, size, false);
        }
    }

    /// The metadata of a job, to be changed in place after a failure.
    pub(super) fn metadata_mut(&mut self, id: &JobId) -> Option<&mut Metadata> {
        self.jobs.get_mut(id).map(|job| &mut job.metadata)
    }

    /// Notes that the request about this job will not be answered, so that it is sent again.
    pub(super) fn unsent(&mut self, id: &JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let queue = match &mut job.stage {
            Stage::Isolating => return self.set(id, Stage::Waiting),
            Stage::Exhausting { sent } => {
                *sent = false;
                &mut self.to_exhaust
            }
            Stage::Settling { sent, .. } => {
                *sent = false;
                &mut self.to_settle
            }
            Stage::Waiting | Stage::Running(_) => return,
        };
        queue.push_back((id.clone(), job.token));
    }

    fn count(&mut self, stage: &Stage, size: usize, more: bool) {
        let counter = match stage {
            Stage::Waiting => {
                self.waiting_bytes = if more { self.waiting_bytes + size } else { self.waiting_bytes - size };
                &mut self.waiting
            }
            stage if stage.needs_no_permit() => &mut self.settling,
            _ => return,
        };
        *counter = if more { *counter + 1 } else { *counter - 1 };
    }

    fn queue(&mut self, id: &JobId, token: Token, stage: &Stage) {
        match stage {
            Stage::Waiting => self.to_start.push_back((id.clone(), token)),
            Stage::Settling { sent: false, .. } => self.to_settle.push_back((id.clone(), token)),
            Stage::Exhausting { sent: false } => self.to_exhaust.push_back((id.clone(), token)),
            _ => {}
        }
    }

    /// The job that starts next: the one that has waited longest.
    pub(super) fn next_to_start(&mut self) -> Option<(JobId, Token)> {
        while let Some((id, token)) = self.to_start.front() {
            if self.under(id, *token).is_some_and(|job| job.stage == Stage::Waiting) {
                return self.to_start.front().cloned();
            }
            self.to_start.pop_front();
        }
        None
    }

    /// Notes that `isolate` is sent for this job: from now on the store may charge it for the end of this node.
    pub(super) fn isolate(&mut self, id: &JobId, until: Duration) {
        if let Some(token) = self.jobs.get(id).map(|job| job.token) {
            self.isolated = Some(Isolated { id: id.clone(), token, until });
        }
        self.set(id, Stage::Isolating);
    }

    /// The isolated job that is not confirmed gone, and until when at most nothing may start beside it.
    pub(super) fn isolated(&self, now: Duration) -> Option<(&JobId, &HeldJob, Duration)> {
        let isolated = self.isolated.as_ref().filter(|isolated| now < isolated.until)?;
        Some((&isolated.id, self.under(&isolated.id, isolated.token)?, isolated.until))
    }

    /// Whether there may be outcomes to send.
    pub(super) fn has_outcomes(&self) -> bool {
        !self.to_settle.is_empty()
    }

    /// The next outcome to send; it counts as sent. A failure's outcome carries a copy of the metadata: the job keeps its own,
    /// for the outcome may have to be sent again.
    pub(super) fn next_to_settle(&mut self) -> Option<Outcome> {
        while let Some((id, token)) = self.to_settle.pop_front() {
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.token == token) else { continue };
            if let Stage::Settling { change, sent: sent @ false, .. } = &mut job.stage {
                *sent = true;
                let is_failure = matches!(change, Change::Retry(_) | Change::Dead);
                let metadata = is_failure.then(|| job.metadata.clone());
                return Some(Outcome { id, token, change: change.clone(), metadata });
            }
        }
        None
    }

    /// The next job to send in an `exhaust`; it counts as sent.
    pub(super) fn next_to_exhaust(&mut self) -> Option<(JobId, Token, Metadata)> {
        while let Some((id, token)) = self.to_exhaust.pop_front() {
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.token == token) else { continue };
            if let Stage::Exhausting { sent: sent @ false } = &mut job.stage {
                *sent = true;
                return Some((id, token, job.metadata.clone()));
            }
        }
        None
    }

    /// The ids of all jobs in a wanted stage, in order.
    pub(super) fn ids(&self, wanted: impl Fn(&Stage) -> bool) -> Vec<JobId> {
        let jobs = self.jobs.iter().filter(|(_, job)| wanted(&job.stage));
        let mut ids: Vec<_> = jobs.map(|(id, _)| id.clone()).collect();
        ids.sort_unstable();
        ids
    }
}
