//! The draining of a backlog by a listener that takes batches of 500, beside one that takes single jobs: on Redis and on the memory
//! store, with handlers that do nothing, and with handlers that make one call of a millisecond, as to a database.
//!
//! `cargo bench -p dq --bench batches -- [--quick]`
//!
//! In the table, `dq` is batches and `bare` is single jobs.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[allow(dead_code, reason = "the listener of single jobs is the other benchmarks' own")]
#[path = "node/listener.rs"]
mod listener;

use std::time::Duration;

use dq::prelude::*;
use dq_bench::{Arguments, Bench, Cost, Meter, Server, Side};
use job::{Nothing, factory, nothing};
use listener::Tally;

const LINES: [&str; 4] =
    ["Redis, drain", "Redis, drain, a call of 1 ms", "memory, drain", "memory, drain, a call of 1 ms"];

/// How many handlers run at a time.
const HANDLERS: usize = 64;

/// How long the call takes that each handler makes.
#[derive(Debug, Clone, Copy)]
struct CallTakes(Duration);

impl CallTakes {
    async fn call(self) {
        if !self.0.is_zero() {
            tokio::time::sleep(self.0).await;
        }
    }
}

#[delay_listener(register = false)]
async fn single(job: Job<Nothing>, tally: &Tally, takes: &CallTakes) -> Result<(), JobError> {
    std::hint::black_box(&job);
    takes.call().await;
    tally.count();
    Ok(())
}

#[delay_listener(register = false, batch = 500)]
async fn batch(batch: Batch<Nothing>, tally: &Tally, takes: &CallTakes) -> Result<Decided, JobError> {
    std::hint::black_box(&batch);
    takes.call().await;
    batch.iter().for_each(|_| tally.count());
    Ok(batch.rest().ack())
}

async fn drain(url: &str, side: Side, server: Option<&Server>, jobs: usize, takes: CallTakes) -> Cost {
    let adding = factory(url).without_listeners().start().await.unwrap();
    for from in (0..jobs).step_by(1_000) {
        adding.provider().add_many((from..jobs.min(from + 1_000)).map(|_| nothing())).await.unwrap().all().unwrap();
    }
    let tally = Tally::of(jobs);
    let node = factory(url).provide(tally.clone()).provide(takes).topic("nothing", |topic| topic.concurrency(HANDLERS));
    let node = match side {
        Side::Dq => node.batch_listener::<batch>(),
        Side::Bare => node.listener::<single>(),
    };
    let meter = match server {
        Some(server) => Meter::on(server).await,
        None => Meter::start(),
    };
    let dq = node.start().await.unwrap();
    tally.all().await;
    let cost = match server {
        Some(server) => meter.end_on(server, jobs).await,
        None => meter.end(jobs),
    };
    dq.shutdown(Duration::from_secs(1)).await;
    adding.shutdown(Duration::from_secs(1)).await;
    cost
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(100_000, 500_000);
    let lines: Vec<usize> = (0..LINES.len()).filter(|line| arguments.wants(LINES[*line])).collect();
    let mut bench = Bench::start("batches", arguments, 2 * lines.len());
    let server = bench.server().await;
    bench.note(format!("{HANDLERS} handlers at a time; dq: batches of 500, bare: single jobs"));
    for round in bench.rounds() {
        for &line in &lines {
            let takes = CallTakes(Duration::from_millis((line % 2) as u64));
            for side in [Side::Bare, Side::Dq] {
                bench.step(format!("{} {side:?}", LINES[line]));
                let cost = if line < 2 {
                    server.empty().await;
                    drain(&server.url(), side, Some(&server), jobs, takes).await
                } else {
                    drain(&format!("memory:batches-{round}-{line}-{side:?}"), side, None, jobs, takes).await
                };
                bench.record_cost(side, LINES[line], &cost);
            }
        }
    }
    bench.finish();
}
