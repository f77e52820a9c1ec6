//! The arguments of a handler, made by a test: no store, no clock, no registry.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;

use crate::DelayJob;
use crate::config::NodeSettings;
use crate::environment::{Environment, Seeded, TokioClock};
use crate::job::{AppName, Fence, JobId, KeptState, TopicName};
use crate::listener::{Channel, Delivered, Job};
use crate::provider::Provider;
use crate::store::memory::MemoryStore;

/// Makes a job for a handler: first attempt, due now, fence 1, with the id of its payload (or `test`).
///
/// [`FakeJob`] makes other jobs.
pub fn job<P: DelayJob>(payload: P) -> Job<P> {
    FakeJob::new(payload).build()
}

/// Makes the channel of a run. [`Decided::decision`](crate::Decided::decision) returns what the handler decided, and
/// [`Decided::state`](crate::Decided::state) what it keeps. A checkpoint succeeds, and nothing reads it.
pub const fn channel() -> Channel {
    Channel::of_a_test()
}

/// Makes a provider on a memory store of its own. The store keeps the jobs, and no node runs them: check them with
/// [`get`](Provider::get), [`waiting`](Provider::waiting) or [`counts`](Provider::counts).
///
/// # Panics
/// Outside a tokio runtime.
pub fn provider() -> Provider {
    let app = AppName::new("test").expect("the name is valid");
    let store = Arc::new(MemoryStore::new(Arc::new(TokioClock::new())));
    Provider::root(app, store, Environment::on_this_runtime(Arc::new(Seeded::new(1))), NodeSettings::default())
}

/// Builds a job for a handler: `FakeJob::new(payload).attempt(2).build()`.
pub struct FakeJob<P> {
    payload: P,
    delivery: Delivered,
}

/// Shows what is delivered, never the payload.
impl<P> fmt::Debug for FakeJob<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeJob").field("delivery", &self.delivery).finish_non_exhaustive()
    }
}

impl<P: DelayJob> FakeJob<P> {
    /// Starts with a first attempt that is due now, with the id of its payload (or `test`) and fence 1.
    ///
    /// # Panics
    /// If the topic or the id of the payload is not valid.
    pub fn new(payload: P) -> Self {
        let id = payload.job_id().unwrap_or_else(|| JobId::new("test")).expect("the id of the payload is valid");
        let delivery = Delivered {
            topic: TopicName::new(P::TOPIC).expect("the topic of the payload is valid"),
            id,
            fence: Fence(1),
            due: SystemTime::now().into(),
            attempt: 0,
            headers: Vec::new(),
            state: None,
            is_acked: false,
            notes: None,
            run: Arc::default(),
        };
        Self { payload, delivery }
    }

    /// Sets the state that an earlier run has left.
    ///
    /// # Panics
    /// If it has more than 64 KiB, or cannot be written as JSON.
    #[must_use]
    pub fn state<S: Serialize + ?Sized>(mut self, state: &S) -> Self {
        self.delivery.state = Some(KeptState::of(state).expect("the state can be kept"));
        self
    }

    /// Sets the id.
    ///
    /// # Panics
    /// If the id is not valid.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.delivery.id = JobId::new(id).expect("the id is valid");
        self
    }

    /// Sets the number of failed runs before this one.
    #[must_use]
    pub const fn attempt(mut self, attempt: u32) -> Self {
        self.delivery.attempt = attempt;
        self
    }

    /// Sets the fence.
    #[must_use]
    pub const fn fence(mut self, fence: u64) -> Self {
        self.delivery.fence = Fence(fence);
        self
    }

    /// Sets the time at which the job was due.
    #[must_use]
    pub fn due(mut self, due: SystemTime) -> Self {
        self.delivery.due = due.into();
        self
    }

    /// Sets the headers.
    #[must_use]
    pub fn headers(mut self, headers: &[(&str, &str)]) -> Self {
        self.delivery.headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        self
    }

    /// Makes the job.
    pub fn build(self) -> Job<P> {
        Job::new(self.payload, self.delivery)
    }

    /// Makes the job of this place of a batch.
    pub(super) fn build_at(self, place: usize) -> Job<P> {
        Job::of_batch(self.payload, self.delivery, place)
    }

    /// Makes the job, and a function that cancels its run: [`Job::cancelled`] completes when the test calls it.
    ///
    /// ```
    /// # use dq::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
    /// # #[job(topic = "export")]
    /// # struct Export;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (job, cancel) = dq::testing::FakeJob::new(Export).build_cancellable();
    /// cancel();
    /// job.cancelled().await;
    /// # }
    /// ```
    pub fn build_cancellable(self) -> (Job<P>, impl FnOnce() + Send + Sync + 'static + use<P>) {
        let run = self.delivery.run.clone();
        (self.build(), move || run.cancel())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Serialize, serde::Deserialize, DelayJob)]
    #[job(topic = "export")]
    struct Export;

    #[tokio::test]
    async fn cancelled_completes_once_the_run_is_cancelled_even_after_its_job_is_gone() {
        let (job, cancel) = FakeJob::new(Export).build_cancellable();
        let cancelled = tokio::spawn(job.cancelled());
        tokio::task::yield_now().await;
        assert!(!job.is_cancelled() && !cancelled.is_finished());
        cancel();
        assert!(job.is_cancelled());
        job.cancelled().await;
        drop(job);
        cancelled.await.unwrap();
    }
}
