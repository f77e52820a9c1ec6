//! Many jobs due in the same millisecond on Redis: how fast they drain from then on, and how long the longest script takes, which
//! is how long every other client of the server waits.
//!
//! `cargo bench -p dq --bench herd -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dq_bench::bare::{self, best};
use dq_bench::{Arguments, Bench, Meter, Server, Side};
use job::{by_thousands, factory, nothing};
use listener::{Tally, do_nothing};

/// When all jobs are due: after they were added, at 50,000 a second.
fn due(jobs: usize) -> SystemTime {
    SystemTime::now() + Duration::from_millis(1_000 + jobs as u64 / 50)
}

/// Sleeps until this time is near.
async fn near(due: SystemTime) {
    let left = due.duration_since(SystemTime::now()).expect("the jobs are added before they are due");
    tokio::time::sleep(left).await;
}

async fn by_dq(bench: &mut Bench, server: &Server, jobs: usize) {
    server.empty().await;
    server.watch_slow_scripts().await;
    let tally = Tally::of(jobs);
    let dq = factory(server.url()).listener::<do_nothing>().provide(tally.clone()).start().await.unwrap();
    dq.ready().await;
    let due = due(jobs);
    by_thousands(jobs as u64, |part| dq.provider().add_many(part.map(|_| nothing())).at(due)).await;
    bench.record(Side::Dq, "longest script of the adds", "ms", server.longest_script().await / 1e3);
    server.watch_slow_scripts().await;
    near(due).await;
    let meter = Meter::on(server).await;
    tally.all().await;
    bench.record_cost(Side::Dq, "drain from the due time", &meter.end_on(server, jobs).await);
    bench.record(Side::Dq, "longest script of the drain", "ms", server.longest_script().await / 1e3);
    dq.shutdown(Duration::from_secs(1)).await;
}

async fn by_bare(bench: &mut Bench, server: &Server, jobs: usize, shape: bare::Shape) {
    server.empty().await;
    server.watch_slow_scripts().await;
    let due = due(jobs);
    bare::fill(server, "bare", jobs, due.duration_since(UNIX_EPOCH).unwrap().as_millis() as u64).await;
    bench.record(Side::Bare, "longest script of the adds", "ms", server.longest_script().await / 1e3);
    server.watch_slow_scripts().await;
    near(due).await;
    bench.record_cost(Side::Bare, "drain from the due time", &bare::drain(server, "bare", jobs, shape).await);
    bench.record(Side::Bare, "longest script of the drain", "ms", server.longest_script().await / 1e3);
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(100_000, 1_000_000);
    let mut bench = Bench::start("herd", arguments, 2);
    let server = bench.server().await;
    let try_one = async |shape| {
        server.empty().await;
        bare::fill(&server, "bare", 100_000, 1_000).await;
        bare::drain(&server, "bare", 100_000, shape).await
    };
    let shape = best(&[(100, 1), (200, 2), (500, 2), (1_000, 1)], try_one).await;
    bench.note(format!("{jobs} jobs; bare, at its best: {shape:?}"));
    for _ in bench.rounds() {
        bench.step("Bare");
        by_bare(&mut bench, &server, jobs, shape).await;
        bench.step("Dq");
        by_dq(&mut bench, &server, jobs).await;
    }
    bench.finish();
}
