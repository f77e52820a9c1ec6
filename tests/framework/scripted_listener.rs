//! A listener whose behaviour a test scripts, and which records its calls and their times.

use std::future::{Future, pending};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::config::TopicOverrides;
use dq::environment::TokioClock;
use dq::job::{AppName, JobId, ProducerId, Record, TopicKey, TopicName};
use dq::listener::RetryDelay;
use dq::prelude::*;
use dq::store::{Due, NewJob, Numbered, Store};
use dq::testing::Harness;
use dq_tests::{Faults, FaultyStore};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::backend::store_under;

pub const MS: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3600);
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// The job of most tests: an id and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, DelayJob)]
#[job(topic = "work")]
pub struct TestJob {
    #[job(id)]
    pub id: String,
}

pub fn test_job(id: impl ToString) -> TestJob {
    TestJob { id: id.to_string() }
}

/// A log of what happened, each line with the time since the start: `90s due a 0`.
#[derive(Clone)]
pub struct Log {
    start: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    pub fn new() -> Self {
        Self { start: Instant::now(), lines: Arc::default() }
    }

    pub fn record(&self, what: impl std::fmt::Display) {
        self.lines.lock().unwrap().push(format!("{:?} {what}", self.start.elapsed()));
    }

    /// Removes and returns the lines recorded so far.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    /// Removes and returns the lines recorded so far, without their times.
    pub fn take_without_times(&self) -> Vec<String> {
        self.take().into_iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
    }
}

type OnDue = dyn Fn(Job<TestJob>, Channel) -> BoxFuture<'static, Result<Decided, JobError>> + Send + Sync;
type Finally = dyn Fn(Job<TestJob>, Failure) -> BoxFuture<'static, ()> + Send + Sync;
type Unacked = dyn Fn(Job<TestJob>) -> BoxFuture<'static, Result<UnackedDecision, JobError>> + Send + Sync;
type Delays = dyn Fn(u32, &Failure) -> RetryDelay + Send + Sync;

/// What a [`ScriptedListener`] does. By default its `on_exhausted` does nothing and its `on_park_timeout` drops the job.
#[derive(Clone)]
pub struct Script {
    pub log: Log,
    on_due: Arc<OnDue>,
    finally: Arc<Finally>,
    unacked: Arc<Unacked>,
    delays: Arc<Delays>,
}

impl Script {
    /// Calls `on_due` for each due job.
    pub fn new<F>(on_due: impl Fn(Job<TestJob>, Channel) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Decided, JobError>> + Send + 'static,
    {
        Self {
            log: Log::new(),
            on_due: Arc::new(move |job, channel| on_due(job, channel).boxed()),
            finally: Arc::new(|_, _| async {}.boxed()),
            unacked: Arc::new(|_| async { Ok(UnackedDecision::Drop) }.boxed()),
            delays: Arc::new(|_, _| RetryDelay::BySettings),
        }
    }

    pub fn acks() -> Self {
        Self::new(|_, channel| async { Ok(channel.ack()) })
    }

    pub fn parks() -> Self {
        Self::new(|_, channel| async { Ok(channel.park()) })
    }

    pub fn fails(error: &'static str) -> Self {
        Self::new(move |_, _| async move { Err(error.into()) })
    }

    /// A handler that never returns.
    pub fn hangs() -> Self {
        Self::new(|_, _| pending())
    }

    /// A handler that acks after `time`.
    pub fn takes(time: Duration) -> Self {
        Self::new(move |_, channel| async move {
            handler_takes(time).await;
            Ok(channel.ack())
        })
    }

    pub fn on_exhausted<F>(mut self, finally: impl Fn(Job<TestJob>, Failure) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.finally = Arc::new(move |job, cause| finally(job, cause).boxed());
        self
    }

    pub fn on_park_timeout<F>(mut self, unacked: impl Fn(Job<TestJob>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<UnackedDecision, JobError>> + Send + 'static,
    {
        self.unacked = Arc::new(move |job| unacked(job).boxed());
        self
    }

    pub fn retry_delay(mut self, delays: impl Fn(u32, &Failure) -> RetryDelay + Send + Sync + 'static) -> Self {
        self.delays = Arc::new(delays);
        self
    }

    /// Adds the listener to a factory.
    pub fn on(
        &self,
        factory: ContextFactory,
        settings: impl FnOnce(TopicOverrides) -> TopicOverrides,
    ) -> ContextFactory {
        factory.provide(self.clone()).listener::<ScriptedListener>().topic("work", settings)
    }

    /// Starts a node with this listener on a new store.
    pub async fn start(&self, settings: impl FnOnce(TopicOverrides) -> TopicOverrides) -> Harness {
        start(|factory| self.on(factory, settings)).await
    }

    /// Starts a node with this listener on a new store, adds the job `a`, and waits until all tasks wait.
    pub async fn runs(&self, settings: impl FnOnce(TopicOverrides) -> TopicOverrides) -> Harness {
        let dq = self.start(settings).await;
        dq.provider().add(test_job("a")).await.unwrap();
        dq.settle().await;
        dq
    }

    /// Starts a node with this listener on a new store, adds the job `a`, and lets `time` pass.
    pub async fn lives(&self, settings: impl FnOnce(TopicOverrides) -> TopicOverrides, time: Duration) -> Harness {
        let dq = self.start(settings).await;
        dq.provider().add(test_job("a")).await.unwrap();
        dq.advance(time).await;
        dq
    }

    /// Starts a node with this listener on a new store whose requests a test lets fail.
    pub async fn on_faulty(&self, settings: impl FnOnce(TopicOverrides) -> TopicOverrides) -> (Harness, Arc<Faults>) {
        let (store, faults) = faulty_store();
        (Harness::start_on(store, 1, |factory| self.on(factory, settings)).await, faults)
    }

    /// Starts another node with this listener on the store of `first`.
    pub async fn beside(
        &self,
        first: &Harness,
        seed: u64,
        settings: impl FnOnce(TopicOverrides) -> TopicOverrides,
    ) -> Harness {
        first.another(seed, |factory| self.on(factory, settings)).await
    }
}

/// A new store under tokio's clock, whose requests a test lets fail.
pub fn faulty_store() -> (Arc<dyn Store>, Arc<Faults>) {
    FaultyStore::over(store_under(Arc::new(TokioClock::new())))
}

/// Starts a node on a new store under tokio's clock.
pub async fn start(with: impl FnOnce(ContextFactory) -> ContextFactory) -> Harness {
    Harness::start_on(store_under(Arc::new(TokioClock::new())), 1, with).await
}

/// Stands for the work of a handler: takes `time` on the paused clock.
pub async fn handler_takes(time: Duration) {
    tokio::time::sleep(time).await; // handler_takes
}

/// Records `dropped` when it is dropped.
pub struct RecordDrop(pub Log);

impl Drop for RecordDrop {
    fn drop(&mut self) {
        self.0.record("dropped");
    }
}

/// Leaves all settings of a topic at their defaults.
pub fn default_settings(topic: TopicOverrides) -> TopicOverrides {
    topic
}

/// Lets handlers take any time.
pub fn no_timeout(topic: TopicOverrides) -> TopicOverrides {
    topic.timeout("0s")
}

/// The topic of [`TestJob`] in the store.
pub fn work_key() -> TopicKey {
    TopicKey { app: AppName::new("test").unwrap(), topic: TopicName::new("work").unwrap() }
}

/// Adds a job that is due in a second, with any record, as another program may.
pub async fn add_record(dq: &Harness, id: JobId, record: Record) {
    let job = NewJob { due: Due::After(SECOND), ..NewJob::new(id, record) };
    let producer = dq.store().producer(&work_key(), &ProducerId::new("tool"));
    producer.add(Numbered { number: 1, items: vec![job] }).await.unwrap();
}

#[delay_listener(register = false)]
pub struct ScriptedListener {
    script: Script,
}

impl DelayListener for ScriptedListener {
    type Job = TestJob;

    async fn on_due(&self, job: Job<TestJob>, channel: Channel) -> Result<Decided, JobError> {
        self.script.log.record(format_args!("due {} {}", job.id(), job.attempt()));
        (self.script.on_due)(job, channel).await
    }

    async fn on_exhausted(&self, job: Job<TestJob>, cause: &Failure) {
        self.script.log.record(format_args!("final {} {} {}", job.id(), job.attempt(), cause.cause));
        (self.script.finally)(job, cause.clone()).await;
    }

    async fn on_park_timeout(&self, job: Job<TestJob>) -> Result<UnackedDecision, JobError> {
        self.script.log.record(format_args!("aged {} {}", job.id(), job.attempt()));
        (self.script.unacked)(job).await
    }

    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        (self.script.delays)(failed, failure)
    }
}

/// What tests compare of a job in the store.
pub struct StoredJob {
    pub state: dq::job::State,
    pub attempts: u16,
    pub cause: Option<dq::job::Cause>,
    pub error: String,
}

/// Returns the job with this id. Panics if the store has none.
pub async fn stored_job(dq: &Harness, id: &str) -> StoredJob {
    let seen = dq.job::<TestJob>(id).await.expect("the store has the job");
    let (state, details) = (seen.state(), seen.details.unwrap());
    StoredJob { state, attempts: details.attempts, cause: details.cause, error: details.error.unwrap_or_default() }
}
