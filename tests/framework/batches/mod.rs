//! Listeners that take batches.

mod ends;
mod outcomes;
mod sizes;
mod splits;

use std::future::Future;
use std::sync::Arc;

use dq::config::TopicOverrides;
use dq::listener::RetryDelay;
use dq::prelude::*;
use dq::testing::Harness;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::scripted_listener::{Log, TestJob, start};

type OnBatch = dyn Fn(Batch<TestJob>) -> BoxFuture<'static, Result<Decided, JobError>> + Send + Sync;
type Delays = dyn Fn(u32, &Failure) -> RetryDelay + Send + Sync;

/// What a [`Scripted`] does with a batch. Its log has the ids of each batch, and the final retries.
#[derive(Clone)]
pub struct BatchScript {
    pub log: Log,
    on_batch: Arc<OnBatch>,
    delays: Arc<Delays>,
}

impl BatchScript {
    pub fn new<F>(on_batch: impl Fn(Batch<TestJob>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Decided, JobError>> + Send + 'static,
    {
        let on_batch = Arc::new(move |batch| on_batch(batch).boxed());
        Self { log: Log::new(), on_batch, delays: Arc::new(|_, _| RetryDelay::BySettings) }
    }

    pub fn acks() -> Self {
        Self::new(|batch| async { Ok(batch.rest().ack()) })
    }

    pub fn retry_delay(mut self, delays: impl Fn(u32, &Failure) -> RetryDelay + Send + Sync + 'static) -> Self {
        self.delays = Arc::new(delays);
        self
    }

    pub fn on(
        &self,
        factory: ContextFactory,
        settings: impl FnOnce(TopicOverrides) -> TopicOverrides,
    ) -> ContextFactory {
        factory.provide(self.clone()).batch_listener::<Scripted>().topic("work", settings)
    }

    /// Starts a node whose batches have at most ten jobs.
    pub async fn start(&self, settings: impl FnOnce(TopicOverrides) -> TopicOverrides) -> Harness {
        start(|factory| self.on(factory, settings)).await
    }

    /// Starts another node on the store of `first`.
    pub async fn beside(&self, first: &Harness, seed: u64) -> Harness {
        first.another(seed, |factory| self.on(factory, |topic| topic.timeout("0s"))).await
    }

    /// Removes and returns the ids of the batches so far.
    pub fn batches(&self) -> Vec<Vec<String>> {
        let lines = self.log.take_without_times();
        let batches = lines.iter().filter_map(|line| line.strip_prefix("batch "));
        batches.map(|ids| ids.split(' ').map(str::to_owned).collect()).collect()
    }
}

#[delay_listener(register = false, batch_size = 10)]
pub struct Scripted {
    script: BatchScript,
}

impl BatchListener for Scripted {
    type Job = TestJob;

    async fn on_batch(&self, batch: Batch<TestJob>) -> Result<Decided, JobError> {
        let ids: Vec<_> = batch.iter().map(|job| job.id().as_str()).collect();
        self.script.log.record(format_args!("batch {}", ids.join(" ")));
        (self.script.on_batch)(batch).await
    }

    async fn on_exhausted(&self, job: Job<TestJob>, cause: &Failure) {
        self.script.log.record(format_args!("final {} {}", job.id(), cause.cause));
    }

    async fn on_park_timeout(&self, job: Job<TestJob>) -> Result<UnackedDecision, JobError> {
        self.script.log.record(format_args!("aged {}", job.id()));
        Ok(UnackedDecision::Drop)
    }

    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        (self.script.delays)(failed, failure)
    }
}

/// Adds jobs of these ids in one step.
pub async fn add_all(dq: &Harness, ids: impl IntoIterator<Item = impl ToString>) {
    let added = dq.provider().add_many(ids.into_iter().map(crate::scripted_listener::test_job)).await.unwrap();
    assert!(added.iter().all(Result::is_ok));
}
