//! A job that is due before all others, added by one node and run by another: the time from its add to its start on Redis. The bare
//! client adds a job, publishes a message, and a subscriber claims and starts it.
//!
//! `cargo bench -p dq --bench wake -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dq::prelude::*;
use dq_bench::bare::{Scripts, announced};
use dq_bench::{Arguments, Bench, Lateness, Server, Side};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "head")]
struct Head {
    added: u64,
}

#[delay_listener(register = false)]
async fn start(job: Job<Head>, lateness: &Lateness) -> Result<(), JobError> {
    lateness.start(UNIX_EPOCH + Duration::from_nanos(job.added));
    Ok(())
}

const PAUSE: Duration = Duration::from_millis(20);

/// Nanoseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn factory(server: &Server) -> ContextFactory {
    ContextFactory::new("bench").store(server.url()).without_inventory().variables([("", ""); 0])
}

async fn by_dq(server: &Server, heads: usize) -> Histogram<u64> {
    let lateness = Lateness::of(heads);
    let listening = factory(server).listener::<start>().provide(lateness.clone()).start().await.unwrap();
    let adding = factory(server).without_listeners().start().await.unwrap();
    adding.provider().add(Head { added: 0 }).after("1h").await.unwrap();
    listening.ready().await;
    for _ in 0..heads {
        tokio::time::sleep(PAUSE).await;
        adding.provider().add(Head { added: now() }).await.unwrap();
    }
    let found = lateness.all().await;
    listening.shutdown(Duration::from_secs(1)).await;
    adding.shutdown(Duration::from_secs(1)).await;
    found
}

async fn by_bare(server: &Server, heads: usize) -> Histogram<u64> {
    let lateness = Lateness::of(heads);
    let _listening = announced(&server.url(), "head", lateness.clone()).await;
    let mut adding = server.connect().await;
    let scripts = Scripts::load(&mut adding, "head").await;
    scripts.add(&mut adding, std::iter::once(("later".into(), u64::MAX >> 12))).await;
    for n in 0..heads {
        tokio::time::sleep(PAUSE).await;
        let added = now();
        scripts.announce(&mut adding, "head", format!("{added}-{n}"), added / 1_000_000).await;
    }
    lateness.all().await
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let heads = arguments.scaled(200, 2_000);
    let mut bench = Bench::start("wake", arguments, 2);
    let server = bench.server().await;
    for _ in bench.rounds() {
        for side in [Side::Bare, Side::Dq] {
            bench.step(format!("{side:?}"));
            server.empty().await;
            let found = if side == Side::Dq { by_dq(&server, heads).await } else { by_bare(&server, heads).await };
            for (name, percentile) in
                [("add to start: p50", 50.0), ("add to start: p99", 99.0), ("add to start: max", 100.0)]
            {
                bench.record(side, name, "ms", found.value_at_percentile(percentile) as f64 / 1e3);
            }
        }
    }
    bench.finish();
}
