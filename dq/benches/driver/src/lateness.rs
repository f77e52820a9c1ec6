//! How late runs start: a histogram that all handlers of a measurement share.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use tokio::sync::Notify;

/// Counts starts, each with its lateness in µs.
#[derive(Debug, Clone)]
pub struct Lateness(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    histogram: Mutex<Histogram<u64>>,
    expected: usize,
    started: AtomicUsize,
    early: AtomicUsize,
    all: Notify,
}

impl Lateness {
    /// Waits for `expected` starts.
    pub fn of(expected: usize) -> Self {
        Self(Arc::new(Inner {
            histogram: Mutex::new(empty()),
            expected,
            started: AtomicUsize::new(0),
            early: AtomicUsize::new(0),
            all: Notify::new(),
        }))
    }

    /// Notes a start now, of a job that was due at `due`.
    pub fn start(&self, due: SystemTime) {
        match SystemTime::now().duration_since(due) {
            Ok(late) => self.note(late),
            Err(_) => {
                self.0.early.fetch_add(1, Relaxed);
                self.note(Duration::ZERO);
            }
        }
    }

    /// Notes a start that was this late.
    pub fn note(&self, late: Duration) {
        self.0.histogram.lock().unwrap().saturating_record(late.as_micros() as u64);
        if self.0.started.fetch_add(1, Relaxed) + 1 == self.0.expected {
            self.0.all.notify_one();
        }
    }

    /// Waits until all have started.
    ///
    /// # Panics
    /// If one started early.
    pub async fn all(&self) -> Histogram<u64> {
        self.0.all.notified().await;
        let early = self.0.early.load(Relaxed);
        assert_eq!(early, 0, "{early} runs started early");
        self.0.histogram.lock().unwrap().clone()
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// A histogram of µs up to a minute, exact to 0.1 %.
pub fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are right")
}
