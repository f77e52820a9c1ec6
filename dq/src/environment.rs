//! Everything a node takes from outside itself besides the store: time, randomness, and where its tasks run.
//!
//! This is the one seam of the kind: ids, jitter, the node's clock, the seeds of hash maps and the spawning of tasks all
//! come through an [`Environment`], so that a simulation can decide all of them by one seed. `select!` is `biased`
//! everywhere, and no decision follows the order of a hash map.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use crate::job::{JobId, NodeId, ProducerId};
use crate::time::Timestamp;

mod clock;
mod entropy;
mod spawn;
mod thread;

pub use clock::{Boottime, Clock, StoreClock, TokioClock, WallClock};
pub use entropy::{Entropy, OsEntropy, Seeded};
pub use spawn::{Runtime, Spawn, SpawnOn, Task};
pub use thread::OwnThread;

/// Time, randomness and tasks of one node. Cheap to clone.
#[derive(Clone)]
pub struct Environment {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    spawn: Arc<dyn Spawn>,
    last_id: Arc<AtomicU64>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Environment {
    /// An environment of these parts.
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>, spawn: Arc<dyn Spawn>) -> Self {
        Self { clock, entropy, spawn, last_id: Arc::default() }
    }

    /// The environment of a program: randomness of the operating system, links on a thread of dq's own, handlers on the
    /// current runtime. Where tokio's clock is paused, as in tests, everything runs on the current runtime under it.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn of_this_runtime() -> io::Result<Self> {
        let entropy = Arc::new(OsEntropy::new());
        if TokioClock::is_paused() {
            return Ok(Self::on_this_runtime(entropy));
        }
        Ok(Self::new(Arc::new(Boottime), entropy, Arc::new(OwnThread::start()?)))
    }

    /// Everything on the current runtime, under tokio's clock: for tests and simulations.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn on_this_runtime(entropy: Arc<dyn Entropy>) -> Self {
        let here = Handle::current();
        let spawn = SpawnOn { link: here.clone(), handler: here };
        Self::new(Arc::new(TokioClock::new()), entropy, Arc::new(spawn))
    }

    /// The node's monotonic time: how long since some moment before it started.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Waits until [`now`](Self::now) is at least `at`.
    pub fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(at)
    }

    /// The node's wall clock: for generated ids and for bounds on times that users give. Only the store's clock decides.
    pub fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.wall_millis())
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        self.entropy.next()
    }

    /// A random duration below `most`; zero when `most` is.
    pub fn random_below(&self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        if nanos == 0 { Duration::ZERO } else { Duration::from_nanos(self.random() % nanos) }
    }

    /// How long to wait after so many failures in a row: twice as long after each, up to `longest`, and of that a quarter to
    /// the whole, by chance.
    pub(crate) fn growing_pause(&self, first: Duration, longest: Duration, failures: u32) -> Duration {
        let pause = first.saturating_mul(1 << failures.min(10)).min(longest);
        pause / 4 + self.random_below(pause * 3 / 4)
    }

    /// A new node identity.
    pub fn node_id(&self) -> NodeId {
        NodeId::new(self.random_text())
    }

    /// A new producer identity.
    pub fn producer_id(&self) -> ProducerId {
        ProducerId::new(self.random_text())
    }

    /// 16 hexadecimal digits.
    pub fn random_text(&self) -> String {
        format!("{:016x}", self.random())
    }

    /// A generated job id, later in order than every one this environment gave before.
    pub fn job_id(&self) -> JobId {
        let wall = self.clock.wall_millis() << 16;
        let last = self
            .last_id
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(wall.max(last + 1)))
            .unwrap_or_else(|last| last);
        let id = wall.max(last + 1);
        JobId::generated(id >> 16, id as u16, self.random())
    }

    /// Starts many tasks at once.
    pub fn spawn_all(&self, place: Runtime, tasks: Vec<BoxFuture<'static, ()>>) {
        self.spawn.spawn_all(place, tasks);
    }

    /// Starts a task.
    pub fn spawn(&self, place: Runtime, task: impl Future<Output = ()> + Send + 'static) -> Task {
        self.spawn.spawn(place, Box::pin(task))
    }
}
