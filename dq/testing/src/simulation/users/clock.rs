//! The wall clock of a run, for user code.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use super::super::units::START;

thread_local! {
    /// When the run of this thread started.
    static START_OF_RUN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Returns the wall-clock time: within a [`simulate`](super::simulate) run the simulated time, otherwise
/// `SystemTime::now()`.
///
/// Every run starts at the same moment of 14 November 2023. A job with an absolute due time needs this clock:
///
/// ```
/// use std::time::Duration;
/// use dq_testing::now;
///
/// let at = now() + Duration::from_secs(60);            // jobs.add(..).at(at)
/// assert!(at > now());
/// ```
pub fn now() -> SystemTime {
    match START_OF_RUN.get() {
        Some(start) => UNIX_EPOCH + Duration::from_micros(START) + start.elapsed(),
        None => SystemTime::now(),
    }
}

/// A run on this thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Running;

impl Running {
    pub(super) fn start() -> Self {
        START_OF_RUN.set(Some(Instant::now()));
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        START_OF_RUN.set(None);
    }
}
