//! Bytes of a waiting job in Redis.

use std::time::Duration;

use dq::prelude::*;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};

use crate::{ALONE, assert_at_most, bounds};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "orders")]
struct Order {
    payload: String,
}

const JOBS: usize = 20_000;

fn used_memory(server: &RedisServer) -> f64 {
    let info = server.command(&["INFO", "memory"]);
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|bytes| bytes.trim().parse().ok()).unwrap()
}

/// Bytes of each of [`JOBS`] jobs that wait this long.
async fn bytes(delay: &str) -> f64 {
    let server = RedisServer::start();
    let factory = ContextFactory::new("costs").store(server.url()).without_inventory().variables([("", ""); 0]);
    let dq = factory.without_listeners().start().await.unwrap();
    // With its quotes and its name in JSON, the payload has 100 bytes.
    let order = Order { payload: "x".repeat(86) };
    assert_eq!(serde_json::to_string(&order).unwrap().len(), 100);
    dq.provider().add(order.clone()).after(delay).await.unwrap();
    // The connection for queries, over which the topic enters the directory, is open from then on.
    dq.provider().inspect().topic("orders").await.unwrap();
    let before = used_memory(&server);
    for _ in 0..JOBS / 1_000 {
        let added = dq.provider().add_many((0..1_000).map(|_| order.clone())).after(delay).await.unwrap();
        assert!(added.iter().all(Result::is_ok));
    }
    let bytes = (used_memory(&server) - before) / JOBS as f64;
    dq.shutdown(Duration::from_secs(1)).await;
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_job_needs_few_bytes() {
    let _alone = ALONE.lock().await;
    assert_at_most("bytes of a job due in ten minutes", bytes("10m").await, bounds::BYTES_WAITING);
    assert_at_most("bytes of a job due in two hours", bytes("2h").await, bounds::BYTES_WAITING_LONG);
}
