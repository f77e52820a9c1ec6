//! A node whose handlers wait until the test lets them end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dq::context::Condition;
use dq::environment::TokioClock;
use dq::prelude::*;
use dq::store::file::{Commits, FileStore};
use dq::testing::Harness;
use dq_testing::disk::SimulatedDisk;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work")]
pub struct Work {
    #[job(id)]
    pub number: u64,
}

/// What the handlers did. A run ends once it gets a permit of `ends`.
#[derive(Debug)]
pub struct Watch {
    pub ends: Semaphore,
    pub began: AtomicUsize,
    pub ended: AtomicUsize,
    pub cancelled: AtomicUsize,
}

/// Counts a run that is dropped before its end.
struct Running(Arc<Watch>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.cancelled.fetch_add(1, Ordering::SeqCst);
    }
}

#[delay_listener(register = false, timeout = "none", max_crashes = 1)]
async fn work(job: Job<Work>, watch: &Arc<Watch>) -> Result<(), JobError> {
    std::hint::black_box(job.number);
    watch.began.fetch_add(1, Ordering::SeqCst);
    let running = Running(watch.clone());
    watch.ends.acquire().await?.forget();
    std::mem::forget(running);
    watch.ended.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

/// A node on a store on this disk, under the paused clock. `ends` runs may end at once.
pub async fn start(disk: &SimulatedDisk, seed: u64, ends: usize) -> (Harness, Arc<FileStore>, Arc<Watch>) {
    let store = FileStore::on(Arc::new(disk.clone()), Arc::new(TokioClock::new())).with(|options| {
        (options.commits, options.segment_bytes) = (Commits::AtOnce, 16 << 10);
    });
    let store = Arc::new(store);
    let none = AtomicUsize::default;
    let watch = Arc::new(Watch { ends: Semaphore::new(ends), began: none(), ended: none(), cancelled: none() });
    let with = watch.clone();
    let dq = Harness::start_on(store.clone(), seed, |factory| factory.provide(with).listener::<work>()).await;
    (dq, store, watch)
}

pub fn count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

/// The condition of the topic.
pub fn condition(dq: &Harness) -> Condition {
    dq.health().topics[0].condition.clone()
}
