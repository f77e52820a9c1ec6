//! dq beside other job queues on Redis: the same work, payloads of 100 bytes, handlers that do nothing. Each has its natural API
//! at its best settings, which its file names. The table has a line for each queue; its column `bare` is that queue.
//!
//! `cargo bench --manifest-path dq/benches/peers/Cargo.toml -- [--quick] [--only WORDS] [--json FILE] [--redis PATH] [--aof]`

mod apalis;
mod bullmq;
mod chasquimq;
mod dq;
mod oxana;

use std::time::Instant;

use dq_bench::{Arguments, Bench, Server, Side};
use dq_peers::{Peer, all_have_run, expect};

/// A payload that has 100 bytes as JSON, `{"payload":"xx.."}`.
pub(crate) fn text() -> String {
    "x".repeat(86)
}

/// What is measured, and how many jobs a round has; slow ones have fewer.
const LINES: [(&str, usize); 5] = [
    ("add, one caller", 10_000),
    ("add, 64 callers", 50_000),
    ("add, 1,000 jobs a call", 100_000),
    ("drain", 50_000),
    ("lives, 64 callers", 50_000),
];
/// The first of them whose jobs run.
const FIRST_WITH_RUNS: usize = 3;
const CALLERS: usize = 64;

/// Jobs a second of one queue at one kind of work.
async fn rate<P: Peer>(server: &Server, line: usize, jobs: usize) -> f64 {
    server.empty().await;
    let url = server.url();
    let jobs = if line < FIRST_WITH_RUNS { jobs } else { jobs.min(P::MAX_WAITING) };
    let mut peer = P::connect(&url).await;
    let worker = match line {
        3 => {
            add_many(&mut peer, jobs).await;
            None
        }
        4 => Some(peer.work(&url).await),
        _ => None,
    };
    let jobs = if line == 3 { jobs } else { jobs / CALLERS * CALLERS };
    expect(jobs);
    let start = Instant::now();
    let worker = match line {
        0 => {
            let added = tokio::spawn(async move {
                for _ in 0..jobs {
                    peer.add().await;
                }
            });
            added.await.unwrap();
            None
        }
        1 => {
            call(&peer, jobs).await;
            None
        }
        2 => {
            add_many(&mut peer, jobs).await;
            None
        }
        3 => {
            let worker = peer.work(&url).await;
            all_have_run().await;
            Some(worker)
        }
        _ => {
            call(&peer, jobs).await;
            all_have_run().await;
            worker
        }
    };
    let rate = jobs as f64 / start.elapsed().as_secs_f64();
    if let Some(worker) = worker {
        P::end(worker).await;
    }
    rate
}

/// Each of 64 callers adds a job, waits for the answer, and so on.
async fn call<P: Peer>(peer: &P, jobs: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let mut peer = peer.clone();
        tasks.spawn(async move {
            for _ in 0..jobs / CALLERS {
                peer.add().await;
            }
        });
    }
    tasks.join_all().await;
}

async fn add_many<P: Peer>(peer: &mut P, jobs: usize) {
    for from in (0..jobs).step_by(1_000) {
        peer.add_many((jobs - from).min(1_000)).await;
    }
}

/// The version of a server that is Redis: `Redis 8.2.3` is (8, 2).
fn redis_version(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.strip_prefix("Redis ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Measures one queue, and records it beside what dq did in this round.
async fn beside<P: Peer>(bench: &mut Bench, server: &Server, line: usize, jobs: usize, own: f64) {
    let redis = redis_version(&server.version().await);
    let name = format!("{}, {}", LINES[line].0, P::NAME);
    bench.step(&name);
    if line >= FIRST_WITH_RUNS && P::WORKS_ON.is_some_and(|oldest| redis < Some(oldest)) {
        return;
    }
    bench.record(Side::Dq, &name, "jobs/s", own);
    bench.record(Side::Bare, &name, "jobs/s", rate::<P>(server, line, jobs).await);
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let part = if arguments.quick { 4 } else { 1 };
    let lines: Vec<usize> = (0..LINES.len()).filter(|line| arguments.wants(LINES[*line].0)).collect();
    let mut bench = Bench::start("peers", arguments, 5 * lines.len());
    let server = bench.server().await;
    for _ in bench.rounds() {
        for &line in &lines {
            let (name, jobs) = LINES[line];
            let jobs = jobs / part;
            let own = rate::<dq::Dq>(&server, line, jobs).await;
            bench.step(name);
            beside::<chasquimq::Chasquimq>(&mut bench, &server, line, jobs, own).await;
            beside::<bullmq::Bullmq>(&mut bench, &server, line, jobs, own).await;
            beside::<apalis::Apalis>(&mut bench, &server, line, jobs, own).await;
            beside::<oxana::Oxana>(&mut bench, &server, line, jobs, own).await;
        }
    }
    bench.finish();
}
