//! **Unstable:** this module is for dq's own tests and simulations and may change with every version.
//!
//! Everything that a node takes from outside besides the store: time, randomness, and the runtimes of its tasks.
//!
//! Ids, jitter, the node's clock, the seeds of hash maps and the spawning of tasks all come from an [`Environment`], so
//! that a simulation controls all of them by one seed. Every `select!` is `biased`, and no decision depends on the
//! order of a hash map.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::{Handle, Id};

use crate::job::{JobId, NodeId, ProducerId};
use crate::time::Timestamp;

mod clock;
mod entropy;
mod process;
mod spawn;
mod thread;

pub use clock::{Boottime, Clock, StoreClock, TokioClock, WallClock};
pub use entropy::{Entropy, OsEntropy, Seeded};
pub use process::Process;
pub(crate) use process::{Alone, Changes, Entry, Outlook, Ticket};
pub(crate) use spawn::panic_message;
pub use spawn::{Runtime, Spawn, SpawnOn, Task};
pub use thread::OwnThread;

/// The time, randomness and tasks of one node. Cheap to clone.
#[derive(Clone)]
pub struct Environment {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    spawn: Arc<dyn Spawn>,
    last_id: Arc<AtomicU64>,
    process: Arc<Process>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Environment {
    /// Makes an environment of these parts. Its handlers count as a process of their own.
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>, spawn: Arc<dyn Spawn>) -> Self {
        let process = Process::new(Arc::clone(&clock));
        Self { clock, entropy, spawn, last_id: Arc::default(), process }
    }

    /// Makes the environment of a program: randomness from the operating system, dq's own tasks on a thread of their
    /// own, handlers on the current runtime. If tokio's clock is paused, as in tests, everything runs on the current
    /// runtime.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn of_this_runtime() -> io::Result<Self> {
        let entropy = Arc::new(OsEntropy::new());
        if TokioClock::is_paused() {
            return Ok(Self::on_this_runtime(entropy));
        }
        let environment = Self::new(Arc::new(Boottime), entropy, Arc::new(OwnThread::start()?));
        Ok(Self { process: Process::current(), ..environment })
    }

    /// Makes an environment that runs everything on the current runtime under tokio's clock, for tests and simulations.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn on_this_runtime(entropy: Arc<dyn Entropy>) -> Self {
        let here = Handle::current();
        let spawn = SpawnOn { own: here.clone(), handlers: here };
        Self::new(Arc::new(TokioClock::new()), entropy, Arc::new(spawn))
    }

    /// The process of the handlers, in which one job may have to run alone.
    pub(crate) const fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The node's monotonic time: the time since some moment before the node started.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Waits until [`now`](Self::now) is at least `at`.
    pub fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(at)
    }

    /// The node's wall clock, for generated ids and for limits on times that users give. Everything else uses the
    /// store's clock.
    pub fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.wall_millis())
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        self.entropy.next()
    }

    /// A random duration below `most`; zero if `most` is zero.
    pub fn random_below(&self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        if nanos == 0 { Duration::ZERO } else { Duration::from_nanos(self.random() % nanos) }
    }

    /// How long to wait before the next try: a random time between one `part`-th and the whole of [`doubled`], so that many
    /// nodes do not come back together.
    pub(crate) fn growing_pause(&self, first: Duration, longest: Duration, failures: u32, part: u32) -> Duration {
        let whole = doubled(first, longest, failures);
        let least = whole / part;
        least + self.random_below(whole - least)
    }

    /// Draws a new node identity.
    pub fn node_id(&self) -> NodeId {
        NodeId::new(self.random_text())
    }

    /// Draws a new producer identity.
    pub fn producer_id(&self) -> ProducerId {
        ProducerId::new(self.random_text())
    }

    /// Draws 16 hexadecimal digits.
    pub fn random_text(&self) -> String {
        format!("{:016x}", self.random())
    }

    /// Generates a job id that sorts after every id that this environment generated before.
    pub fn job_id(&self) -> JobId {
        let wall = self.clock.wall_millis() << 16;
        let last = self
            .last_id
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(wall.max(last + 1)))
            .unwrap_or_else(|last| last);
        let id = wall.max(last + 1);
        JobId::generated(id >> 16, id as u16, self.random())
    }

    /// The runtime of handlers, if tasks of dq that may stop at any time can run there: see [`Spawn::shared`].
    pub(crate) fn shared(&self) -> Option<Id> {
        self.spawn.shared()
    }

    /// Starts many tasks at once.
    pub fn spawn_all(&self, runtime: Runtime, tasks: Vec<BoxFuture<'static, ()>>) {
        self.spawn.spawn_all(runtime, tasks);
    }

    /// Starts a task.
    pub fn spawn(&self, runtime: Runtime, task: impl Future<Output = ()> + Send + 'static) -> Task {
        self.spawn.spawn(runtime, Box::pin(task))
    }
}

/// Whether the caller is on this runtime.
pub(crate) fn is_on(runtime: Id) -> bool {
    Handle::try_current().is_ok_and(|current| current.id() == runtime)
}

/// `first`, doubled once for each of `failures`, and at most `longest`.
pub(crate) fn doubled(first: Duration, longest: Duration, failures: u32) -> Duration {
    first.saturating_mul(1 << failures.min(10)).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_the_longest_and_are_between_a_part_and_the_whole() {
        const MS: Duration = Duration::from_millis(1);
        let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
        for (failures, whole) in [(0, 20 * MS), (1, 40 * MS), (5, 640 * MS), (6, 1_000 * MS), (u32::MAX, 1_000 * MS)] {
            assert_eq!(doubled(20 * MS, 1_000 * MS, failures), whole);
            for _ in 0..100 {
                let pause = environment.growing_pause(20 * MS, 1_000 * MS, failures, 4);
                assert!(whole / 4 <= pause && pause < whole, "{pause:?}");
            }
        }
    }
}
