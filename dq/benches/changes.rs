//! What the verbs cost that change what waits, and the state of a topic, each beside what one would do without it. And 10,000 heartbeats
//! of sessions a second: the deadlines of sessions that move with each of them.
//!
//! `cargo bench -p dq --bench changes -- [--quick]`
//!
//! In the table, `dq` is the verb, and `bare` is dq without it: the neighbour that [`LINES`] names.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/heartbeats.rs"]
mod heartbeats;
#[allow(dead_code, reason = "these jobs have ids of their own")]
#[path = "node/job.rs"]
mod job;

use std::time::Duration;

use dq::prelude::*;
use dq_bench::{Arguments, Bench, Cost, Meter, Server, Side};
use heartbeats::{Session, Verb};
use job::{by_thousands, factory};

/// The figures, each with its neighbour.
const LINES: [&str; 8] = [
    "add, the topic has a default delay; it has none",
    "extend_by; add again with replace_existing",
    "update; add again with replace_existing",
    "add_or_extend; add again with replace_existing",
    "extend_by of far jobs, each the second time; the first time",
    "claim and ack of jobs that were changed once; of others",
    "a pause and its resume; a job that is added alone",
    "a tick of a schedule, and its job; a job that is added alone, and runs",
];

/// Jobs of one call.
const BATCH: u64 = 1_000;

/// Soon enough to wait near the head.
const SOON: &str = "4m";

async fn add(jobs: &Provider, count: u64, after: &str) {
    by_thousands(count, |part| jobs.add_many(part.map(Session)).after(after)).await;
}

/// Measures a verb on all of `count` sessions, by thousands.
async fn of_all(server: &Server, jobs: &Provider, count: u64, verb: Verb) -> Cost {
    let meter = Meter::on(server).await;
    for from in (0..count).step_by(BATCH as usize) {
        verb.apply(jobs, from..from + BATCH, SOON).await;
    }
    meter.end_on(server, count as usize).await
}

async fn measured(line: usize, side: Side, server: &Server, count: u64) -> Cost {
    server.empty().await;
    let node = factory(server.url()).without_listeners().start().await.unwrap();
    let jobs = node.provider();
    let cost = match line {
        0 => {
            if side == Side::Dq {
                jobs.set_default_delay::<Session>(SOON).await.unwrap();
            }
            jobs.add(Session(u64::MAX)).await.unwrap();
            let meter = Meter::on(server).await;
            by_thousands(count, |part| jobs.add_many(part.map(Session))).await;
            meter.end_on(server, count as usize).await
        }
        1..=3 => {
            add(jobs, count, SOON).await;
            let verb = [Verb::ExtendBy, Verb::Update, Verb::AddOrExtend][line - 1];
            of_all(server, jobs, count, if side == Side::Dq { verb } else { Verb::AddAgain }).await
        }
        4 => {
            add(jobs, count, "30m").await;
            if side == Side::Dq {
                of_all(server, jobs, count, Verb::ExtendBy).await;
            }
            of_all(server, jobs, count, Verb::ExtendBy).await
        }
        5 => heartbeats::drained(server, jobs, count, side == Side::Dq).await,
        6 => pairs(server, jobs, side).await,
        _ => heartbeats::ticks(server, side == Side::Dq).await,
    };
    node.shutdown(Duration::from_secs(1)).await;
    cost
}

async fn pairs(server: &Server, jobs: &Provider, side: Side) -> Cost {
    const PAIRS: usize = 1_000;
    jobs.add(Session(u64::MAX)).after(SOON).await.unwrap();
    let meter = Meter::on(server).await;
    for n in 0..PAIRS as u64 {
        if side == Side::Dq {
            jobs.pause::<Session>().reason("a benchmark").by("dq").await.unwrap();
            jobs.resume::<Session>().await.unwrap();
        } else {
            jobs.add(Session(n)).after(SOON).await.unwrap();
        }
    }
    meter.end_on(server, PAIRS).await
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let count = arguments.scaled(20_000, 200_000) as u64;
    let seconds = arguments.scaled(3, 10) as u64;
    let lines: Vec<usize> = (0..LINES.len()).filter(|line| arguments.wants(LINES[*line])).collect();
    let verbs: Vec<Verb> = Verb::HEARTBEATS.into_iter().filter(|verb| arguments.wants(verb.heartbeat())).collect();
    let mut bench = Bench::start("changes", arguments, 2 * lines.len() + verbs.len());
    let server = bench.server().await;
    for _ in bench.rounds() {
        for &line in &lines {
            for side in [Side::Bare, Side::Dq] {
                bench.step(format!("{} {side:?}", LINES[line]));
                let cost = measured(line, side, &server, count).await;
                bench.record_cost(side, LINES[line], &cost);
                bench.record(side, &format!("{}: calls", LINES[line]), "per job", cost.calls);
            }
        }
        for &verb in &verbs {
            bench.step(verb.heartbeat());
            heartbeats::paced(&mut bench, &server, verb, seconds).await;
        }
    }
    bench.finish();
}
