//! Wakes the thread that commits.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Many threads ring, one waits. A ring while nobody waits is kept, and many are one.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rang: AtomicBool,
    hurried: AtomicBool,
    closing: AtomicBool,
    waiter: OnceLock<Thread>,
}

impl Bell {
    /// The current thread is the one that waits from now on.
    pub(super) fn is_mine(&self) {
        _ = self.waiter.set(thread::current());
    }

    /// Wakes the waiter. Costs a system call only if it sleeps.
    pub(super) fn ring(&self) {
        if !self.rang.swap(true, Ordering::AcqRel) {
            self.unpark();
        }
    }

    /// Ends a pause of the waiter, because somebody cannot wait for its end.
    pub(super) fn hurry(&self) {
        self.hurried.store(true, Ordering::Release);
        self.unpark();
    }

    /// Tells the waiter to end.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.unpark();
    }

    fn unpark(&self) {
        if let Some(waiter) = self.waiter.get() {
            waiter.unpark();
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Waits until somebody has rung since the last call.
    pub(super) fn wait(&self) {
        while !self.rang.swap(false, Ordering::AcqRel) && !self.is_closing() {
            thread::park();
        }
    }

    /// Waits for this long, or until somebody hurries or the store closes.
    pub(super) fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.hurried.swap(false, Ordering::AcqRel) && !self.is_closing() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}
