//! A run of a handler, as its task on the user's runtime and the topic share it: its jobs, what the task reports, and what all tasks have.
//!
//! * [`task`]: what calls the handler, for one job or a batch; [`making`]: what calls a function that makes a payload.
//! * [`runners`]: the tasks in which handlers run, one after the other.

mod making;
mod runners;
mod task;

use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::context::panic_message;
use crate::context::topic::slab::{HeldId, RunId};
use crate::environment::Environment;
use crate::job::{Cause, JobId, KeptState, Token};
use crate::listener::{CheckpointError, Decision, ErasedListener, Failure, Notes, RetryDelay, Returned, RunControl};
use crate::schedule::Made;
use crate::store::step::{Change, RejoinDue};
use crate::time::{MAX_DELAY, Timestamp};

pub(super) use making::{PayloadFunction, making};
pub(super) use runners::Runners;
pub(super) use task::{BatchReport, PreparedRun, RunTask, Work};

/// A job of a run.
#[derive(Debug)]
pub(crate) struct RunJob {
    /// For the log: the job may not be held any more.
    pub(crate) id: JobId,
    pub(crate) held: HeldId,
    /// Asks the handler to stop working on it.
    pub(crate) control: Arc<RunControl>,
}

/// The jobs of a run.
#[derive(Debug)]
pub(crate) enum RunJobs {
    One(RunJob),
    Batch(BatchJobs),
}

/// The jobs of a batch by their places in it; `None`: it is decided, or this node does not hold it any more.
#[derive(Debug)]
pub(crate) struct BatchJobs {
    jobs: Vec<Option<RunJob>>,
    /// Of the records of all jobs.
    pub(crate) bytes: usize,
    /// Controls the whole batch.
    control: Arc<RunControl>,
}

impl RunJobs {
    /// A batch with these jobs, whose controls are of the batch `control`.
    pub(crate) fn batch(jobs: Vec<RunJob>, bytes: usize, control: Arc<RunControl>) -> Self {
        Self::Batch(BatchJobs { jobs: jobs.into_iter().map(Some).collect(), bytes, control })
    }

    /// These jobs, which have no place in a batch of the user any more.
    pub(crate) fn all(jobs: Vec<RunJob>) -> Self {
        Self::batch(jobs, 0, Arc::default())
    }

    /// How many jobs are not decided.
    pub(crate) fn left(&self) -> usize {
        self.jobs().count()
    }

    /// The jobs that are not decided.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &RunJob> {
        let (one, batch) = match self {
            Self::One(job) => (Some(job), &[][..]),
            Self::Batch(batch) => (None, &batch.jobs[..]),
        };
        one.into_iter().chain(batch.iter().flatten())
    }

    /// The id, if it is no batch.
    pub(crate) const fn only(&self) -> Option<&JobId> {
        match self {
            Self::One(job) => Some(&job.id),
            Self::Batch(_) => None,
        }
    }

    /// Whether and when the task of the run was polled for the first time, and what ends it early.
    pub(crate) const fn control(&self) -> &Arc<RunControl> {
        match self {
            Self::One(job) => &job.control,
            Self::Batch(batch) => &batch.control,
        }
    }

    /// The jobs with their places.
    pub(crate) fn into_list(self) -> Vec<(usize, RunJob)> {
        match self {
            Self::One(job) => vec![(0, job)],
            Self::Batch(batch) => {
                batch.jobs.into_iter().enumerate().filter_map(|(place, job)| Some((place, job?))).collect()
            }
        }
    }
}

impl BatchJobs {
    /// Takes out the job at this place.
    pub(crate) fn take(&mut self, place: usize) -> Option<RunJob> {
        self.jobs.get_mut(place)?.take()
    }

    /// Where this job is.
    pub(crate) fn place(&self, id: HeldId) -> Option<usize> {
        self.jobs.iter().position(|job| job.as_ref().is_some_and(|job| job.held == id))
    }
}

/// How a run ended, for each of its jobs that has no outcome yet.
#[derive(Debug, Clone)]
pub(crate) enum Ended {
    /// The handler returned.
    Returned(Returned),
    /// The handler panicked with this message.
    Panicked(String),
    /// The handler failed, as the task reported before, and `retry_delay` returned this; `None`: it panicked.
    Asked(Option<RetryDelay>),
    /// The same for jobs of a batch, by their places in it.
    AskedEach(Vec<(usize, Option<RetryDelay>)>),
    /// The run did not begin: it was taken back before, or the lease had expired.
    TakenBack,
    /// Its future was dropped: the run was given up, or the runtime shuts down.
    Dropped,
}

impl Ended {
    /// Takes the error of the handler away, to be dropped where the user's code runs.
    pub(crate) fn take_error(&mut self) -> Option<Arc<dyn Error + Send + Sync>> {
        match self {
            Self::Returned(Returned::Failed(failure)) => failure.take_error(),
            _ => None,
        }
    }

    /// Why the handler failed, if it did.
    pub(crate) const fn cause(&self) -> Option<Cause> {
        match self {
            Self::Panicked(_) => Some(Cause::Panic),
            Self::Returned(Returned::Failed(failure)) => Some(failure.cause),
            Self::Returned(Returned::Decided(Decision::Dead(_) | Decision::BadDelay(_))) => Some(Cause::Error),
            _ => None,
        }
    }

    /// How it ended for the job at this place of a batch.
    pub(crate) fn for_job(&self, place: usize) -> Self {
        match self {
            Self::AskedEach(delays) => match delays.binary_search_by_key(&place, |(place, _)| *place) {
                Ok(index) => Self::Asked(delays[index].1.clone()),
                Err(_) => Self::Asked(Some(RetryDelay::BySettings)), // the job's own policy decides
            },
            ended => ended.clone(),
        }
    }
}

/// The end of a run for these jobs of it.
#[derive(Debug)]
pub(crate) struct RunEnd {
    pub(crate) jobs: RunJobs,
    /// How many jobs of the run end now, these among them.
    pub(crate) together: usize,
    /// What its task has reported before.
    pub(crate) failed: Option<Failed>,
    pub(crate) ended: Ended,
}

/// A failure after which a task asks `retry_delay`.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    pub(crate) failure: Failure,
    /// `on_park_timeout` asked for the retry, so no handler has failed.
    pub(crate) is_wanted: bool,
}

/// A state that a handler wants to be saved, and waits for.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    pub(crate) id: JobId,
    pub(crate) token: Token,
    pub(crate) state: KeptState,
    pub(crate) answer: oneshot::Sender<Result<(), CheckpointError>>,
}

impl Checkpoint {
    /// Tells the handler.
    pub(crate) fn answer(self, answer: Result<(), CheckpointError>) {
        // This fails only if the handler has dropped the future.
        let _ = self.answer.send(answer);
    }
}

/// What the task of a run reports to the topic.
#[derive(Debug)]
pub(crate) enum RunEvent {
    /// The handler has failed, and the task asks `retry_delay`.
    Failed(RunId, Failed),
    /// The job at this place of a batch has ended, and the task goes on. If it failed, `retry_delay` was asked.
    JobEnded(RunId, usize, Option<Failed>, Ended),
    /// The task has ended.
    Ended(RunId, Ended),
    /// The handler wants a state to be saved.
    Checkpoint(Checkpoint),
    /// The handler has said how far it has come.
    Progress(JobId, Token, Arc<RunControl>),
    /// A function has made the payload of a tick, or failed.
    Made(JobId, Token, Made),
}

/// How long a run may wait for its first poll. Then its job goes back without an attempt, and the topic claims nothing until
/// the runtime begins handlers again.
pub(crate) const BEGINS_WITHIN: Duration = Duration::from_secs(2);

/// When the lease ends, by the node's clock. The tasks of runs ask, too: a handler starts at the first poll of its task, long after the
/// topic handed it over if the process was paused meanwhile.
#[derive(Debug, Default)]
pub(crate) struct LeaseEnd(AtomicU64);

impl LeaseEnd {
    /// Until when the lease is provably valid.
    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Acquire))
    }

    /// The lease does not end before this.
    pub(crate) fn extend(&self, end: Duration) {
        let end = end.max(self.get());
        self.0.store(u64::try_from(end.as_nanos()).unwrap_or(u64::MAX), Release);
    }
}

/// What the tasks of all runs of a topic share.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(crate) listener: Arc<dyn ErasedListener>,
    pub(crate) environment: Environment,
    pub(crate) lease: Arc<LeaseEnd>,
    pub(crate) events: mpsc::UnboundedSender<RunEvent>,
}

impl Tasks {
    pub(crate) fn send(&self, event: RunEvent) {
        // This fails only if the topic is gone; then the run does not matter.
        let _ = self.events.send(event);
    }

    /// Asks the listener; `None`: it panicked.
    pub(crate) fn retry_delay(&self, failed: u32, failure: &Failure) -> Option<RetryDelay> {
        let delay = catch_unwind(AssertUnwindSafe(|| self.listener.retry_delay(failed, failure)));
        delay.map_err(text).ok()
    }
}

impl Notes for Tasks {
    fn checkpoint(&self, id: &JobId, token: Token, state: KeptState) -> oneshot::Receiver<Result<(), CheckpointError>> {
        let (answer, answered) = oneshot::channel();
        self.send(RunEvent::Checkpoint(Checkpoint { id: id.clone(), token, state, answer }));
        answered
    }

    fn progress(&self, id: &JobId, token: Token, run: &Arc<RunControl>) {
        self.send(RunEvent::Progress(id.clone(), token, Arc::clone(run)));
    }
}

/// The failure of `on_due` for which `retry_delay` is asked.
fn failure_of(ended: &Ended, environment: &Environment) -> Option<Failure> {
    match ended {
        Ended::Panicked(message) => Some(Failure::new(Cause::Panic, message.clone())),
        Ended::Returned(Returned::Failed(failure)) if failure.cause != Cause::Decode && !failure.is_fatal() => {
            Some(failure.clone())
        }
        Ended::Returned(Returned::Decided(decision) | Returned::Keeping(decision, _)) => {
            change(decision, environment).err()
        }
        _ => None,
    }
}

/// Drops a value of the user here, on the user's runtime. Its drop is user code, which may panic.
fn drop_here<T>(value: T) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(move || drop(value))) {
        std::mem::forget(again);
    }
}

/// The text of a panic of user code. The drop of its value is user code, too, and may panic again.
fn text(panic: Box<dyn Any + Send>) -> String {
    let text = panic_message(&*panic);
    drop_here(panic);
    text
}

/// What a decision asks of the store, or why dq cannot carry it out, which is a failure of the handler.
pub(crate) fn change(decision: &Decision, environment: &Environment) -> Result<Change, Failure> {
    let text = match decision {
        Decision::Ack => return Ok(Change::Ack),
        Decision::Rejoin => return Ok(Change::Rejoin(RejoinDue::AsAdded)),
        Decision::RejoinAfter(delay) => return Ok(Change::Rejoin(RejoinDue::After(*delay))),
        Decision::BackOff(delay) => return Ok(Change::Rejoin(RejoinDue::BackOff(*delay))),
        Decision::RejoinAt(time) => {
            let at = Timestamp::from(*time);
            if at.since(environment.wall()) <= MAX_DELAY {
                return Ok(Change::Rejoin(RejoinDue::At(at)));
            }
            "rejoin_at: the time is more than ten years away; the limit is ten years"
        }
        Decision::Park => return Ok(Change::Park),
        Decision::Dead(reason) => return Err(Failure::fatal(Cause::Error, reason)),
        Decision::BadDelay(text) => text,
    };
    Err(Failure::new(Cause::Error, text))
}

/// The failure of a parked job for which `on_park_timeout` wants a retry.
pub(crate) fn wanted_retry() -> Failure {
    Failure::new(Cause::Error, "no outcome of the parked job was reported, and `on_park_timeout` asked for a retry")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::topic::slab::{OfHeld, Slab};

    #[test]
    fn each_job_leaves_its_batch_once_and_the_others_keep_their_places() {
        let (all, mut slab) = (Arc::<RunControl>::default(), Slab::<OfHeld, ()>::default());
        let [a, b, c] = ["a", "b", "c"].map(|id| RunJob {
            id: JobId::new(id).unwrap(),
            held: slab.insert(()),
            control: RunControl::of_batch(&all),
        });
        let second = b.held;
        let mut jobs = RunJobs::batch(vec![a, b, c], 7, all.clone());
        let RunJobs::Batch(batch) = &mut jobs else { panic!("it is a batch") };
        assert_eq!(batch.place(second), Some(1));
        let taken = batch.take(1).unwrap();
        assert_eq!(taken.id.as_str(), "b");
        assert!(batch.take(1).is_none() && batch.take(9).is_none());
        assert_eq!(batch.place(second), None);
        assert_eq!(jobs.left(), 2);
        let left: Vec<_> = jobs.into_list().into_iter().map(|(place, job)| (place, job.id.to_string())).collect();
        assert_eq!(left, [(0, "a".into()), (2, "c".into())]);
    }
}
