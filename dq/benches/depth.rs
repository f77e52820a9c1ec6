//! Whether the number of waiting jobs changes what a claim and an ack cost: time in scripts on Redis, with few and with many jobs
//! that are not yet due.
//!
//! `cargo bench -p dq --bench depth -- [--quick]`; without `--quick` it needs 8 GB.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;
#[allow(dead_code, reason = "a drain beside other jobs is all it needs")]
#[path = "node/lives.rs"]
mod lives;

use std::time::Duration;

use dq_bench::bare::{self, Shape};
use dq_bench::{Arguments, Bench, Cost, Server, Side};
use job::{call, factory};
use listener::do_nothing;

const FEW: usize = 10_000;
/// Jobs that are claimed and acked in a measurement.
const DUE: usize = 50_000;
const CALLERS: usize = 4;

/// Adds jobs for each side, due in half an hour.
async fn fill(server: &Server, jobs: usize) {
    let dq = factory(server.url()).without_listeners().start().await.unwrap();
    call(dq.provider(), jobs, (CALLERS, 1_000), Duration::from_secs(1_800)).await;
    dq.shutdown(Duration::from_secs(1)).await;
    bare::fill(server, "bare", jobs, u64::MAX >> 12).await;
}

async fn by_dq(server: &Server) -> Cost {
    lives::drain(&server.url(), Some(server), DUE, |factory, tally| factory.listener::<do_nothing>().provide(tally))
        .await
}

async fn by_bare(server: &Server) -> Cost {
    bare::fill(server, "bare", DUE, 1_000).await;
    bare::drain(server, "bare", DUE, Shape { batch: 100, depth: 1 }).await
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let many = arguments.scaled(1_000_000, 10_000_000);
    let mut bench = Bench::start("depth", arguments, 4);
    let servers = [(FEW, bench.server().await), (many, bench.server().await)];
    for (jobs, server) in &servers {
        bench.note(format!("{jobs} jobs wait on one server"));
        fill(server, *jobs).await;
    }
    for _ in bench.rounds() {
        for (jobs, server) in &servers {
            for side in [Side::Bare, Side::Dq] {
                bench.step(format!("{jobs} {side:?}"));
                let cost = if side == Side::Dq { by_dq(server).await } else { by_bare(server).await };
                let name = if *jobs == FEW { "few wait" } else { "many wait" };
                bench.record(side, &format!("claim and ack, {name}: scripts"), "µs/job", cost.script_us);
                bench.record(side, &format!("claim and ack, {name}: Redis"), "µs/job", cost.redis_us);
            }
        }
        for what in ["scripts", "Redis"] {
            let [many, few] = ["many", "few"].map(|name| format!("claim and ack, {name} wait: {what}"));
            bench.record_quotient(&format!("many by few: {what}"), &many, &few);
        }
    }
    bench.finish();
}
