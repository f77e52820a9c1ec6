//! The guard of a coalescer that runs on the user's runtime: a task on dq's own thread.
//!
//! It keeps the time: deadlines and time-outs of the coalescer ring here, also while handlers block the user's runtime. And it
//! watches the progress: a coalescer that has work and does not take a step for a [`TICK`] moves to dq's own thread, with all its
//! state. What it sent over a connection of the user's runtime may be stuck there, so it repeats that under its numbers sooner than
//! usual (rule 18). It goes back when it has nothing to do, after a while that doubles each time.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::coalescer::ring;
use super::inbox::Inbox;
use super::seat::Seat;
use crate::environment::{Environment, doubled};

/// A coalescer that has work and takes no step for so long does not run. A slow store looks the same, but then the runtime
/// does not matter.
const TICK: Duration = Duration::from_millis(25);
/// How long a coalescer stays on dq's own thread at first, and at most.
const FIRST_STAY: Duration = Duration::from_secs(1);
const LONGEST_STAY: Duration = Duration::from_secs(64);

const NEVER: Duration = Duration::from_nanos(u64::MAX);

pub(super) struct Guard {
    pub(super) seat: Arc<Seat>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) environment: Environment,
    /// How many steps the coalescer had taken when the guard looked last.
    steps: u64,
    looked: Duration,
    /// How often the coalescer has moved.
    moves: u32,
    back_at: Duration,
}

impl Guard {
    pub(super) fn new(seat: Arc<Seat>, inbox: Arc<Inbox>, environment: Environment) -> Self {
        let looked = environment.now();
        Self { seat, inbox, environment, steps: 0, looked, moves: 0, back_at: Duration::ZERO }
    }

    pub(super) async fn watch(mut self) {
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
                () = ring(&mut timer) => timer = None,
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
        if now > self.back_at + LONGEST_STAY {
            self.moves = 0;
        }
        self.back_at = now + doubled(FIRST_STAY, LONGEST_STAY, self.moves);
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
