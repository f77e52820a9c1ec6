//! chasquimq: Redis Streams, acks in batches. Its worker needs Redis 8.4. Its adds without a delay need Redis 8.6, so jobs have its
//! shortest delay, as a delay is what all queues here are for. Without events and the scheduler, which the others do not have
//! either; a promoter that looks every 5 ms, and larger batches, are its best settings here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chasquimq::{Consumer, ConsumerConfig, HandlerError, Job, Producer, ProducerConfig};
use dq_peers::{Peer, count};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const SHORTEST: Duration = Duration::from_millis(1);

#[derive(Clone, Serialize, Deserialize)]
struct Nothing {
    payload: String,
}

fn run(job: &Job<Nothing>) -> Result<Bytes, HandlerError> {
    std::hint::black_box(&job.payload.payload);
    count();
    Ok(Bytes::new())
}

#[derive(Clone)]
pub(crate) struct Chasquimq(Arc<Producer<Nothing>>);

impl Peer for Chasquimq {
    const NAME: &'static str = "chasquimq";
    const WORKS_ON: Option<(u32, u32)> = Some((8, 4));
    type Worker = (CancellationToken, JoinHandle<()>);

    async fn connect(url: &str) -> Self {
        let config = ProducerConfig { queue_name: "nothing".into(), max_stream_len: 10_000_000, ..Default::default() };
        Self(Arc::new(Producer::connect(url, config).await.unwrap()))
    }

    async fn add(&mut self) {
        self.0.add_in(SHORTEST, Nothing { payload: crate::text() }).await.unwrap();
    }

    async fn add_many(&mut self, jobs: usize) {
        self.0.add_in_bulk(SHORTEST, (0..jobs).map(|_| Nothing { payload: crate::text() }).collect()).await.unwrap();
    }

    async fn work(&self, url: &str) -> Self::Worker {
        let config = ConsumerConfig {
            queue_name: "nothing".into(),
            batch: 256,
            concurrency: 256,
            delayed_poll_interval_ms: 5,
            delayed_promote_batch: 1_000,
            events_enabled: false,
            run_scheduler: false,
            ..Default::default()
        };
        let (consumer, stop) = (Consumer::<Nothing>::new(url, config), CancellationToken::new());
        let stopped = stop.clone();
        (stop, tokio::spawn(async move { consumer.run(|job| async move { run(&job) }, stopped).await.unwrap() }))
    }

    async fn end((stop, running): Self::Worker) {
        stop.cancel();
        running.await.unwrap();
    }
}
