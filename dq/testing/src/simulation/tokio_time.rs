//! Tokio's clock beside the virtual time of a run, so that `tokio::time` works in the code of users.
//!
//! Tokio's clock is paused: it stands still while any task can run, and then goes to the next timer. Events of the run lie
//! between its milliseconds. Who goes on to the next event waits for tokio's clock up to the millisecond that event is in:
//! timers of users before it fire at their time, and what they cause may come before it.

use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::sync::lock;
use super::units::MS;

/// See the module.
#[derive(Debug)]
pub(super) struct TokioTime {
    start: Instant,
    /// The event that is waited for; zero: none.
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

    /// An event was made.
    pub(super) fn event_at(&self, at: u64) {
        if at < self.awaited.load(Relaxed) {
            self.earlier.notify_one();
        }
    }

    /// Whether an event at this time is the next that can happen once all tasks have run.
    pub(super) fn is_near(&self, at: u64) -> bool {
        at / MS <= self.micros() / MS
    }

    /// Lets tokio's clock go on to the millisecond of `at`. Ends early when an earlier event was made.
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

/// Tells when every task of a runtime has run as far as it can: also those that users started.
#[derive(Debug, Default)]
pub(super) struct Idle {
    waiting: Mutex<Option<Waker>>,
    reached: AtomicBool,
}

impl Idle {
    /// To be called before the thread of the runtime parks.
    pub(super) fn parks(&self) {
        if let Some(waker) = lock(&self.waiting).take() {
            self.reached.store(true, Relaxed);
            waker.wake();
        }
    }

    /// Waits until everybody else waits.
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
