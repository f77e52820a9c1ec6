//! What a job queue must offer to be measured beside dq.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::Notify;

static LEFT: AtomicUsize = AtomicUsize::new(0);
static ALL: Notify = Notify::const_new();

/// Makes [`all_have_run`] wait for this many runs.
pub fn expect(runs: usize) {
    LEFT.store(runs, Relaxed);
}

/// Counts a run. The handlers of all queues call it and nothing else.
pub fn count() {
    if LEFT.fetch_sub(1, Relaxed) == 1 {
        ALL.notify_one();
    }
}

/// Waits until all expected jobs have run.
pub async fn all_have_run() {
    ALL.notified().await;
}

/// A job queue on Redis, as its adders see it; each caller has a clone.
pub trait Peer: Clone + Send + Sized + 'static {
    /// Its name in the table.
    const NAME: &'static str;
    /// The oldest Redis that its worker runs on; on an older one, and on Valkey, only its adds are measured.
    const WORKS_ON: Option<(u32, u32)> = None;
    /// How many jobs may wait before its worker fails.
    const MAX_WAITING: usize = usize::MAX;
    /// What keeps its worker running.
    type Worker: Send;

    /// Connects to the server of this URL.
    fn connect(url: &str) -> impl Future<Output = Self> + Send;
    /// Adds one job with a payload of 100 bytes, and waits until the server has it.
    fn add(&mut self) -> impl Future<Output = ()> + Send;
    /// Adds many in one call.
    fn add_many(&mut self, jobs: usize) -> impl Future<Output = ()> + Send;
    /// Starts a worker whose handler calls [`count`].
    fn work(&self, url: &str) -> impl Future<Output = Self::Worker> + Send;
    /// Ends the worker.
    fn end(worker: Self::Worker) -> impl Future<Output = ()> + Send;
}
