//! Where a coalescer runs.
//!
//! A coalescer that runs where its callers run exchanges requests and answers with them without waking another thread. So it
//! runs on the user's runtime if that has several threads: as the task of that runtime, or within the call of a caller that
//! posts a request there. But handlers may block all threads of that runtime, a caller may block the one that is to run the
//! coalescer next, and the runtime may end. So the coalescer belongs to none of them: it sits here, and whoever has the lock
//! lets it take its next step. `guard` is a task on dq's own thread: it keeps the time of the coalescer, and moves it to dq's own
//! thread when it makes no progress.
//!
//! It is worth its lines: as a task on dq's own thread instead, one caller adds 0.40 times as often on Redis and 0.53 times on `file:`
//! (medians of nine alternating runs of `add` and `file`, on a busy machine with two cores), and the process needs twice the CPU.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::Id;
use tokio::sync::Notify;

use crate::environment::is_on;

/// What wakes a coalescer, and what the guard knows of it.
#[derive(Debug)]
pub(super) struct Bell {
    /// The user's runtime.
    shared: Id,
    /// Wakes the task on the user's runtime.
    near: OnceLock<Waker>,
    /// Whether the coalescer runs on the user's runtime, and not on dq's own thread.
    is_near: AtomicBool,
    /// The task on the user's runtime was dropped: the runtime has ended.
    pub(super) is_alone: AtomicBool,
    /// When it moved to dq's own thread last, in ns of the node's clock.
    moved_at: AtomicU64,
    /// When the coalescer wants to be woken, in ns of the node's clock.
    alarm_at: AtomicU64,
    /// Whether callers wait for answers.
    pub(super) is_busy: AtomicBool,
    /// Somebody must let the coalescer take a step.
    again: AtomicBool,
    /// How many callers are about to let it take a step within their call.
    callers: AtomicUsize,
    /// Counts the steps.
    pub(super) steps: AtomicU64,
    pub(super) is_over: AtomicBool,
    /// The guard wants to know of the next request.
    pub(super) guard_sleeps: AtomicBool,
    /// Wakes the guard.
    pub(super) guard: Notify,
}

fn nanos(at: Duration) -> u64 {
    u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)
}

impl Bell {
    pub(super) fn new(shared: Id) -> Self {
        Self {
            shared,
            near: OnceLock::new(),
            is_near: AtomicBool::new(true),
            is_alone: AtomicBool::new(false),
            moved_at: AtomicU64::new(0),
            alarm_at: AtomicU64::new(u64::MAX),
            is_busy: AtomicBool::new(false),
            again: AtomicBool::new(false),
            callers: AtomicUsize::new(0),
            steps: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            guard_sleeps: AtomicBool::new(false),
            guard: Notify::new(),
        }
    }

    pub(super) fn is_near(&self) -> bool {
        self.is_near.load(SeqCst)
    }

    /// From now on the coalescer runs on dq's own thread.
    pub(super) fn move_away(&self, now: Duration) {
        self.moved_at.store(nanos(now), SeqCst);
        self.is_near.store(false, SeqCst);
    }

    /// From now on the coalescer runs on the user's runtime again.
    pub(super) fn move_back(&self) {
        self.is_near.store(true, SeqCst);
        self.ring();
    }

    /// Whether a batch that was sent at this time went out over a connection of the user's runtime, and the coalescer has left it.
    pub(super) fn has_left(&self, sent: Duration) -> bool {
        !self.is_near() && nanos(sent) <= self.moved_at.load(SeqCst)
    }

    pub(super) fn alarm_at(&self) -> Duration {
        Duration::from_nanos(self.alarm_at.load(SeqCst))
    }

    /// The guard lets the coalescer take a step at this time.
    pub(super) fn set_alarm(&self, at: Duration) {
        if nanos(at) < self.alarm_at.swap(nanos(at), SeqCst) {
            self.guard.notify_one();
        }
    }

    /// Whether the alarm rings now. Then the coalescer sets the next one in the step that follows.
    pub(super) fn rings(&self, now: Duration) -> bool {
        let at = self.alarm_at.load(SeqCst);
        let rings = at <= nanos(now);
        if rings {
            // If that fails, a step has set the next one.
            let _ = self.alarm_at.compare_exchange(at, u64::MAX, SeqCst, SeqCst);
        }
        rings
    }

    /// A caller has posted a request.
    pub(super) fn posted(&self) {
        if self.guard_sleeps.load(SeqCst) {
            self.guard.notify_one();
        }
    }

    /// Lets the coalescer take a step wherever it runs.
    fn ring(&self) {
        if self.callers.load(SeqCst) > 0 {
            return; // one of them sees `again`
        }
        if !self.is_near() {
            self.guard.notify_one();
        } else if let Some(near) = self.near.get() {
            near.wake_by_ref(); // without it the first step is still to come
        }
    }
}

/// What the coalescer waits for wakes it through this.
impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.again.store(true, SeqCst);
        self.ring();
    }
}

/// The coalescer of a topic.
pub(super) struct Seat {
    pub(super) bell: Arc<Bell>,
    waker: Waker,
    /// `None` once it has ended.
    work: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Seat {
    pub(super) fn new(bell: Arc<Bell>, work: BoxFuture<'static, ()>) -> Self {
        Self { waker: Waker::from(Arc::clone(&bell)), bell, work: Mutex::new(Some(work)) }
    }

    /// Lets the coalescer do what there is to do. If another thread does that right now, there is another step afterwards.
    pub(super) fn step(&self) {
        self.bell.again.store(true, SeqCst);
        let Ok(mut work) = self.work.try_lock() else { return };
        self.bell.again.store(false, SeqCst);
        self.bell.steps.fetch_add(1, SeqCst);
        let is_over =
            work.as_mut().is_none_or(|work| work.as_mut().poll(&mut Context::from_waker(&self.waker)).is_ready());
        let over = if is_over { work.take() } else { None };
        drop(work);
        if is_over {
            drop(over);
            self.bell.is_over.store(true, SeqCst);
            self.bell.guard.notify_one();
            if let Some(near) = self.bell.near.get() {
                near.wake_by_ref(); // wherever the coalescer ran
            }
        }
        if is_over || self.bell.again.load(SeqCst) {
            self.bell.ring();
        }
    }

    /// Wakes the coalescer by `wake`. A caller on the user's runtime lets it take its step at once: no other task there has to
    /// run first.
    pub(super) fn wake_from_caller(&self, wake: impl FnOnce()) {
        let bell = &self.bell;
        if !bell.is_near() || !is_on(bell.shared) || std::thread::panicking() {
            return wake();
        }
        bell.callers.fetch_add(1, SeqCst);
        wake();
        self.step();
        bell.callers.fetch_sub(1, SeqCst);
        if bell.again.load(SeqCst) {
            bell.ring();
        }
    }
}

/// The task on the user's runtime.
pub(super) struct NearTask(pub(super) Arc<Seat>);

impl Future for NearTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let bell = &self.0.bell;
        bell.near.get_or_init(|| cx.waker().clone());
        if bell.is_near() {
            self.0.step();
        } else {
            bell.guard.notify_one();
        }
        if bell.is_over.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// The runtime ends: the coalescer goes on, on dq's own thread.
impl Drop for NearTask {
    fn drop(&mut self) {
        self.0.bell.is_alone.store(true, SeqCst);
        self.0.bell.guard.notify_one();
    }
}
