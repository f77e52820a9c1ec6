//! Virtual time: events in the order of their times, then of their creation. Nothing waits; time jumps from event to event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::random::RandomSource;
use super::sync::lock;
use super::tokio_time::TokioTime;
use super::units::{MS, SECOND, START};
use dq::environment::{Clock, StoreClock};

/// The longest line of a log, in characters.
const MAX_LINE: usize = 20_000;

type Slot = Arc<Mutex<Option<Waker>>>;

enum What {
    Wake(Slot),
    Do(Box<dyn FnOnce() + Send>),
}

struct Event {
    at: u64,
    number: u64,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[derive(Default)]
struct Queue {
    events: BinaryHeap<Reverse<Event>>,
    made: u64,
}

/// The cluster state: time, randomness and the events to come.
pub(super) struct ClusterState {
    now: AtomicU64,
    queue: Mutex<Queue>,
    seed: u64,
    /// For what is drawn once, and for what shrinking never leaves out.
    pub(super) main: RandomSource,
    /// How often tasks were polled. While this grows, something still happens at the current time.
    pub(super) polls: AtomicU64,
    /// How many tasks of processes there are. User code started every other task on the runtime.
    pub(super) tasks: AtomicU64,
    log: Option<Mutex<Vec<String>>>,
    /// Tokio's clock, if user code takes part.
    pub(super) tokio: Option<TokioTime>,
}

impl fmt::Debug for ClusterState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterState").field("now", &self.now).finish_non_exhaustive()
    }
}

impl ClusterState {
    pub(super) fn new(seed: u64, log: bool) -> Arc<Self> {
        Arc::new(Self {
            now: AtomicU64::new(0),
            queue: Mutex::default(),
            seed,
            main: RandomSource::new(seed),
            polls: AtomicU64::new(0),
            tasks: AtomicU64::new(0),
            log: log.then(Mutex::default),
            tokio: None,
        })
    }

    /// A cluster state whose time goes with tokio's paused clock. Call this on the runtime of the run.
    pub(super) fn with_tokio(seed: u64, log: bool) -> Arc<Self> {
        let tokio = Some(TokioTime::new());
        Arc::new(Self { tokio, ..Arc::into_inner(Self::new(seed, log)).expect("no task shares it") })
    }

    /// The time since the start of the run, in µs.
    pub(super) fn now(&self) -> u64 {
        let now = self.now.load(Relaxed);
        self.tokio.as_ref().map_or(now, |tokio| now.max(tokio.micros()))
    }

    /// When the next event happens.
    pub(super) fn next_at(&self) -> Option<u64> {
        lock(&self.queue).events.peek().map(|Reverse(event)| event.at)
    }

    /// Drops all events to come.
    pub(super) fn end(&self) {
        let events = std::mem::take(&mut lock(&self.queue).events);
        drop(events);
    }

    /// The random source of a part of the run.
    pub(super) fn random(&self, name: &str, number: u64) -> RandomSource {
        RandomSource::of(self.seed, name, number)
    }

    pub(super) fn below(&self, most: u64) -> u64 {
        self.main.below(most)
    }

    pub(super) fn chance(&self, probability: f64) -> bool {
        self.main.chance(probability)
    }

    pub(super) fn pick<T: Copy>(&self, of: &[T]) -> T {
        self.main.pick(of)
    }

    /// Runs `event` at this time, or now if the time is past.
    pub(super) fn at(&self, at: u64, event: impl FnOnce() + Send + 'static) {
        self.push(at, What::Do(Box::new(event)));
    }

    fn push(&self, at: u64, what: What) {
        let mut queue = lock(&self.queue);
        queue.made += 1;
        let event = Event { at: at.max(self.now()), number: queue.made, what };
        queue.events.push(Reverse(event));
        drop(queue);
        if let Some(tokio) = &self.tokio {
            tokio.event_at(at);
        }
    }

    /// Goes to the next event and runs it. Returns false, and goes to `end`, if there is no event until then.
    pub(super) fn step(&self, end: u64) -> bool {
        loop {
            let mut queue = lock(&self.queue);
            if queue.events.peek().is_none_or(|Reverse(event)| event.at > end) {
                self.now.store(end.max(self.now()), Relaxed);
                return false;
            }
            let Some(Reverse(event)) = queue.events.pop() else { return false };
            drop(queue);
            match event.what {
                What::Do(event_happens) => {
                    self.now.store(event.at, Relaxed);
                    event_happens();
                    return true;
                }
                What::Wake(slot) => {
                    if let Some(waker) = lock(&slot).take() {
                        self.now.store(event.at, Relaxed);
                        waker.wake();
                        return true;
                    }
                }
            }
        }
    }

    pub(super) fn log(&self, text: impl FnOnce() -> String) {
        if let Some(log) = &self.log {
            let now = self.now();
            let mut text = text();
            // Payloads may be large.
            if let Some((end, _)) = text.char_indices().nth(MAX_LINE) {
                text.truncate(end);
            }
            lock(log).push(format!("{:>4}.{:06} {text}", now / SECOND, now % SECOND));
        }
    }

    pub(super) fn take_log(&self) -> Vec<String> {
        self.log.as_ref().map(|log| std::mem::take(&mut *lock(log))).unwrap_or_default()
    }
}

/// The clock of a machine. It runs evenly from a start of its own, and its wall clock can be set.
#[derive(Debug)]
pub(super) struct MachineClock {
    cluster: Arc<ClusterState>,
    boot: u64,
    /// How far the wall clock is ahead, in µs.
    pub(super) skew: AtomicI64,
}

impl MachineClock {
    pub(super) fn new(cluster: &Arc<ClusterState>, random: &RandomSource) -> Self {
        let boot = random.between(SECOND, 1_000_000 * SECOND);
        Self { cluster: Arc::clone(cluster), boot, skew: AtomicI64::new(0) }
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Duration {
        Duration::from_micros(self.boot + self.cluster.now())
    }

    fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        let micros = u64::try_from(at.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        Box::pin(Sleep { cluster: Arc::clone(&self.cluster), at: micros.saturating_sub(self.boot), slot: None })
    }

    fn wall_millis(&self) -> u64 {
        (START + self.cluster.now()).saturating_add_signed(self.skew.load(Relaxed)) / MS
    }
}

struct Sleep {
    cluster: Arc<ClusterState>,
    at: u64,
    slot: Option<Slot>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.cluster.now() >= self.at {
            return Poll::Ready(());
        }
        let waker = Some(cx.waker().clone());
        match &self.slot {
            Some(slot) if lock(slot).is_some() => *lock(slot) = waker,
            _ => {
                let slot = Arc::new(Mutex::new(waker));
                self.cluster.push(self.at, What::Wake(Arc::clone(&slot)));
                self.slot = Some(slot);
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            lock(slot).take();
        }
    }
}

/// The clock of the store, which faults can set.
#[derive(Debug)]
pub(super) struct JumpyClock {
    cluster: Arc<ClusterState>,
    /// How far it is ahead, in µs.
    pub(super) skew: AtomicI64,
}

impl JumpyClock {
    pub(super) fn new(cluster: &Arc<ClusterState>) -> Self {
        Self { cluster: Arc::clone(cluster), skew: AtomicI64::new(0) }
    }
}

impl StoreClock for JumpyClock {
    fn micros(&self) -> u64 {
        (START + self.cluster.now()).saturating_add_signed(self.skew.load(Relaxed))
    }
}
