//! Starts a coalescer, keeps it running where it can, and starts it again after a panic.
//!
//! A panic is a defect of dq, and can leave the numbers in any state, so the coalescer goes on under a new identity. Nothing can be
//! repeated under the old one, so callers of a batch that may have left receive *unknown* (rule 18). All other requests were certainly
//! not done and go out again, in their order.
//!
//! The guard of a coalescer that runs on the user's runtime is a task on dq's own thread. It keeps the time: deadlines and time-outs
//! of the coalescer ring here, even while handlers block the user's runtime. And it watches the progress: a coalescer that has work and
//! does not take a step for a [`TICK`] moves to dq's own thread, with all its state. What it sent over a connection of the user's
//! runtime may be stuck there, so it repeats that under its numbers sooner than usual (rule 18). It goes back when it has nothing to
//! do, after a while that doubles each time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::batch::Batch;
use super::coalescer::Coalescer;
use super::inbox::Inbox;
use super::seat::{Bell, NearTask, Seat};
use crate::environment::{Environment, Runtime, doubled, or_never, panic_message};

/// The pause before a coalescer that panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Closes the inbox when its task ends, also when the runtime drops the task: every caller gets an answer.
struct Ending(Arc<Inbox>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.close();
        self.0.drop_requests();
        self.0.ended.cancel();
    }
}

impl Coalescer {
    /// Starts the coalescer of the inbox: as a task on dq's own thread, or in a seat that the callers share with it.
    pub(super) fn start(mut self) {
        let (environment, inbox) = (self.environment.clone(), Arc::clone(&self.inbox));
        let Some(shared) = environment.shared() else {
            environment.spawn(Runtime::Own, self.keep_working());
            return;
        };
        let bell = Arc::new(Bell::new(shared));
        self.bell = Some(Arc::clone(&bell));
        let seat = Arc::new(Seat::new(Arc::clone(&bell), Box::pin(self.keep_working())));
        let _ = inbox.seat.set((bell, Arc::downgrade(&seat)));
        environment.spawn(Runtime::Own, Guard::new(Arc::clone(&seat), inbox, environment.clone()).watch());
        environment.spawn(Runtime::Handler, NearTask(seat));
    }

    async fn keep_working(self) {
        let _ending = Ending(Arc::clone(&self.inbox));
        let mut coalescer = self; // dropped before the inbox ends
        while let Err(panic) = AssertUnwindSafe(coalescer.work()).catch_unwind().await {
            let restart_at = coalescer.start_over(&panic_message(&*panic));
            coalescer.sleep_until(restart_at).await;
        }
    }

    /// Keeps what was certainly not done, and forgets everything else. Returns when to go on: after a pause, or when the time of
    /// the first caller is over.
    fn start_over(&mut self, panic: &str) -> Duration {
        let now = self.environment.now();
        self.restarts.fetch_add(1, Relaxed);
        tracing::error!(topic = %self.inbox.key.topic, panic, "dq panicked in the task that sends the adds and commands of this topic, and restarts it; please report this as a bug");
        let mut fresh = Self::new(
            Arc::clone(&self.inbox),
            Arc::clone(&self.store),
            self.environment.clone(),
            self.retries.clone(),
            Arc::clone(&self.restarts),
            Arc::clone(&self.party),
        );
        fresh.bell = self.bell.take();
        fresh.bell.iter().for_each(|bell| bell.is_busy.store(true, SeqCst));
        let old = std::mem::replace(self, fresh);
        let mut batches: Vec<_> = old.in_flight.into_iter().chain(old.queue.into_batches()).collect();
        batches.sort_by_key(|batch| batch.order);
        self.taken.extend(batches.into_iter().flat_map(Batch::into_unsent).chain(old.taken));
        let first = self.taken.iter().map(|posted| posted.deadline.at).min();
        first.unwrap_or(Duration::MAX).min(now + RESTART_PAUSE)
    }
}

/// A coalescer that has work and takes no step for so long does not run. A slow store looks the same, but then the runtime
/// does not matter.
const TICK: Duration = Duration::from_millis(25);
/// How long a coalescer stays on dq's own thread at first, and at most.
const FIRST_STAY: Duration = Duration::from_secs(1);
const MAX_STAY: Duration = Duration::from_secs(64);

const NEVER: Duration = Duration::from_nanos(u64::MAX);

struct Guard {
    seat: Arc<Seat>,
    inbox: Arc<Inbox>,
    environment: Environment,
    /// How many steps the coalescer had taken when the guard looked last.
    steps: u64,
    looked: Duration,
    /// How often the coalescer has moved.
    moves: u32,
    back_at: Duration,
}

impl Guard {
    fn new(seat: Arc<Seat>, inbox: Arc<Inbox>, environment: Environment) -> Self {
        let looked = environment.now();
        Self { seat, inbox, environment, steps: 0, looked, moves: 0, back_at: Duration::ZERO }
    }

    async fn watch(mut self) {
        let mut timer: Option<(Duration, BoxFuture<'static, ()>)> = None;
        let seat = Arc::clone(&self.seat);
        loop {
            let next = self.look();
            if seat.bell.is_over.load(SeqCst) {
                return;
            }
            match next {
                None => timer = None,
                Some(at) if timer.as_ref().is_some_and(|(set, _)| *set <= at) => {}
                Some(at) => timer = Some((at, self.environment.sleep_until(at))),
            }
            tokio::select! {
                biased;
                () = seat.bell.guard.notified() => {}
                () = or_never(timer.as_mut().map(|(_, timer)| timer)) => timer = None,
            }
        }
    }

    /// Does what is due. Returns when to look again, if nothing happens before.
    fn look(&mut self) -> Option<Duration> {
        let now = self.environment.now();
        let next = if self.seat.bell.is_near() { self.look_from_afar(now) } else { self.work(now) };
        let alarm = self.seat.bell.alarm_at();
        next.into_iter().chain(Some(alarm).filter(|alarm| *alarm < NEVER)).min()
    }

    fn is_busy(&self) -> bool {
        self.seat.bell.is_busy.load(SeqCst) || self.inbox.has_work()
    }

    /// While the coalescer runs on the user's runtime.
    fn look_from_afar(&mut self, now: Duration) -> Option<Duration> {
        let seat = Arc::clone(&self.seat);
        let bell = &seat.bell;
        bell.guard_sleeps.store(false, SeqCst);
        let has_ended = bell.is_alone.load(SeqCst);
        let steps = bell.steps.load(SeqCst);
        let was_active = std::mem::replace(&mut self.steps, steps) != steps;
        if was_active || !self.is_busy() {
            self.looked = now;
        }
        if has_ended || now >= self.looked + TICK {
            self.move_away(now);
            return self.work(now);
        }
        if bell.rings(now) {
            seat.step();
        }
        if was_active || self.is_busy() {
            return Some(self.looked + TICK);
        }
        bell.guard_sleeps.store(true, SeqCst);
        // A request that came before that did not wake the guard.
        self.is_busy().then(|| now + TICK)
    }

    fn move_away(&mut self, now: Duration) {
        if now > self.back_at + MAX_STAY {
            self.moves = 0;
        }
        self.back_at = now + doubled(FIRST_STAY, MAX_STAY, self.moves);
        self.moves += 1;
        self.seat.bell.move_away(now);
        self.inbox.wake.notify_one(); // less time is left for answers
    }

    /// While the coalescer runs here.
    fn work(&mut self, now: Duration) -> Option<Duration> {
        let bell = &self.seat.bell;
        bell.rings(now);
        self.seat.step();
        if bell.is_alone.load(SeqCst) {
            return None;
        }
        if now < self.back_at {
            return Some(self.back_at);
        }
        self.looked = now;
        bell.move_back();
        Some(now + TICK)
    }
}
