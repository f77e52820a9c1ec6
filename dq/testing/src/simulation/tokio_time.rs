//! Tokio's clock beside the virtual time of a run, so that `tokio::time` works in user code.
//!
//! Tokio's clock is paused: it stands still while any task can run, then jumps to the next timer. Events of the run lie
//! between its milliseconds. Before the run goes to its next event, it waits for tokio's clock to reach the millisecond of
//! that event. So users' timers fire in time, and what they cause may come before the event.

use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::sync::lock;
use super::units::MS;

/// Tokio's clock, and the event that the run waits for.
#[derive(Debug)]
pub(super) struct TokioTime {
    start: Instant,
    /// The time of the event that the run waits for; zero: none.
    awaited: AtomicU64,
    earlier: Notify,
}

impl TokioTime {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), awaited: AtomicU64::new(0), earlier: Notify::new() }
    }

    /// µs since the start, in whole milliseconds.
    pub(super) fn micros(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    /// An event was created.
    pub(super) fn event_at(&self, at: u64) {
        if at < self.awaited.load(Relaxed) {
            self.earlier.notify_one();
        }
    }

    /// Returns whether an event at this time is the next to happen once all tasks have run.
    pub(super) fn is_near(&self, at: u64) -> bool {
        at / MS <= self.micros() / MS
    }

    /// Lets tokio's clock go on to the millisecond of `at`. Returns early if an earlier event is created.
    pub(super) async fn approach(&self, at: u64) {
        self.awaited.store(at, Relaxed);
        tokio::select! {
            biased;
            () = self.earlier.notified() => {}
            () = tokio::time::sleep_until(self.start + Duration::from_millis(at / MS)) => {}
        }
        self.awaited.store(0, Relaxed);
    }
}

/// Detects when every task of a runtime, including those that users started, has run as far as it can.
#[derive(Debug, Default)]
pub(super) struct Idle {
    waiting: Mutex<Option<Waker>>,
    reached: AtomicBool,
}

impl Idle {
    /// Call this before the thread of the runtime parks.
    pub(super) fn parks(&self) {
        if let Some(waker) = lock(&self.waiting).take() {
            self.reached.store(true, Relaxed);
            waker.wake();
        }
    }

    /// Waits until every other task waits.
    pub(super) async fn wait(&self) {
        poll_fn(|cx| {
            if self.reached.swap(false, Relaxed) {
                return Poll::Ready(());
            }
            *lock(&self.waiting) = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
