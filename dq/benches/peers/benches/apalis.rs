//! apalis with apalis-redis: batches of 100, and without results, events and locks, which cost commands.

use ::apalis::prelude::*;
use apalis_redis::{Config, ConnectionManager, RedisStorage};
use dq_peers::{Peer, count};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Nothing {
    payload: String,
}

fn nothing() -> Nothing {
    Nothing { payload: crate::text() }
}

async fn run(job: Nothing) -> Result<(), BoxDynError> {
    std::hint::black_box(&job.payload);
    count();
    Ok(())
}

#[derive(Clone)]
pub(crate) struct Apalis(RedisStorage<Nothing, ConnectionManager>);

impl Peer for Apalis {
    const NAME: &'static str = "apalis";
    // Its script takes all due jobs at once, and Lua unpacks less than 8,000.
    const MAX_WAITING: usize = 7_500;
    type Worker = JoinHandle<()>;

    async fn connect(url: &str) -> Self {
        let config = Config::default().queue("nothing").batch_size(100);
        let config = config.persist_results(false).emit_events(false).lock_tasks(false);
        Self(RedisStorage::new(apalis_redis::connect(url).await.unwrap()).with_config(config))
    }

    async fn add(&mut self) {
        self.0.push(nothing()).await.unwrap();
    }

    async fn add_many(&mut self, jobs: usize) {
        self.0.push_bulk((0..jobs).map(|_| nothing()).collect()).await.unwrap();
    }

    async fn work(&self, url: &str) -> JoinHandle<()> {
        let Self(storage) = Self::connect(url).await;
        tokio::spawn(async move {
            let worker = WorkerBuilder::new("nothing").backend(storage).build(run);
            worker.run().await.unwrap();
        })
    }

    async fn end(worker: JoinHandle<()>) {
        worker.abort();
    }
}
