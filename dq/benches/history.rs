//! What histories cost: whole lives of jobs with `history = 20`, and with `history_after` beside it, each beside the same node without.
//!
//! `cargo bench -p dq --bench history -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;

use std::time::Duration;

use dq::config::TopicOverrides;
use dq_bench::{Arguments, Bench, Cost, Meter, Server, Side};
use job::{factory, nothing};
use listener::{Tally, do_nothing};

type Settings = fn(TopicOverrides) -> TopicOverrides;

/// What a topic keeps.
const KEPT: [(&str, Settings); 2] = [
    ("history = 20", |topic| topic.history(20)),
    ("history_after = 1h too", |topic| topic.history(20).history_after("1h")),
];

/// 16 callers add the jobs, 100 at a time, and a node runs them.
async fn lives(url: &str, server: Option<&Server>, jobs: usize, settings: Settings) -> Cost {
    if let Some(server) = server {
        server.empty().await;
    }
    let tally = Tally::of(jobs);
    let listener = factory(url).listener::<do_nothing>().provide(tally.clone()).topic("nothing", settings);
    let dq = listener.start().await.unwrap();
    dq.ready().await;
    let meter = match server {
        Some(server) => Meter::on(server).await,
        None => Meter::start(),
    };
    for _ in 0..16 {
        let provider = dq.provider().clone();
        tokio::spawn(async move {
            for _ in 0..jobs / 1_600 {
                provider.add_many((0..100).map(|_| nothing())).await.unwrap().all().unwrap();
            }
        });
    }
    tally.all().await;
    let cost = match server {
        Some(server) => meter.end_on(server, jobs).await,
        None => meter.end(jobs),
    };
    dq.shutdown(Duration::from_secs(1)).await;
    cost
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(32_000, 320_000);
    let mut bench = Bench::start("history", arguments, 2 * 2 * KEPT.len());
    let server = bench.server().await;
    for round in bench.rounds() {
        for (says, settings) in KEPT {
            for (store, url, server) in [("Redis", server.url(), Some(&server)), ("memory", "memory:".to_owned(), None)]
            {
                let sides: [(Side, Settings); 2] = [(Side::Bare, |topic| topic), (Side::Dq, settings)];
                for place in 0..2 {
                    let (side, settings) = sides[(place + round) % 2];
                    bench.step(format!("{store}, {says} {side:?}"));
                    let cost = lives(&url, server, jobs, settings).await;
                    bench.record_cost(side, &format!("{store}, {says}"), &cost);
                }
            }
        }
    }
    bench.note(format!("{jobs} jobs, 16 callers with 100 each; `bare` is the same node without histories"));
    bench.finish();
}
