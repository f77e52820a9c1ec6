//! The wall clock of a run, for the code of users.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use super::super::units::START;

thread_local! {
    /// When the run of this thread started.
    static START_OF_RUN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The wall clock: within a [`simulate`](super::simulate) run the simulated one, which starts on 14 November 2023 with every
/// run; elsewhere `SystemTime::now()`.
///
/// A job with an absolute time needs it: `jobs.add(..).at(dq_testing::now() + Duration::from_secs(60))`.
pub fn now() -> SystemTime {
    match START_OF_RUN.get() {
        Some(start) => UNIX_EPOCH + Duration::from_micros(START) + start.elapsed(),
        None => SystemTime::now(),
    }
}

/// A run starts on this thread; it ends when this is dropped.
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
