//! A process: tasks that can be paused or killed together, at any of their steps.
//!
//! A handler that blocks its thread cannot be stopped: an abort takes effect only after the handler returns. Scripted
//! handlers declare themselves blocking here, and their tasks go on until they declare the opposite.

use std::cell::RefCell;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use tokio::task::AbortHandle;

use super::cluster::{ClusterState, MachineClock};
use super::random::RandomSource;
use super::rules::without;
use super::sync::lock;
use dq::environment::{Environment, Runtime, Seeded, Spawn, Task};

/// A simulated process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) cluster: Arc<ClusterState>,
    pub(super) clock: Arc<MachineClock>,
    random: RandomSource,
    /// How many requests it has sent.
    pub(super) requests: AtomicU64,
    pub(super) signals: AtomicU64,
    /// The task of one of its topics panics after so many steps and jobs; never at `u64::MAX`.
    pub(super) panics_after: AtomicU64,
    dead: AtomicBool,
    /// When its last pause ends, in µs.
    pub(super) paused_until: AtomicU64,
    /// It is unresponsive, and receives no answers and no signals, until then.
    pub(super) unresponsive_until: AtomicU64,
    /// Since when it has been unresponsive without a break.
    pub(super) unresponsive_since: AtomicU64,
    /// It is mute until then: none of its requests arrives on any wire, while it still receives.
    pub(super) mute_until: AtomicU64,
    /// Since when it has been mute without a break.
    pub(super) mute_since: AtomicU64,
    /// The store has refused one of its subscriptions.
    pub(super) unsubscribed: AtomicBool,
    /// Its handlers are starved until then: the runtime of handlers is too busy to poll them, while dq's own tasks go on.
    pub(super) starved_until: AtomicU64,
    /// The tasks that wait for the end of a pause,
    suspended: Mutex<Vec<Waker>>,
    /// and those that wait until handlers are polled again.
    starved: Mutex<Vec<Waker>>,
    /// The handlers of a user's program. They are dropped when the process dies, not when they would be polled again.
    handlers: Mutex<Vec<Weak<Life>>>,
}

impl Process {
    pub(super) fn new(name: String, cluster: &Arc<ClusterState>) -> Arc<Self> {
        let random = cluster.random(&name, 0);
        Arc::new(Self {
            name,
            cluster: Arc::clone(cluster),
            clock: Arc::new(MachineClock::new(cluster, &random)),
            random,
            requests: AtomicU64::new(0),
            signals: AtomicU64::new(0),
            panics_after: AtomicU64::new(u64::MAX),
            dead: AtomicBool::new(false),
            paused_until: AtomicU64::new(0),
            unresponsive_until: AtomicU64::new(0),
            unresponsive_since: AtomicU64::new(0),
            mute_until: AtomicU64::new(0),
            mute_since: AtomicU64::new(0),
            unsubscribed: AtomicBool::new(false),
            starved_until: AtomicU64::new(0),
            suspended: Mutex::default(),
            starved: Mutex::default(),
            handlers: Mutex::default(),
        })
    }

    /// Its environment: its clock, its randomness, and itself as the spawner of its tasks.
    pub(super) fn environment(self: &Arc<Self>) -> Environment {
        let entropy = Arc::new(Seeded::new(self.random.seed()));
        Environment::new(self.clock.clone(), entropy, Arc::new(Here(Arc::clone(self))))
    }

    /// Whether the task that begins a step now panics there.
    pub(super) fn panics_now(&self) -> bool {
        let count = |left| if left == u64::MAX { None } else { Some(u64::checked_sub(left, 1).unwrap_or(u64::MAX)) };
        self.panics_after.fetch_update(Relaxed, Relaxed, count) == Ok(0)
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Relaxed)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused_until.load(Relaxed) > self.cluster.now()
    }

    pub(super) fn is_starved(&self) -> bool {
        self.starved_until.load(Relaxed) > self.cluster.now()
    }

    pub(super) fn is_unresponsive(&self) -> bool {
        self.unresponsive_until.load(Relaxed) > self.cluster.now()
    }

    pub(super) fn is_mute(&self) -> bool {
        self.mute_until.load(Relaxed) > self.cluster.now()
    }

    /// Ends every task where it is; a running task ends at its next `await`.
    pub(super) fn kill(&self) {
        self.dead.store(true, Relaxed);
        lock(&self.suspended).drain(..).for_each(Waker::wake);
        lock(&self.starved).drain(..).for_each(Waker::wake);
        let handlers = std::mem::take(&mut *lock(&self.handlers));
        handlers.iter().filter_map(Weak::upgrade).filter_map(|life| lock(&life.waker).take()).for_each(Waker::wake);
    }

    /// Pauses all tasks until then; time goes on.
    pub(super) fn pause(self: &Arc<Self>, until: u64) {
        self.paused_until.fetch_max(until, Relaxed);
        let this = Arc::clone(self);
        self.cluster.at(until, move || {
            if !this.is_paused() {
                this.resume();
            }
        });
    }

    /// Starves its handlers until then.
    pub(super) fn starve(self: &Arc<Self>, until: u64) {
        self.starved_until.fetch_max(until, Relaxed);
        let this = Arc::clone(self);
        self.cluster.at(until, move || {
            if !this.is_starved() {
                std::mem::take(&mut *lock(&this.starved)).into_iter().for_each(Waker::wake);
            }
        });
    }

    /// Wakes all tasks that wanted to run during a pause. In a user's program a handler may resume before its node learns
    /// that it lost the job, because real handlers run on other threads.
    fn resume(&self) {
        let mut suspended = std::mem::take(&mut *lock(&self.suspended));
        if self.cluster.tokio.is_some() && self.random.chance(0.5) {
            suspended.reverse();
        }
        suspended.into_iter().for_each(Waker::wake);
    }

    /// Wakes the polled task when the process resumes or dies.
    pub(super) fn suspend(&self, cx: &Context<'_>) {
        lock(&self.suspended).push(cx.waker().clone());
    }

    /// Makes it responsive again, in both directions. Starved handlers wait until their time is over.
    pub(super) fn heal(&self) {
        self.unresponsive_until.store(0, Relaxed);
        self.mute_until.store(0, Relaxed);
    }

    pub(super) fn make_unresponsive(&self, until: u64) {
        if !self.is_unresponsive() {
            self.unresponsive_since.store(self.cluster.now(), Relaxed);
        }
        self.unresponsive_until.fetch_max(until, Relaxed);
    }

    pub(super) fn mute(&self, until: u64) {
        if !self.is_mute() {
            self.mute_since.store(self.cluster.now(), Relaxed);
        }
        self.mute_until.fetch_max(until, Relaxed);
    }
}

#[derive(Debug)]
struct Here(Arc<Process>);

impl Spawn for Here {
    fn spawn(&self, place: Runtime, task: BoxFuture<'static, ()>) -> Task {
        let process = Arc::clone(&self.0);
        let running = |life| Running { process, life, task: Some(task) };
        if place == Runtime::Own {
            return start(&self.0.cluster, running(None));
        }
        let life = Arc::new(Life::default());
        if self.0.cluster.tokio.is_some() {
            let mut handlers = lock(&self.0.handlers);
            handlers.retain(|life| life.strong_count() > 0);
            handlers.push(Arc::downgrade(&life));
        }
        let guard = Guard { life: Arc::clone(&life), cluster: Arc::clone(&self.0.cluster) };
        let abort = start(&self.0.cluster, async move {
            let _guard = guard;
            pending::<()>().await;
        });
        let end = abort.clone();
        let task = running(Some(life));
        start(&self.0.cluster, async move {
            task.await;
            end.abort();
        });
        abort
    }
}

/// Starts a task that is counted as long as it exists.
fn start(cluster: &Arc<ClusterState>, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    let counted = Counted::of(cluster);
    let task = async move {
        task.await;
        drop(counted);
    };
    tokio::spawn(task).abort_handle()
}

struct Counted(Arc<ClusterState>);

impl Counted {
    fn of(cluster: &Arc<ClusterState>) -> Self {
        cluster.tasks.fetch_add(1, Relaxed);
        Self(Arc::clone(cluster))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.tasks.fetch_sub(1, Relaxed);
    }
}

/// What the abort handle and the task of a handler share.
#[derive(Debug, Default)]
struct Life {
    aborted: AtomicBool,
    blocks: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

struct Guard {
    life: Arc<Life>,
    cluster: Arc<ClusterState>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.cluster.polls.fetch_add(1, Relaxed);
        self.life.aborted.store(true, Relaxed);
        if let Some(waker) = lock(&self.life.waker).take() {
            waker.wake();
        }
    }
}

thread_local! {
    /// The handler that is being polled.
    static CURRENT: RefCell<Option<Arc<Life>>> = const { RefCell::new(None) };
}

/// Declares whether the running handler blocks its thread from now on.
pub(super) fn block(blocks: bool) {
    CURRENT.with_borrow(|current| {
        if let Some(life) = current {
            life.blocks.store(blocks, Relaxed);
        }
    });
}

struct Running {
    process: Arc<Process>,
    life: Option<Arc<Life>>,
    task: Option<BoxFuture<'static, ()>>,
}

impl Running {
    fn is_over(&self) -> bool {
        let aborted = |life: &Arc<Life>| life.aborted.load(Relaxed) && !life.blocks.load(Relaxed);
        self.process.is_dead() || self.life.as_ref().is_some_and(aborted)
    }
}

impl Future for Running {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.process.cluster.polls.fetch_add(1, Relaxed);
        if self.is_over() {
            self.task = None;
            return Poll::Ready(());
        }
        if self.process.is_paused() {
            lock(&self.process.suspended).push(cx.waker().clone());
            return Poll::Pending;
        }
        // Without `begin`, handlers starve inside their own futures.
        if self.life.is_some() && self.process.is_starved() && !without("begin") {
            lock(&self.process.starved).push(cx.waker().clone());
            return Poll::Pending;
        }
        if let Some(life) = &self.life {
            *lock(&life.waker) = Some(cx.waker().clone());
        }
        let before = CURRENT.replace(self.life.clone());
        let polled = self.task.as_mut().map_or(Poll::Ready(()), |task| task.as_mut().poll(cx));
        CURRENT.set(before);
        if polled.is_ready() || self.is_over() {
            self.task = None;
            return Poll::Ready(());
        }
        Poll::Pending
    }
}
