//! A batch of jobs, as its handler receives it: the jobs, and what decides each of them.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::slice::Iter;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

use super::channel::{Channel, Decided};
use super::control::RunControl;
use super::erased::{Outcomes, Returned, returned};
use super::failure::JobError;
use super::job::Job;
use super::notes::CheckpointError;
use crate::job::StateError;
use crate::time::IntoDelay;

/// The jobs that one call of a handler takes: a slice of [`Job`]s, and the methods that decide each of them.
///
/// A decision counts at once: an error, a panic or a timeout that comes later concerns only the jobs that were not decided. What
/// the handler returns decides the rest: `Ok(())` acks it, as `Ok(batch.rest().ack())` does, and an `Err` fails it. Each job keeps
/// its own fence, attempts and retries.
///
/// ```
/// # use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
/// # #[job(topic = "order-timeout", delay = "30m")]
/// # struct CloseOrder { #[job(id)] order: u64 }
/// # async fn close_all(orders: &[u64]) -> Result<Vec<u64>, std::io::Error> { Ok(vec![]) }
/// #[delay_listener(batch_size = 500)]
/// async fn close(batch: Batch<CloseOrder>) -> Result<(), JobError> {
///     let orders: Vec<u64> = batch.iter().map(|job| job.order).collect();
///     let locked = close_all(&orders).await?; // one statement; an error fails them all
///     for job in batch.iter().filter(|job| locked.contains(&job.order)) {
///         batch.rejoin_after(job, "2m");
///     }
///     Ok(()) // acks the others
/// }
/// ```
pub struct Batch<P> {
    /// In the order of their places.
    jobs: Vec<Job<P>>,
    outcomes: Arc<dyn Outcomes>,
    run: Arc<RunControl>,
}

impl<P> Batch<P> {
    pub(crate) const fn new(jobs: Vec<Job<P>>, outcomes: Arc<dyn Outcomes>, run: Arc<RunControl>) -> Self {
        Self { jobs, outcomes, run }
    }

    /// The job is finished, as after [`Channel::ack`].
    ///
    /// # Panics
    /// If the job is not of this batch. So do the other methods that take a job.
    #[track_caller]
    pub fn ack(&self, job: &Job<P>) {
        self.decide(job, Channel::new().ack());
    }

    /// The job is finished with this result, as after [`Channel::ack_with`].
    ///
    /// # Errors
    /// [`StateError`] if it is too large, or cannot be written as JSON; then the job is not decided.
    #[track_caller]
    pub fn ack_with<R: Serialize + ?Sized>(&self, job: &Job<P>, result: &R) -> Result<(), StateError> {
        self.decide(job, Channel::new().ack_with(result)?);
        Ok(())
    }

    /// The run of this job has failed: its retry policy decides what follows. It is what an `Err` is to a single job.
    ///
    /// dq calls the listener's `retry_delay` before this returns.
    #[track_caller]
    pub fn fail(&self, job: &Job<P>, error: impl Into<JobError>) {
        self.end(job, returned(Err(error.into())));
    }

    /// The job runs again, after the delay it was added with, as after [`Channel::rejoin`].
    #[track_caller]
    pub fn rejoin(&self, job: &Job<P>) {
        self.decide(job, Channel::new().rejoin());
    }

    /// The job runs again after `delay`, as after [`Channel::rejoin_after`]. This spends no attempt.
    #[track_caller]
    pub fn rejoin_after(&self, job: &Job<P>, delay: impl IntoDelay) {
        self.decide(job, Channel::new().rejoin_after(delay));
    }

    /// The job runs again after `delay`, and until then no node starts a job of its group or topic, as after [`Channel::back_off`].
    #[track_caller]
    pub fn back_off(&self, job: &Job<P>, delay: impl IntoDelay) {
        self.decide(job, Channel::new().back_off(delay));
    }

    /// The job runs again at `time`, as after [`Channel::rejoin_at`]. This spends no attempt.
    #[track_caller]
    pub fn rejoin_at(&self, job: &Job<P>, time: SystemTime) {
        self.decide(job, Channel::new().rejoin_at(time));
    }

    /// The job is UNACKED until a call from outside ends it, as after [`Channel::park`].
    #[track_caller]
    pub fn park(&self, job: &Job<P>) {
        self.decide(job, Channel::new().park());
    }

    /// No retry can help the job: it is DEAD for this reason, as after [`Channel::dead`].
    #[track_caller]
    pub fn dead(&self, job: &Job<P>, reason: impl Into<String>) {
        self.decide(job, Channel::new().dead(reason));
    }

    /// Saves a state for the next run of this job, as [`Channel::checkpoint`] does.
    ///
    /// # Errors
    /// [`CheckpointError`](crate::listener::CheckpointError).
    pub fn checkpoint<S: Serialize + ?Sized>(
        &self,
        job: &Job<P>,
        state: &S,
    ) -> impl Future<Output = Result<(), CheckpointError>> + Send + 'static + use<P, S> {
        Channel::of(job.delivery()).checkpoint(state)
    }

    /// Says how far the work on this job has come, as [`Channel::progress`] does.
    pub fn progress(&self, job: &Job<P>, done: u64, total: u64, text: impl AsRef<str>) {
        Channel::of(job.delivery()).progress(done, total, text);
    }

    /// Ends the batch: what its channel decides, and the handler returns, is for all jobs that were not decided.
    ///
    /// `Ok(batch.rest().ack())`, `Ok(batch.rest().rejoin_after("2m"))`, and so on.
    #[must_use = "decide with it, and return the decision"]
    pub fn rest(self) -> Channel {
        Channel::new()
    }

    /// Completes when dq gives the whole batch up: its timeout passed, the node lost its lease, or the grace of a shutdown ended.
    /// [`Job::cancelled`] is for one job, and completes then, too. Cancel safe.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + Sync + 'static + use<P> {
        self.run.token().cancelled_owned()
    }

    #[track_caller]
    fn decide(&self, job: &Job<P>, decided: Decided) {
        self.end(job, returned(Ok(decided)));
    }

    #[track_caller]
    fn end(&self, job: &Job<P>, returned: Returned) {
        let own = self.jobs.binary_search_by_key(&job.place(), Job::place).ok().map(|index| &self.jobs[index]);
        let is_own = own.is_some_and(|own| own.id() == job.id() && own.fence() == job.fence());
        assert!(is_own, "the job `{}` is not of this batch", job.id());
        if !self.outcomes.ended(job.place(), returned) {
            tracing::warn!(job.id = %job.id(), fence = job.fence().0, "a batch decided this job twice, or after its end; the first outcome counts");
        }
    }
}

impl<P> Deref for Batch<P> {
    type Target = [Job<P>];

    fn deref(&self) -> &[Job<P>] {
        &self.jobs
    }
}

impl<'a, P> IntoIterator for &'a Batch<P> {
    type Item = &'a Job<P>;
    type IntoIter = Iter<'a, Job<P>>;

    fn into_iter(self) -> Self::IntoIter {
        self.jobs.iter()
    }
}

/// Shows how many jobs there are, and never a payload.
impl<P> fmt::Debug for Batch<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("jobs", &self.jobs.len()).finish_non_exhaustive()
    }
}
