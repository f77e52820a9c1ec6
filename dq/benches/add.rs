//! Adds a second on Redis, without a node that runs the jobs: one caller after the other, 64 callers at once, and in bulk.
//! The bare client adds by one script a job, and in bulk by its best batch and depth.
//!
//! `cargo bench -p dq --bench add -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;

use std::time::Duration;

use dq_bench::bare::{self, best};
use dq_bench::{Arguments, Bench, Cost, Meter, Server, Side};
use job::{call, factory, nothing};

/// How the callers of a figure add: its name, callers, jobs a call, and which part of the jobs.
const LINES: [(&str, usize, usize, usize); 4] = [
    ("one caller, one after the other", 1, 1, 10),
    ("64 callers, a job each", 64, 1, 1),
    ("bulk, one caller, 1,000 jobs a call", 1, 1_000, 1),
    ("bulk, 4 callers, 1,000 jobs a call", 4, 1_000, 1),
];

/// The topic waits ten minutes, as jobs of a scheduler do, so each job is behind the others.
async fn by_dq(server: &Server, jobs: usize, callers: usize, batch: usize) -> Cost {
    server.empty().await;
    let dq = factory(server.url()).without_listeners().start().await.unwrap();
    dq.provider().add(nothing()).after("10m").await.unwrap();
    let meter = Meter::on(server).await;
    call(dq.provider(), jobs, (callers, batch), Duration::from_secs(600)).await;
    let cost = meter.end_on(server, jobs).await;
    dq.shutdown(Duration::from_secs(1)).await;
    cost
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(64_000, 512_000);
    let lines: Vec<_> = LINES.into_iter().filter(|(name, ..)| arguments.wants(name)).collect();
    let mut bench = Bench::start("add", arguments, 2 * lines.len());
    let server = bench.server().await;
    let spread = best(&[(1, 1), (1, 2), (1, 4)], async |it| bare::add_each(&server, 64_000, 64, it.depth).await).await;
    let shapes = [(100, 8), (250, 4), (500, 2), (500, 8), (1_000, 2), (1_000, 4)];
    let bulk = best(&shapes, async |shape| bare::add_bulk(&server, 128_000, shape).await).await;
    bench.note(format!("bare, at its best: 64 callers over {} connections, bulk {bulk:?}", spread.depth));
    for _ in bench.rounds() {
        for &(name, callers, batch, part) in &lines {
            for side in [Side::Bare, Side::Dq] {
                bench.step(format!("{name} {side:?}"));
                let jobs = jobs / part;
                let cost = match (side, batch) {
                    (Side::Dq, _) => by_dq(&server, jobs, callers, batch).await,
                    (Side::Bare, 1) => bare::add_each(&server, jobs, callers, spread.depth.min(callers)).await,
                    (Side::Bare, _) => bare::add_bulk(&server, jobs, bulk).await,
                };
                bench.record_cost(side, name, &cost);
            }
        }
    }
    bench.finish();
}
