//! oxana: a list for each queue, 64 handlers as dq's, and a connection for each.

use ::oxana::{JobContext, OxanaError, Storage};
use dq_peers::{Peer, count};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

#[derive(Debug, Serialize, Deserialize, oxana::Job)]
struct NothingJob {
    payload: String,
}

fn nothing() -> NothingJob {
    NothingJob { payload: crate::text() }
}

#[derive(Debug, thiserror::Error)]
enum Never {}

#[derive(Debug, Clone)]
struct State;

#[derive(oxana::Worker)]
#[oxana(context = State, error = Never, registry = None)]
struct NothingWorker;

impl NothingWorker {
    async fn process(&self, job: NothingJob, _context: &JobContext) -> Result<(), Never> {
        std::hint::black_box(&job.payload);
        count();
        Ok(())
    }
}

#[derive(Serialize, oxana::Queue)]
#[oxana(key = "nothing", concurrency = 64, registry = None)]
struct NothingQueue;

#[derive(Clone)]
pub(crate) struct Oxana(Storage);

impl Peer for Oxana {
    const NAME: &'static str = "oxana";
    type Worker = JoinHandle<Result<(), OxanaError>>;

    async fn connect(url: &str) -> Self {
        Self(Storage::builder().max_pool_size(128).build_from_redis_url(url).unwrap())
    }

    async fn add(&mut self) {
        self.0.enqueue(NothingQueue, nothing()).await.unwrap();
    }

    async fn add_many(&mut self, jobs: usize) {
        self.0.enqueue_list(NothingQueue, (0..jobs).map(|_| nothing())).await.unwrap();
    }

    async fn work(&self, _url: &str) -> Self::Worker {
        let runtime = self.0.runtime(State).queue::<NothingQueue>().worker::<NothingWorker, NothingJob>();
        tokio::spawn(async move { runtime.run().await.map(drop) })
    }

    async fn end(worker: Self::Worker) {
        worker.abort();
    }
}
