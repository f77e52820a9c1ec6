//! What this node holds of a topic: every job that is not yet confirmed gone, and the order in which they proceed.
//!
//! In the order of the life of a job: it is inserted when it is claimed, it is the next to start, it is set to the stages of its run, its
//! outcome is the next to settle, and it is removed once the store has judged that.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use foldhash::fast::FixedState;

use super::defects::Defects;
use super::slab::{HeldId, OfHeld, RunId, Slab};
use super::stage::{HeldJob, Stage};
use crate::environment::{Alone, Environment, ProcessEntry};
use crate::job::{JobId, KeptState, Metadata, Suspicion, Token};
use crate::store::RequestKind;
use crate::store::step::{Change, Outcome};

/// How long a job with a result is kept if it was added without a retention.
const RESULT_KEPT: Duration = Duration::from_secs(3_600);

/// The held jobs, and queues of those that wait. A queue's entry is skipped if its job has moved on since.
pub(super) struct Held {
    jobs: Slab<OfHeld, HeldJob>,
    /// For what names jobs from outside: claims, commands, rows.
    numbers: HashMap<JobId, HeldId, FixedState>,
    queues: Queues,
    /// Jobs that were claimed before they are due (`lookahead`), by the time at which they are. One that has moved on since is skipped.
    early: BTreeSet<(Duration, HeldId)>,
    counts: Counts,
    /// Jobs whose outcome, or `exhaust`, waits before it is sent again, and until when.
    resting: BTreeMap<HeldId, Duration>,
    /// What the machine is at, and what panics were charged to.
    pub(super) defects: Defects,
}

type Queue = VecDeque<HeldId>;

#[derive(Debug, Default)]
struct Queues {
    /// Ordinary jobs that wait.
    to_start: Queue,
    /// Quarantined jobs that wait to run in a group.
    to_group: Queue,
    /// Quarantined jobs that wait to run alone.
    to_run_alone: Queue,
    to_settle: Queue,
    to_exhaust: Queue,
}

impl Queues {
    /// The queue of waiting jobs that run in this way.
    const fn waiting(&mut self, suspicion: Suspicion) -> &mut Queue {
        match suspicion {
            Suspicion::Ordinary => &mut self.to_start,
            Suspicion::Group | Suspicion::SmallGroup => &mut self.to_group,
            Suspicion::Alone => &mut self.to_run_alone,
        }
    }

    /// Lets a job wait in the queue of its stage, if that has one.
    fn put(&mut self, id: HeldId, job: &HeldJob) {
        let queue = match &job.stage {
            Stage::Waiting => self.waiting(job.suspicion),
            Stage::Settling { .. } if !job.sent => &mut self.to_settle,
            Stage::Exhausting if !job.sent => &mut self.to_exhaust,
            _ => return,
        };
        queue.push_back(id);
    }
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

    /// Counts a job in, or out.
    fn count(&mut self, job: &HeldJob, is_in: bool) {
        let change = |counter: &mut usize, by| *counter = if is_in { *counter + by } else { *counter - by };
        match &job.stage {
            Stage::Waiting => {
                change(&mut self.waiting, 1);
                change(&mut self.waiting_bytes, job.size());
                if job.is_quarantined() {
                    change(&mut self.quarantined_waiting, 1);
                } else if job.starts_at.is_some() {
                    change(&mut self.early_waiting, 1);
                }
            }
            stage if stage.needs_no_permit() => change(&mut self.settling, 1),
            _ if job.is_quarantined() => change(&mut self.quarantined_running, 1),
            _ => {}
        }
    }
}

impl Held {
    pub(super) fn new(environment: &Environment) -> Self {
        Self {
            jobs: Slab::default(),
            numbers: HashMap::with_hasher(FixedState::with_seed(environment.random())),
            queues: Queues::default(),
            early: BTreeSet::new(),
            counts: Counts::default(),
            resting: BTreeMap::new(),
            defects: Defects::new(environment),
        }
    }

    /// How many jobs are held.
    pub(super) fn counts(&self) -> Counts {
        Counts { all: self.jobs.len(), ..self.counts }
    }

    pub(super) fn get(&self, id: HeldId) -> Option<&HeldJob> {
        self.jobs.get(id)
    }

    /// The number of the job with this id, if it is held.
    pub(super) fn find(&self, id: &JobId) -> Option<HeldId> {
        self.numbers.get(id).copied()
    }

    /// The number of the job, if it is held under this token.
    pub(super) fn under(&self, id: &JobId, token: Token) -> Option<HeldId> {
        self.find(id).filter(|id| self.get(*id).is_some_and(|job| job.token == token))
    }

    /// The machine touches this job.
    pub(super) fn at(&mut self, id: HeldId) -> Option<&HeldJob> {
        let job = self.jobs.get(id)?;
        self.defects.at(&job.id);
        Some(job)
    }

    /// The run that is executing the job, if there is one.
    pub(super) fn run_of(&self, id: HeldId) -> Option<RunId> {
        match self.get(id)?.stage {
            Stage::Running(run_id) => Some(run_id),
            _ => None,
        }
    }

    pub(super) fn insert(&mut self, job: HeldJob) -> HeldId {
        self.counts.count(&job, true);
        let (name, at) = (job.id.clone(), job.starts_at.filter(|_| job.stage == Stage::Waiting));
        let id = self.jobs.insert(job);
        let older = self.numbers.insert(name, id);
        debug_assert!(older.is_none(), "the caller removes the older run first");
        self.wait(id, at);
        id
    }

    /// Lets a job wait until it is due, or in the queue of its stage.
    fn wait(&mut self, id: HeldId, starts_at: Option<Duration>) {
        match (starts_at, self.jobs.get(id)) {
            (Some(at), _) => drop(self.early.insert((at, id))),
            (None, Some(job)) => self.queues.put(id, job),
            (None, None) => {}
        }
    }

    /// The job is gone without a panic.
    pub(super) fn absolve(&mut self, id: HeldId) {
        if let Some(job) = self.jobs.get(id) {
            self.defects.absolve(&job.id);
        }
    }

    pub(super) fn remove(&mut self, id: HeldId) {
        let Some(job) = self.jobs.get(id) else { return };
        self.counts.count(job, false);
        self.numbers.remove(&job.id);
        self.resting.remove(&id);
        self.jobs.remove(id);
    }

    /// Moves a job to another stage.
    pub(super) fn set(&mut self, id: HeldId, stage: Stage) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        self.resting.remove(&id);
        self.counts.count(job, false);
        if matches!(stage, Stage::Waiting) || stage.needs_no_permit() {
            job.entry = None; // it is not about to start any more
        }
        job.sent = stage == Stage::Isolating; // its request goes out with it
        job.stage = stage;
        self.counts.count(job, true);
        self.queues.put(id, job);
    }

    /// The job becomes DEAD with these metadata.
    pub(super) fn sentence(&mut self, id: HeldId, metadata: Metadata) {
        if let Some(known) = self.metadata_mut(id) {
            *known = metadata;
        }
        self.set(id, Stage::settling(Change::Dead));
    }

    /// The job goes back as it was.
    pub(super) fn roll_back(&mut self, id: HeldId) {
        self.set(id, Stage::settling(Change::Rollback));
    }

    fn roll_back_all(&mut self, wanted: impl Fn(&HeldJob) -> bool) {
        self.ids(wanted).into_iter().for_each(|id| self.roll_back(id));
    }

    /// Gives back the jobs that have not started, and those whose ack on claim is not sent yet.
    pub(super) fn roll_back_waiting(&mut self) {
        self.roll_back_all(|job| match job.stage {
            Stage::Waiting => true,
            Stage::Settling { then_run, .. } => then_run && !job.sent,
            _ => false,
        });
    }

    /// Gives back the jobs that have begun and not ended.
    pub(super) fn roll_back_unfinished(&mut self) {
        self.roll_back_all(|job| {
            matches!(job.stage, Stage::Running(_) | Stage::Making(_) | Stage::Isolating | Stage::Exhausting)
        });
    }

    /// Lets the jobs start that are due now. Calls `late` with how long each has been due. Returns when the next one is due.
    ///
    /// A job that waits for its due time counts as one that needs a permit, so the topic claims no more than it can start. The node takes
    /// the store's clock from the answer that brought a job, and counts from the receipt of that answer: the store executed the claim
    /// before, so a job starts late by the way of the answer and never early (rule 4).
    pub(super) fn start_early(&mut self, now: Duration, late: impl Fn(Duration)) -> Option<Duration> {
        while let Some((at, id)) = self.early.first().copied() {
            if at > now {
                return Some(at);
            }
            self.early.pop_first();
            let Some(job) = self.jobs.get_mut(id).filter(|job| job.stage == Stage::Waiting) else { continue };
            self.defects.at(&job.id);
            self.counts.count(job, false);
            job.starts_at = None;
            self.counts.count(job, true);
            self.queues.put(id, job);
            late(now.saturating_sub(at));
        }
        None
    }

    /// Lets a job start, alone or beside others, as soon as the store has noted it.
    pub(super) fn admit(&mut self, id: HeldId, entry: ProcessEntry, alone: Option<Alone>) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.entry = Some(entry);
            job.alone = job.alone.take().or(alone);
        }
    }

    /// Takes the right to start from a job, for its run.
    pub(super) fn take_entry(&mut self, id: HeldId) -> Option<ProcessEntry> {
        self.jobs.get_mut(id)?.entry.take()
    }

    /// Others may start beside the job from now on.
    pub(super) fn end_alone(&mut self, id: HeldId) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.alone = None;
        }
    }

    /// The metadata of a job, to be changed in place after a failure.
    pub(super) fn metadata_mut(&mut self, id: HeldId) -> Option<&mut Metadata> {
        self.jobs.get_mut(id).map(|job| &mut job.metadata)
    }

    /// The job has this state from now on, and the store does not know of it. Returns its metadata.
    pub(super) fn keep(&mut self, id: HeldId, state: KeptState) -> Option<Metadata> {
        let job = self.jobs.get_mut(id)?;
        job.metadata.state = Some(state);
        job.is_unsaved = true;
        Some(job.metadata.clone())
    }

    /// The job ends with this result, which takes the place of its state. The result of a job that is not kept would be gone with its ack,
    /// before anybody could read it.
    pub(super) fn keep_result(&mut self, id: HeldId, result: KeptState) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let retain = Some(job.metadata.retain).filter(|retain| !retain.is_zero()).unwrap_or(RESULT_KEPT);
        job.metadata = Metadata { state: None, result: Some(result), retain, ..std::mem::take(&mut job.metadata) };
    }

    /// The store has this state of the job.
    pub(super) fn saved(&mut self, id: &JobId, token: Token, state: &KeptState) {
        if let Some(job) = self.under(id, token).and_then(|id| self.jobs.get_mut(id)) {
            job.is_unsaved &= job.metadata.state.as_ref() != Some(state);
        }
    }

    /// Notes that the outcomes in flight will not be answered, and that the store may have taken them.
    pub(super) fn unanswered(&mut self) {
        for job in self.jobs.values_mut() {
            job.is_unknown |= job.sent && matches!(job.stage, Stage::Settling { .. });
        }
    }

    /// Requests (of one kind, or all) will not be answered, so they are sent again.
    pub(super) fn send_again(&mut self, kind: Option<RequestKind>) {
        for id in self.ids(|job| job.sent && (kind.is_none() || kind == job.stage.request())) {
            if !self.resting.contains_key(&id) {
                self.unsent(id);
            }
        }
    }

    /// Lets what has to be sent about a job wait until then.
    pub(super) fn rest(&mut self, id: HeldId, until: Duration) {
        if let Some(job) = self.jobs.get_mut(id).filter(|job| job.stage.request().is_some()) {
            job.sent = true; // so its entry in the queue is skipped
            self.resting.insert(id, until);
        }
    }

    /// Lets what has waited for long enough be sent. Returns when the next one has.
    pub(super) fn end_rests(&mut self, now: Duration) -> Option<Duration> {
        self.defects.forget(now);
        if self.resting.is_empty() {
            return None;
        }
        let ended: Vec<_> = self.resting.iter().filter(|(_, until)| **until <= now).map(|(id, _)| *id).collect();
        for id in ended {
            self.resting.remove(&id);
            self.unsent(id);
        }
        self.resting.values().min().copied()
    }

    /// Whether there is still a reason for a request of this kind, which the store refused.
    pub(super) fn asks(&self, refused: RequestKind) -> bool {
        match refused {
            RequestKind::Settle => self.counts.settling > 0,
            RequestKind::Exhaust => self.jobs.iter().any(|(_, job)| job.stage == Stage::Exhausting),
            RequestKind::Isolate => self.counts.quarantined() > 0,
            RequestKind::Renew => self.jobs.len() > 0,
            _ => true,
        }
    }

    /// Notes that the request about this job will not be answered, so that it is sent again.
    pub(super) fn unsent(&mut self, id: HeldId) {
        let Some(job) = self.jobs.get_mut(id).filter(|job| job.sent) else { return };
        if job.stage == Stage::Isolating {
            return self.set(id, Stage::Waiting);
        }
        job.sent = false;
        self.queues.put(id, job);
    }

    /// The task has panicked: nothing that was sent is answered, and what was derived from the jobs may be wrong, so it is made again. A
    /// job whose run is lost goes back.
    pub(super) fn recover(&mut self, has_run: impl Fn(RunId) -> bool) {
        self.unanswered();
        (self.queues, self.early, self.counts) = (Queues::default(), BTreeSet::new(), Counts::default());
        self.numbers.clear();
        self.numbers.extend(self.jobs.iter().map(|(id, job)| (job.id.clone(), id)));
        for id in self.ids(|_| true) {
            let Some(job) = self.jobs.get_mut(id) else { continue };
            job.sent = self.resting.contains_key(&id);
            match job.stage {
                Stage::Isolating => job.stage = Stage::Waiting,
                Stage::Running(run_id) if !has_run(run_id) => job.stage = Stage::settling(Change::Rollback),
                _ => {}
            }
            if matches!(job.stage, Stage::Waiting) || job.stage.needs_no_permit() {
                job.entry = None;
            }
            self.counts.count(job, true);
            let at = job.starts_at.filter(|_| job.stage == Stage::Waiting);
            self.wait(id, at);
        }
    }

    /// The jobs that this run executes.
    pub(super) fn jobs_of(&self, run_id: RunId) -> Vec<JobId> {
        self.jobs.iter().filter(|(_, job)| job.stage == Stage::Running(run_id)).map(|(_, job)| job.id.clone()).collect()
    }

    /// The job that starts next of those that run in this way: the one that has waited longest.
    pub(super) fn next_to_start(&mut self, suspicion: Suspicion) -> Option<(HeldId, &HeldJob)> {
        let queue = self.queues.waiting(suspicion);
        while let Some(id) = queue.front().copied() {
            if let Some(job) = self.jobs.get(id).filter(|job| job.stage == Stage::Waiting) {
                return Some((id, job));
            }
            queue.pop_front();
        }
        None
    }

    /// The quarantined jobs that have a permit.
    pub(super) fn quarantined_ids(&self) -> impl Iterator<Item = &JobId> {
        let running = |job: &HeldJob| job.stage != Stage::Waiting && !job.stage.needs_no_permit();
        self.jobs.iter().map(|(_, job)| job).filter(move |job| job.is_quarantined() && running(job)).map(|job| &job.id)
    }

    /// How many outcomes there are to send, at most.
    pub(super) fn to_settle(&self) -> usize {
        self.queues.to_settle.len()
    }

    /// The next outcome to send; it counts as sent. That of a failure, or of a run that leaves something, carries a copy of the metadata: the
    /// job keeps its own, for the outcome may have to be sent again. A job that was not run to its end has the state of its last
    /// checkpoint. `None` also if that outcome must go alone, and is not the first of its request.
    pub(super) fn next_to_settle(&mut self, is_first: bool) -> Option<(HeldId, Outcome)> {
        while let Some(id) = self.queues.to_settle.pop_front() {
            let Some(job) = self.jobs.get_mut(id) else { continue };
            if let (Stage::Settling { change, .. }, false) = (&job.stage, job.sent) {
                if !is_first && self.defects.accuses(&job.id) {
                    self.queues.to_settle.push_front(id);
                    return None;
                }
                job.sent = true;
                self.defects.at(&job.id);
                let has_news = match change.alone() {
                    Change::Retry(_) | Change::Dead => true,
                    Change::Rejoin(_) | Change::Park => job.is_unsaved,
                    Change::Ack => job.metadata.result.is_some(),
                    Change::Rollback | Change::Drop | Change::Tick(_) | Change::Then(..) => false,
                };
                let metadata = has_news.then(|| job.metadata.clone());
                return Some((id, Outcome { id: job.id.clone(), token: job.token, change: change.clone(), metadata }));
            }
        }
        None
    }

    /// The next job to send in an `exhaust`; it counts as sent.
    pub(super) fn next_to_exhaust(&mut self) -> Option<(JobId, Token, Metadata)> {
        while let Some(id) = self.queues.to_exhaust.pop_front() {
            let Some(job) = self.jobs.get_mut(id) else { continue };
            if job.stage == Stage::Exhausting && !job.sent {
                job.sent = true;
                self.defects.at(&job.id);
                return Some((job.id.clone(), job.token, job.metadata.clone()));
            }
        }
        None
    }

    /// The numbers of all wanted jobs, in the order in which they came.
    pub(super) fn ids(&self, wanted: impl Fn(&HeldJob) -> bool) -> Vec<HeldId> {
        let jobs = self.jobs.iter().filter(|(_, job)| wanted(job));
        let mut ids: Vec<_> = jobs.map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }
}
