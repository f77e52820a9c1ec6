//! A node on a memory store, under a clock that the test controls.

use std::sync::Arc;
use std::time::Duration;

use crate::config::EffectiveSettings;
use crate::context::{Context, ContextFactory, Error, Health, HealthProbe, Stopped};
use crate::environment::{Environment, Seeded, TokioClock};
use crate::job::{DelayJob, ToJobId};
use crate::provider::{JobInfo, Provider};
use crate::store::memory::MemoryStore;
use crate::store::{Store, TopicCounts};

use super::in_flight::InFlight;

/// A node on a memory store of its own, under tokio's paused clock: a test takes no real time, and is deterministic.
///
/// The node runs only the listeners that the test names, and ignores `DQ_*` variables.
///
/// ```
/// # use std::time::Duration;
/// # use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Debug, Serialize, Deserialize, DelayJob)]
/// #[job(topic = "order-timeout", delay = "30m")]
/// struct CloseOrder { #[job(id)] order: u64 }
///
/// #[delay_listener]
/// async fn close(job: Job<CloseOrder>) -> Result<(), JobError> {
///     Err(format!("order {} is locked", job.order).into())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let dq = dq::testing::Harness::start(|factory| factory.listener::<close>()).await;
/// dq.provider().add(CloseOrder { order: 7 }).await.unwrap();
/// dq.advance(Duration::from_secs(30 * 60)).await;
/// let job = dq.job::<CloseOrder>(7).await.unwrap();
/// assert_eq!(job.details.unwrap().attempts, 1); // the job failed once and waits for its retry
/// # }
/// ```
#[derive(Debug)]
pub struct Harness {
    context: Context,
    store: Arc<dyn Store>,
}

/// How often the harness yields to other tasks before it checks whether anything still changes.
const YIELDS: usize = 64;

/// Why the node of a test did not start.
fn problem(error: &Error) -> String {
    if let Error::Start(start) = error
        && start.is_only_no_listener()
    {
        return "the test names no listener, and the harness runs only those: write `|factory| factory.listener::<close>()`".into();
    }
    error.to_string()
}

impl Harness {
    /// Starts a node, and pauses tokio's clock. `with` names the node's listeners, provides what they need, and may
    /// change settings.
    ///
    /// # Panics
    /// If the node cannot start (with the text of its problems), or on a multi-threaded runtime, whose clock cannot be
    /// paused.
    pub async fn start(with: impl FnOnce(ContextFactory) -> ContextFactory) -> Self {
        if !TokioClock::is_paused() {
            tokio::time::pause();
        }
        Self::start_on(Arc::new(MemoryStore::new(Arc::new(TokioClock::new()))), 1, with).await
    }

    /// Starts another node on the same store, as another process would. `seed` decides its identity and jitter: use
    /// another seed for each node (the first node has 1).
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub async fn another(&self, seed: u64, with: impl FnOnce(ContextFactory) -> ContextFactory) -> Self {
        Self::start_on(self.store.clone(), seed, with).await
    }

    /// Starts a node on this store, for example on one that fails. Call it under a paused clock. `seed` decides the
    /// node's identity and jitter.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[doc(hidden)]
    pub async fn start_on(
        store: Arc<dyn Store>,
        seed: u64,
        with: impl FnOnce(ContextFactory) -> ContextFactory,
    ) -> Self {
        let factory = ContextFactory::new("test")
            .without_inventory()
            .variables([("", ""); 0])
            .environment(Environment::on_this_runtime(Arc::new(Seeded::new(seed))))
            .store(store.clone());
        match with(factory).start().await {
            Ok(mut context) => {
                context.set_quiet(true);
                let harness = Self { context, store };
                harness.settle().await;
                harness
            }
            Err(error) => panic!("{}", problem(&error)),
        }
    }

    /// The provider of the node.
    pub const fn provider(&self) -> &Provider {
        self.context.provider()
    }

    /// The store of the node.
    #[doc(hidden)]
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// Advances the clock by `time`. Everything that is due in between happens at its own time. Returns when no task
    /// can go on without more time: a handler that begins at the end and sleeps needs another call.
    pub async fn advance(&self, time: Duration) {
        // Not `tokio::time::advance`: it would skip the times of jobs that a handler adds or retries meanwhile.
        tokio::time::sleep(time).await;
        self.settle().await;
    }

    /// Lets all tasks run without advancing the clock. Returns when no task can go on without time.
    ///
    /// Jobs that are due start, and their handlers run as far as they get. One that sleeps needs [`advance`](Self::advance); one that
    /// waits for a thread, such as that of `spawn_blocking`, or for a socket is not waited for. A broadcast without a delay needs [`advance`](Self::advance) by a millisecond.
    pub async fn settle(&self) {
        loop {
            InFlight::wait_for_none().await;
            let before = (self.context.health(), InFlight::count_started());
            for _ in 0..YIELDS {
                tokio::task::yield_now().await;
            }
            if (self.context.health(), InFlight::count_started()) == before {
                return;
            }
        }
    }

    /// The job with this id, in any state; `None` if there is none.
    ///
    /// # Panics
    /// If the id is not valid, or the store fails.
    pub async fn job<J: DelayJob>(&self, id: impl ToJobId) -> Option<JobInfo<J>> {
        self.provider().get(id).await.expect("the store answers")
    }

    /// How many jobs of the topic are in each state.
    ///
    /// # Panics
    /// If the topic is not valid, or the store fails.
    pub async fn counts<J: DelayJob>(&self) -> TopicCounts {
        self.provider().counts::<J>().await.expect("the store answers")
    }

    /// The health of the node.
    pub fn health(&self) -> Health {
        self.context.health()
    }

    /// The health of the node, for code that does not hold the harness.
    pub fn probe(&self) -> HealthProbe {
        self.context.probe()
    }

    /// Ends the node at once, as a power cut would: it gives nothing back.
    pub fn kill(self) {
        self.context.kill();
    }

    /// Stops the node cleanly.
    pub async fn shutdown(self, grace: Duration) -> Stopped {
        self.context.shutdown(grace).await
    }

    /// The settings of a topic, as [`Context::topic_settings`] tells them.
    pub fn topic_settings(&self, topic: &str) -> Option<EffectiveSettings> {
        self.context.topic_settings(topic)
    }

    /// The running node, to test what a program does with a [`Context`].
    pub fn into_context(self) -> Context {
        let mut context = self.context;
        context.set_quiet(false);
        context
    }
}
