//! A handler that does nothing but count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use dq::prelude::*;
use tokio::sync::Notify;

use crate::job::Nothing;

/// Counts runs up to a number.
#[derive(Debug, Clone)]
pub(crate) struct Tally(Arc<(AtomicUsize, Notify)>);

impl Tally {
    /// Waits for this many runs.
    pub(crate) fn of(jobs: usize) -> Self {
        Self(Arc::new((AtomicUsize::new(jobs), Notify::new())))
    }

    pub(crate) fn count(&self) {
        if self.0.0.fetch_sub(1, Relaxed) == 1 {
            self.0.1.notify_one();
        }
    }

    /// Waits until all have run.
    pub(crate) async fn all(&self) {
        self.0.1.notified().await;
    }
}

#[delay_listener(register = false)]
pub(crate) async fn do_nothing(job: Job<Nothing>, tally: &Tally) -> Result<(), JobError> {
    std::hint::black_box(&job);
    tally.count();
    Ok(())
}
