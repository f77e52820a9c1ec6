//! What this node holds of a topic: every job that is not yet confirmed gone, and the order in which they proceed.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use foldhash::fast::FixedState;

use super::early::Early;
use super::stage::{HeldJob, Stage};
use crate::environment::{Alone, Entry};
use crate::job::{JobId, Metadata, Suspicion, Token};
use crate::store::step::{Change, Outcome};

/// The held jobs by id, and queues of those that wait. A queue's entry is skipped if its job has moved on since.
#[derive(Debug, Default)]
pub(super) struct Held {
    jobs: HashMap<JobId, HeldJob, FixedState>,
    /// Ordinary jobs that wait.
    to_start: VecDeque<(JobId, Token)>,
    /// Quarantined jobs that wait to run in a group.
    to_group: VecDeque<(JobId, Token)>,
    /// Quarantined jobs that wait to run alone.
    to_run_alone: VecDeque<(JobId, Token)>,
    early: Early,
    to_settle: VecDeque<(JobId, Token)>,
    to_exhaust: VecDeque<(JobId, Token)>,
    counts: Counts,
}

/// How many jobs are held, by how far they have come.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) all: usize,
    /// They wait for a permit.
    pub(super) waiting: usize,
    /// Of the records of these.
    pub(super) waiting_bytes: usize,
    /// They wait for nothing but a verdict.
    pub(super) settling: usize,
    /// Those of the waiting jobs that are quarantined.
    pub(super) quarantined_waiting: usize,
    /// Quarantined jobs that have a permit.
    pub(super) quarantined_running: usize,
    /// Those of the ordinary jobs that wait which are not yet due.
    early_waiting: usize,
}

impl Counts {
    /// Ordinary jobs that are due and wait for a permit.
    pub(super) const fn ordinary_waiting(&self) -> usize {
        self.waiting - self.quarantined_waiting - self.early_waiting
    }

    /// Quarantined jobs that wait or have a permit.
    pub(super) const fn quarantined(&self) -> usize {
        self.quarantined_waiting + self.quarantined_running
    }

    /// Jobs that have, or will need, a permit.
    pub(super) const fn needing_permits(&self) -> usize {
        self.all - self.settling
    }
}

impl Held {
    pub(super) fn new(seed: u64) -> Self {
        Self { jobs: HashMap::with_hasher(FixedState::with_seed(seed)), ..Self::default() }
    }

    /// How many jobs are held.
    pub(super) fn counts(&self) -> Counts {
        Counts { all: self.jobs.len(), ..self.counts }
    }

    /// Whether the store must still note of a job that it is exhausted.
    pub(super) fn is_exhausting(&self) -> bool {
        self.jobs.values().any(|job| matches!(job.stage, Stage::Exhausting { .. }))
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
        self.count(Counted::of(&job), &job.stage, true);
        match job.starts_at.filter(|_| job.stage == Stage::Waiting) {
            Some(at) => self.early.insert(at, id.clone(), job.token),
            None => self.queue(&id, job.token, job.suspicion, &job.stage),
        }
        self.jobs.insert(id, job);
    }

    pub(super) fn remove(&mut self, id: &JobId) -> Option<HeldJob> {
        let job = self.jobs.remove(id)?;
        self.count(Counted::of(&job), &job.stage, false);
        Some(job)
    }

    /// Moves a job to another stage.
    pub(super) fn set(&mut self, id: &JobId, stage: Stage) {
        let Some(job) = self.jobs.get(id) else { return };
        let (token, counted) = (job.token, Counted::of(job));
        self.count(counted, &stage, true);
        self.queue(id, token, counted.suspicion, &stage);
        if let Some(job) = self.jobs.get_mut(id) {
            if matches!(stage, Stage::Waiting) || stage.needs_no_permit() {
                job.entry = None; // it is not about to start any more
            }
            let before = std::mem::replace(&mut job.stage, stage);
            self.count(counted, &before, false);
        }
    }

    /// The job goes back as it was.
    pub(super) fn roll_back(&mut self, id: &JobId) {
        self.set(id, Stage::settling(Change::Rollback));
    }

    /// Gives back the jobs that have not started, and those whose ack on claim is not sent yet.
    pub(super) fn roll_back_waiting(&mut self) {
        let unstarted =
            |stage: &Stage| matches!(stage, Stage::Waiting | Stage::Settling { then_run: true, sent: false, .. });
        for id in self.ids(unstarted) {
            self.roll_back(&id);
        }
    }

    /// Lets the jobs start that are due now. Calls `late` with how long each has been due. Returns when the next one is due.
    pub(super) fn start_early(&mut self, now: Duration, late: impl Fn(Duration)) -> Option<Duration> {
        while let Some((at, id, token)) = self.early.next_due(now) {
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.token == token && job.stage == Stage::Waiting)
            else {
                continue;
            };
            let before = Counted::of(job);
            job.starts_at = None;
            let counted = Counted::of(job);
            self.count(before, &Stage::Waiting, false);
            self.count(counted, &Stage::Waiting, true);
            self.queue(&id, token, counted.suspicion, &Stage::Waiting);
            late(now.saturating_sub(at));
        }
        self.early.first()
    }

    /// Lets a job start, alone or beside others, as soon as the store has noted it.
    pub(super) fn admit(&mut self, id: &JobId, entry: Entry, alone: Option<Alone>) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.entry = Some(entry);
            job.alone = job.alone.take().or(alone);
        }
    }

    /// Takes the right to start from a job, for its run.
    pub(super) fn take_entry(&mut self, id: &JobId) -> Option<Entry> {
        self.jobs.get_mut(id)?.entry.take()
    }

    /// Others may start beside the job from now on.
    pub(super) fn end_alone(&mut self, id: &JobId) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.alone = None;
        }
    }

    /// The metadata of a job, to be changed in place after a failure.
    pub(super) fn metadata_mut(&mut self, id: &JobId) -> Option<&mut Metadata> {
        self.jobs.get_mut(id).map(|job| &mut job.metadata)
    }

    /// Notes that the outcomes in flight will not be answered, and that the store may have taken them.
    pub(super) fn unanswered(&mut self) {
        for job in self.jobs.values_mut() {
            job.is_unknown |= matches!(job.stage, Stage::Settling { sent: true, .. });
        }
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
            Stage::Waiting | Stage::Making(_) | Stage::Running(_) => return,
        };
        queue.push_back((id.clone(), job.token));
    }

    fn count(&mut self, job: Counted, stage: &Stage, more: bool) {
        let change = |counter: &mut usize| *counter = if more { *counter + 1 } else { *counter - 1 };
        let counts = &mut self.counts;
        let Counted { suspicion, size, is_early } = job;
        let is_quarantined = suspicion != Suspicion::Ordinary;
        match stage {
            Stage::Waiting => {
                change(&mut counts.waiting);
                counts.waiting_bytes = if more { counts.waiting_bytes + size } else { counts.waiting_bytes - size };
                if is_quarantined {
                    change(&mut counts.quarantined_waiting);
                } else if is_early {
                    change(&mut counts.early_waiting);
                }
            }
            stage if stage.needs_no_permit() => change(&mut counts.settling),
            _ if is_quarantined => change(&mut counts.quarantined_running),
            _ => {}
        }
    }

    fn queue(&mut self, id: &JobId, token: Token, suspicion: Suspicion, stage: &Stage) {
        let queue = match stage {
            Stage::Waiting => match suspicion {
                Suspicion::Ordinary => &mut self.to_start,
                Suspicion::Group | Suspicion::SmallGroup => &mut self.to_group,
                Suspicion::Alone => &mut self.to_run_alone,
            },
            Stage::Settling { sent: false, .. } => &mut self.to_settle,
            Stage::Exhausting { sent: false } => &mut self.to_exhaust,
            _ => return,
        };
        queue.push_back((id.clone(), token));
    }

    /// The ordinary job that starts next: the one that has waited longest.
    pub(super) fn next_to_start(&mut self) -> Option<(JobId, Token)> {
        next_waiting(&self.jobs, &mut self.to_start)
    }

    /// The quarantined job that starts next in a group.
    pub(super) fn next_to_group(&mut self) -> Option<(JobId, Token)> {
        next_waiting(&self.jobs, &mut self.to_group)
    }

    /// The quarantined job that runs alone next.
    pub(super) fn next_to_run_alone(&mut self) -> Option<(JobId, Token)> {
        next_waiting(&self.jobs, &mut self.to_run_alone)
    }

    /// The quarantined jobs that have a permit.
    pub(super) fn quarantined_ids(&self) -> impl Iterator<Item = &JobId> {
        let running = |job: &HeldJob| job.stage != Stage::Waiting && !job.stage.needs_no_permit();
        self.jobs.iter().filter(move |(_, job)| job.is_quarantined() && running(job)).map(|(id, _)| id)
    }

    /// How many outcomes there are to send, at most.
    pub(super) fn to_settle(&self) -> usize {
        self.to_settle.len()
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

/// What decides in which counters a job is.
#[derive(Debug, Clone, Copy)]
struct Counted {
    suspicion: Suspicion,
    size: usize,
    is_early: bool,
}

impl Counted {
    fn of(job: &HeldJob) -> Self {
        Self { suspicion: job.suspicion, size: job.size(), is_early: job.starts_at.is_some() }
    }
}

/// The first job of the queue that still waits.
fn next_waiting(
    jobs: &HashMap<JobId, HeldJob, FixedState>,
    queue: &mut VecDeque<(JobId, Token)>,
) -> Option<(JobId, Token)> {
    while let Some((id, token)) = queue.front() {
        if jobs.get(id).is_some_and(|job| job.token == *token && job.stage == Stage::Waiting) {
            return queue.front().cloned();
        }
        queue.pop_front();
    }
    None
}
