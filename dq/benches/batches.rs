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
#[path = "node/lives.rs"]
mod lives;

use std::time::Duration;

use dq::prelude::*;
use dq_bench::{Arguments, Bench, Side};
use job::Nothing;
use listener::Tally;
use lives::Line;

const LINES: [(Line, CallTakes); 4] = [
    (Line { name: "Redis, drain", on_redis: true, callers: None }, CallTakes(Duration::ZERO)),
    (Line { name: "Redis, drain, a call of 1 ms", on_redis: true, callers: None }, CallTakes(Duration::from_millis(1))),
    (Line { name: "memory, drain", on_redis: false, callers: None }, CallTakes(Duration::ZERO)),
    (
        Line { name: "memory, drain, a call of 1 ms", on_redis: false, callers: None },
        CallTakes(Duration::from_millis(1)),
    ),
];

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

#[delay_listener(register = false, batch_size = 500)]
async fn batch(batch: Batch<Nothing>, tally: &Tally, takes: &CallTakes) -> Result<Decided, JobError> {
    std::hint::black_box(&batch);
    takes.call().await;
    batch.iter().for_each(|_| tally.count());
    Ok(batch.rest().ack())
}

fn node(factory: ContextFactory, tally: Tally, takes: CallTakes, side: Side) -> ContextFactory {
    let node = factory.provide(tally).provide(takes).topic("nothing", |topic| topic.concurrency(HANDLERS));
    match side {
        Side::Dq => node.batch_listener::<batch>(),
        Side::Bare => node.listener::<single>(),
    }
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(100_000, 500_000);
    let lines: Vec<_> = LINES.into_iter().filter(|(line, _)| arguments.wants(line.name)).collect();
    let mut bench = Bench::start("batches", arguments, 2 * lines.len());
    let server = bench.server().await;
    bench.note(format!("{HANDLERS} handlers at a time; dq: batches of 500, bare: single jobs"));
    for _ in bench.rounds() {
        for &(line, takes) in &lines {
            for side in [Side::Bare, Side::Dq] {
                bench.step(format!("{} {side:?}", line.name));
                let cost = line.cost(&server, jobs, |factory, tally| node(factory, tally, takes, side)).await;
                bench.record_cost(side, line.name, &cost);
            }
        }
    }
    bench.finish();
}
