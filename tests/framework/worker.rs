//! A listener that does what a test says, and tells what it was asked to do and when.

use std::future::{Future, pending};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::config::TopicOverrides;
use dq::environment::TokioClock;
use dq::listener::RetryDelay;
use dq::prelude::*;
use dq::testing::Harness;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::stage::store_under;

pub const MS: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3600);
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// The job of most tests: nothing but its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, DelayJob)]
#[job(topic = "work")]
pub struct Work {
    #[job(id)]
    pub id: String,
}

pub fn work(id: impl ToString) -> Work {
    Work { id: id.to_string() }
}

/// What happened, each line with the time since the start: `90s due a 0`.
#[derive(Clone)]
pub struct Log {
    start: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    pub fn new() -> Self {
        Self { start: Instant::now(), lines: Arc::default() }
    }

    pub fn say(&self, what: impl std::fmt::Display) {
        self.lines.lock().unwrap().push(format!("{:?} {what}", self.start.elapsed()));
    }

    /// What was said since the last time somebody asked.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }

    /// The same, without the times.
    pub fn take_whats(&self) -> Vec<String> {
        self.take().into_iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
    }
}

type OnDue = dyn Fn(Job<Work>, Channel) -> BoxFuture<'static, Result<Decided, JobError>> + Send + Sync;
type Finally = dyn Fn(Job<Work>, Failure) -> BoxFuture<'static, ()> + Send + Sync;
type Unacked = dyn Fn(Job<Work>) -> BoxFuture<'static, Result<UnackedDecision, JobError>> + Send + Sync;
type Delays = dyn Fn(u32, &Failure) -> RetryDelay + Send + Sync;

/// What a [`Worker`] does. Unless told otherwise it acks, its `final_retry` does nothing, and it drops aged jobs.
#[derive(Clone)]
pub struct Script {
    pub log: Log,
    on_due: Arc<OnDue>,
    finally: Arc<Finally>,
    unacked: Arc<Unacked>,
    delays: Arc<Delays>,
}

impl Script {
    /// Does this for each due job.
    pub fn new<F>(on_due: impl Fn(Job<Work>, Channel) -> F + Send + Sync + 'static) -> Self
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

    /// Never returns by itself.
    pub fn hangs() -> Self {
        Self::new(|_, _| pending())
    }

    /// Acks after this time.
    pub fn takes(time: Duration) -> Self {
        Self::new(move |_, channel| async move {
            handler_takes(time).await;
            Ok(channel.ack())
        })
    }

    pub fn finally<F>(mut self, finally: impl Fn(Job<Work>, Failure) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.finally = Arc::new(move |job, cause| finally(job, cause).boxed());
        self
    }

    pub fn unacked<F>(mut self, unacked: impl Fn(Job<Work>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<UnackedDecision, JobError>> + Send + 'static,
    {
        self.unacked = Arc::new(move |job| unacked(job).boxed());
        self
    }

    pub fn delays(mut self, delays: impl Fn(u32, &Failure) -> RetryDelay + Send + Sync + 'static) -> Self {
        self.delays = Arc::new(delays);
        self
    }

    /// Adds the worker to a node.
    pub fn on(
        &self,
        factory: ContextFactory,
        settings: impl FnOnce(TopicOverrides) -> TopicOverrides,
    ) -> ContextFactory {
        factory.provide(self.clone()).listener::<Worker>().topic("work", settings)
    }

    /// A node on a store of its own with this worker.
    pub async fn start(&self, settings: impl FnOnce(TopicOverrides) -> TopicOverrides) -> Harness {
        start(|factory| self.on(factory, settings)).await
    }

    /// Another node beside `first`, on its store.
    pub async fn beside(
        &self,
        first: &Harness,
        seed: u64,
        settings: impl FnOnce(TopicOverrides) -> TopicOverrides,
    ) -> Harness {
        first.another(seed, |factory| self.on(factory, settings)).await
    }
}

/// A node on a new store under tokio's clock.
pub async fn start(with: impl FnOnce(ContextFactory) -> ContextFactory) -> Harness {
    Harness::start_on(store_under(Arc::new(TokioClock::new())), 1, with).await
}

/// A handler's work that takes this long on the paused clock.
pub async fn handler_takes(time: Duration) {
    tokio::time::sleep(time).await; // handler_takes
}

/// No settings.
pub fn usual(topic: TopicOverrides) -> TopicOverrides {
    topic
}

#[delay_listener(register = false)]
pub struct Worker {
    script: Script,
}

impl DelayListener for Worker {
    type Job = Work;

    async fn on_due(&self, job: Job<Work>, channel: Channel) -> Result<Decided, JobError> {
        self.script.log.say(format_args!("due {} {}", job.id(), job.attempt()));
        (self.script.on_due)(job, channel).await
    }

    async fn final_retry(&self, job: Job<Work>, cause: &Failure) {
        self.script.log.say(format_args!("final {} {} {}", job.id(), job.attempt(), cause.cause));
        (self.script.finally)(job, cause.clone()).await;
    }

    async fn process_unacked(&self, job: Job<Work>) -> Result<UnackedDecision, JobError> {
        self.script.log.say(format_args!("aged {} {}", job.id(), job.attempt()));
        (self.script.unacked)(job).await
    }

    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        (self.script.delays)(failed, failure)
    }
}

/// What a test wants to know of a kept job.
pub struct Kept {
    pub state: dq::job::State,
    pub attempts: u16,
    pub cause: Option<dq::job::Cause>,
    pub error: String,
}

/// The job with this id, which must be there.
pub async fn kept(dq: &Harness, id: &str) -> Kept {
    let seen = dq.job::<Work>(id).await.expect("the job is kept");
    let (state, details) = (seen.state(), seen.details.unwrap());
    Kept { state, attempts: details.attempts, cause: details.cause, error: details.error.unwrap_or_default() }
}
