//! What a node with ten idle topics costs on Redis, a second, beside a bare loop that looks at each of ten queues every 15 s.
//!
//! `cargo bench -p dq --bench idle -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

#[macro_use]
#[path = "node/ten_topics.rs"]
mod ten_topics;

use std::time::Duration;

use dq::prelude::*;
use dq_bench::bare::Scripts;
use dq_bench::{Arguments, Bench, Cost, Meter, Server, Side};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

ten_topics!((register = false) { Ok(()) });

/// The costs of a second, in a window of so many seconds.
async fn window(server: &Server, seconds: usize) -> Cost {
    let meter = Meter::on(server).await;
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    meter.end_on(server, seconds).await
}

async fn by_dq(server: &Server, seconds: usize) -> Cost {
    let factory = ContextFactory::new("bench").store(server.url()).without_inventory().variables([("", ""); 0]);
    let dq = ten_topics(factory).start().await.unwrap();
    dq.ready().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cost = window(server, seconds).await;
    dq.shutdown(Duration::from_secs(1)).await;
    cost
}

async fn by_bare(server: &Server, seconds: usize) -> Cost {
    let connection = server.connect().await;
    let mut tasks = JoinSet::new();
    for queue in 0..10 {
        let mut connection = connection.clone();
        tasks.spawn(async move {
            let scripts = Scripts::load(&mut connection, &format!("queue-{queue}")).await;
            let mut next = tokio::time::interval(Duration::from_secs(15));
            loop {
                next.tick().await;
                scripts.claim(&mut connection, 100).await;
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    window(server, seconds).await
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let seconds = arguments.scaled(15, 300);
    let mut bench = Bench::start("idle", arguments, 2);
    let server = bench.server().await;
    for _ in bench.rounds() {
        for side in [Side::Bare, Side::Dq] {
            bench.step(format!("{side:?}"));
            server.empty().await;
            let cost = if side == Side::Dq { by_dq(&server, seconds).await } else { by_bare(&server, seconds).await };
            bench.record(side, "commands", "per second", cost.commands);
            bench.record(side, "Redis", "µs/s", cost.redis_us);
            bench.record(side, "process", "µs/s", cost.client_us);
            bench.record(side, "context switches", "per second", cost.switches);
        }
    }
    bench.finish();
}
