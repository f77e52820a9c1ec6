//! Bytes of a waiting job: in Redis, and in a process with the memory store. And whether the memory of a node stays flat over many
//! lives. The bare client and a bare heap keep the same payloads.
//!
//! `cargo bench -p dq --bench memory -- [--quick]`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "node/job.rs"]
mod job;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use dq::prelude::*;
use dq_bench::meter::resident;
use dq_bench::{Arguments, Bench, PAYLOAD, Permits, Server, Side, bare, in_process};
use job::{Nothing, factory, nothing};

/// Adds jobs by thousands; where `chosen`, with ids of their own of 16 characters.
async fn add(dq: &Context, jobs: usize, delay: &str, chosen: bool) {
    let topic = dq.provider().topic("nothing").unwrap();
    let payload: serde_json::Value = serde_json::from_str(PAYLOAD).unwrap();
    for from in (0..jobs).step_by(1_000) {
        if chosen {
            let adds = (from..jobs.min(from + 1_000))
                .map(|n| topic.add_json(payload.clone()).id(format!("{n:016}")).after(delay));
            for added in futures_util::future::join_all(adds).await {
                added.unwrap();
            }
        } else {
            let added = dq.provider().add_many((from..jobs.min(from + 1_000)).map(|_| nothing())).after(delay);
            assert!(added.await.unwrap().iter().all(Result::is_ok));
        }
    }
}

async fn on_redis(server: &Server, side: Side, jobs: usize, delay: &str, chosen: bool) -> f64 {
    server.empty().await;
    let before = server.used_memory().await;
    if side == Side::Bare {
        bare::fill(server, "bare", jobs, u64::MAX >> 12).await;
    } else {
        let dq = factory(server.url()).without_listeners().start().await.unwrap();
        add(&dq, jobs, delay, chosen).await;
        dq.shutdown(Duration::from_secs(1)).await;
    }
    (server.used_memory().await - before) as f64 / jobs as f64
}

/// Jobs whose lives a node has behind it when its memory is first read, of all that it runs.
const FIRST_PART: usize = 10;

/// A part that runs as a process of its own, because memory once used may stay with the process: `--role WHAT URL JOBS`.
async fn measure(words: &[String]) -> f64 {
    let [what, url, jobs] = words else { panic!("a role has three words") };
    let jobs: usize = jobs.parse().unwrap();
    match what.as_str() {
        "heap" => {
            let before = resident();
            let mut due = BinaryHeap::new();
            let mut payloads = HashMap::new();
            for n in 0..jobs as u64 {
                due.push(Reverse((n, n)));
                payloads.insert(n, PAYLOAD.as_bytes().to_vec());
            }
            std::hint::black_box((&due, &payloads));
            (resident() - before) as f64 / jobs as f64
        }
        "store" => {
            let dq = factory(url).without_listeners().start().await.unwrap();
            add(&dq, 1_000, "10m", false).await;
            let before = resident();
            add(&dq, jobs, "10m", false).await;
            (resident() - before) as f64 / jobs as f64
        }
        _ => {
            let runs = Permits::of(0);
            let dq = factory(url).listener::<count>().provide(runs.clone()).start().await.unwrap();
            dq.ready().await;
            lives(&dq, jobs / FIRST_PART, &runs).await;
            let before = resident();
            lives(&dq, jobs - jobs / FIRST_PART, &runs).await;
            resident() as f64 / before as f64
        }
    }
}

#[delay_listener(register = false)]
async fn count(job: Job<Nothing>, runs: &Permits) -> Result<(), JobError> {
    std::hint::black_box(&job);
    runs.add(1);
    Ok(())
}

/// Jobs that are added together; the next are added when these have run, so that the backlog is no part of the memory.
const SLICE: usize = 10_000;

/// Ten callers add a slice, a hundred jobs at a time; all run; and so on.
async fn lives(dq: &Context, jobs: usize, runs: &Permits) {
    for _ in 0..jobs / SLICE {
        for _ in 0..10 {
            let provider = dq.provider().clone();
            tokio::spawn(async move {
                for _ in 0..SLICE / 1_000 {
                    provider.add_many((0..100).map(|_| nothing())).await.unwrap().all().unwrap();
                }
            });
        }
        runs.take(SLICE).await;
    }
}

/// The figures in Redis: how long the jobs wait, and whether their ids are chosen.
const IN_REDIS: [(&str, &str, bool); 4] = [
    ("Redis, due in 10 minutes", "10m", false),
    ("Redis, due in 10 minutes, chosen ids", "10m", true),
    ("Redis, due in 2 hours", "2h", false),
    ("Redis, due in 2 hours, chosen ids", "2h", true),
];

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    if !arguments.role.is_empty() {
        return println!("{}", measure(&arguments.role).await);
    }
    let (jobs, runs) = (arguments.scaled(100_000, 1_000_000), arguments.scaled(500_000, 5_000_000));
    let mut bench = Bench::start("memory", arguments, 2 * IN_REDIS.len() + 3);
    let server = bench.server().await;
    for _ in bench.rounds() {
        for (name, delay, chosen) in IN_REDIS {
            for side in [Side::Bare, Side::Dq] {
                bench.step(format!("{name} {side:?}"));
                let bytes = on_redis(&server, side, jobs, delay, chosen).await;
                bench.record(side, name, "bytes/job", bytes);
            }
        }
        bench.step("memory store");
        let [bytes] = in_process(&[&"heap", &"none", &jobs]);
        bench.record(Side::Bare, "memory store", "bytes/job", bytes);
        let [bytes] = in_process(&[&"store", &"memory:", &jobs]);
        bench.record(Side::Dq, "memory store", "bytes/job", bytes);
        bench.step("lives on Redis");
        server.empty().await;
        let name = "RSS of a node after all lives by that after a tenth";
        let [flat] = in_process(&[&"lives", &server.url(), &runs]);
        bench.record(Side::Dq, &format!("{name}, Redis"), "×", flat);
        bench.step("lives in memory");
        let [flat] = in_process(&[&"lives", &"memory:", &runs]);
        bench.record(Side::Dq, &format!("{name}, memory store"), "×", flat);
    }
    bench.note(format!("{jobs} jobs wait; {runs} lives"));
    bench.finish();
}
