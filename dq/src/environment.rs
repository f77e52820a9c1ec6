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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::{Handle, Id};

use crate::job::{JobId, NodeId, ProducerId};
use crate::time::Timestamp;

mod clock;
mod entropy;
mod host;
mod memory;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod precise;
mod process;
mod spawn;
mod thread;

pub use clock::{Boottime, Clock, StoreClock, TokioClock, WallClock};
pub use entropy::Seeded;
pub(crate) use host::host_name;
pub(crate) use memory::{free_memory, most_memory};
pub use process::Process;
pub(crate) use process::{Alone, Changes, Outlook, ProcessEntry, Refused, Ticket};
pub(crate) use spawn::panic_message;
pub use spawn::{Runtime, Spawn, SpawnOn, Task};
pub use thread::start_thread;

/// The time, randomness and tasks of one node. Cheap to clone.
#[derive(Clone)]
pub struct Environment {
    clock: Arc<dyn Clock>,
    entropy: Arc<Seeded>,
    spawn: Arc<dyn Spawn>,
    ids: Arc<Ids>,
    process: Arc<Process>,
    /// What the ids of nodes and producers begin with, for people: the host and the process.
    host: Option<Arc<str>>,
    #[cfg(any(test, feature = "testing"))]
    watch: Option<Watch>,
}

/// Called with each step that a topic of the node begins, and with each job that it touches there. A panic of it is one of the topic.
#[cfg(any(test, feature = "testing"))]
pub(crate) type Watch = Arc<dyn Fn(&'static str, Option<&JobId>) + Send + Sync>;

/// What makes the generated ids of an environment unique.
#[derive(Default)]
struct Ids {
    /// Drawn at random for the first id.
    origin: OnceLock<u64>,
    last_tick: AtomicU64,
}

/// The ticks of generated ids count eighths of a millisecond since 2020, so that 44 bits last until 2089.
const TICKS_BEGIN: Timestamp = Timestamp::from_millis(1_577_836_800_000);
const TICKS_PER_MS: u64 = 8;

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Environment {
    /// Makes an environment of these parts. Its handlers count as a process of their own.
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<Seeded>, spawn: Arc<dyn Spawn>) -> Self {
        let process = Process::new(Arc::clone(&clock));
        Self {
            clock,
            entropy,
            spawn,
            ids: Arc::default(),
            process,
            host: None,
            #[cfg(any(test, feature = "testing"))]
            watch: None,
        }
    }

    /// The environment of a node whose steps `watch` sees, and may let panic.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn watched(self, watch: Watch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn watch(&self) -> Option<Watch> {
        self.watch.clone()
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
        let entropy = Arc::new(Seeded::by_system());
        if TokioClock::is_paused() {
            return Ok(Self::on_this_runtime(entropy));
        }
        let thread = SpawnOn::own_thread()?;
        let environment = Self::new(precise_clock(&thread), entropy, Arc::new(thread));
        Ok(Self { process: Process::current(), host: Some(host::name()), ..environment })
    }

    /// Makes an environment that runs everything on the current runtime under tokio's clock, for tests and simulations.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn on_this_runtime(entropy: Arc<Seeded>) -> Self {
        let here = Handle::current();
        let spawn = SpawnOn::new(here.clone(), here);
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

    /// The node's wall clock: for generated ids, for limits on times that users give, and for the first tick of a schedule. All
    /// else uses the store's clock.
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

    /// Draws a new node identity: 16 random digits, in a program behind the host, the process, the version of dq and the time, as
    /// `web-1-4711-v1.2.0-6923d0f1-012ec2040ea64cf6`.
    pub fn node_id(&self) -> NodeId {
        let drawn = self.random_text();
        match &self.host {
            Some(host) => NodeId::of_program(host, self.wall(), &drawn),
            None => NodeId::new(drawn),
        }
    }

    /// Draws a new producer identity, as [`node_id`](Self::node_id) draws one of a node.
    pub fn producer_id(&self) -> ProducerId {
        ProducerId::new(self.node_id().as_str())
    }

    /// Draws 16 hexadecimal digits.
    pub fn random_text(&self) -> String {
        format!("{:016x}", self.random())
    }

    /// Generates a job id that sorts after every id that this environment generated before, whatever its clock does. More than
    /// eight ids within a millisecond run ahead of the clock.
    pub fn job_id(&self) -> JobId {
        let clock = self.wall().since(TICKS_BEGIN).as_millis() as u64 * TICKS_PER_MS;
        let following = |last: u64| clock.max(last + 1);
        let last = self
            .ids
            .last_tick
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(following(last)))
            .unwrap_or_else(|last| last);
        JobId::generated(following(last), *self.ids.origin.get_or_init(|| self.random()))
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

/// What the future returns, if there is one; otherwise it never ends.
pub(crate) async fn or_never<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Whether the caller is on this runtime.
pub(crate) fn is_on(runtime: Id) -> bool {
    Handle::try_current().is_ok_and(|current| current.id() == runtime)
}

/// [`Boottime`], with sleeps that end to the microsecond where the platform has a timer for them.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn precise_clock(spawn: &dyn Spawn) -> Arc<dyn Clock> {
    match precise::PreciseClock::start(spawn) {
        Ok(clock) => Arc::new(clock),
        Err(error) => {
            tracing::warn!(error = %error, "cannot make a timer; jobs start up to two milliseconds later");
            Arc::new(Boottime)
        }
    }
}

/// [`Boottime`]: only Linux has a timer that is more precise than tokio's and counts the same time.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn precise_clock(_spawn: &dyn Spawn) -> Arc<dyn Clock> {
    Arc::new(Boottime)
}

/// `first`, doubled once for each of `failures`, and at most `longest`.
pub(crate) fn doubled(first: Duration, longest: Duration, failures: u32) -> Duration {
    first.saturating_mul(1 << failures.min(10)).min(longest)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A wall clock that shows the times of a list, one after another.
    #[derive(Debug)]
    struct Jumping(AtomicU64, Vec<u64>);

    impl Clock for Jumping {
        fn now(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep_until(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }

        fn wall_millis(&self) -> u64 {
            self.1[self.0.fetch_add(1, Ordering::Relaxed) as usize]
        }
    }

    #[tokio::test]
    async fn generated_ids_sort_in_order_of_creation_even_if_the_clock_jumps_back() {
        let times = [1_763_000_000_000; 20].into_iter().chain([0, 1_763_000_000_500, 1_762_000_000_000]);
        let clock = Arc::new(Jumping(AtomicU64::new(0), times.collect()));
        let spawn = Arc::new(SpawnOn::new(Handle::current(), Handle::current()));
        let environment = Environment::new(clock.clone(), Arc::new(Seeded::new(1)), spawn);
        let ids: Vec<_> = clock.1.iter().map(|_| environment.clone().job_id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn environments_of_one_clock_generate_different_ids() {
        let entropy = Arc::new(Seeded::new(1));
        let environments = [(); 10].map(|()| Environment::on_this_runtime(Arc::clone(&entropy)));
        let ids: BTreeSet<_> = (0..1_000).flat_map(|_| environments.iter().map(Environment::job_id)).collect();
        assert_eq!(ids.len(), 10_000);
    }

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
