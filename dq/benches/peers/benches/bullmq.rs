//! bullmq-rs: one script a job, and `add_bulk` as its bulk. Its worker has 64 handlers, as dq's.

use std::sync::Arc;

use bullmq_rs::{Queue, QueueBuilder, RedisConnection, WorkerBuilder, WorkerHandle};
use dq_peers::{Peer, count};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Nothing {
    payload: String,
}

fn nothing() -> Nothing {
    Nothing { payload: crate::text() }
}

#[derive(Clone)]
pub(crate) struct Bullmq(Arc<Queue<Nothing>>);

impl Peer for Bullmq {
    const NAME: &'static str = "bullmq-rs";
    type Worker = WorkerHandle;

    async fn connect(url: &str) -> Self {
        let queue = QueueBuilder::new("nothing").connection(RedisConnection::new(url)).build().await;
        Self(Arc::new(queue.unwrap()))
    }

    async fn add(&mut self) {
        self.0.add("nothing", nothing(), None).await.unwrap();
    }

    async fn add_many(&mut self, jobs: usize) {
        self.0.add_bulk((0..jobs).map(|_| ("nothing".into(), nothing(), None)).collect()).await.unwrap();
    }

    async fn work(&self, url: &str) -> WorkerHandle {
        let worker = WorkerBuilder::new("nothing").connection(RedisConnection::new(url)).concurrency(64);
        let run = |job: bullmq_rs::Job<Nothing>| async move {
            std::hint::black_box(&job.data.payload);
            count();
            Ok(())
        };
        worker.build::<Nothing>().start(run).await.unwrap()
    }

    async fn end(worker: WorkerHandle) {
        worker.shutdown();
        worker.wait().await.unwrap();
    }
}
