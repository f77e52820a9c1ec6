//! What the statistics of a topic cost: whole lives and a backlog that drains, on Redis and on the memory store, in a topic that keeps
//! statistics (`dq` in the table) and in one that keeps none (`bare`).
//!
//! `cargo bench -p dq --bench statistics -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;

use std::time::Duration;

use dq_bench::{Arguments, Bench, Cost, Meter, Server, Side};
use job::{factory, nothing};
use listener::{Tally, do_nothing};

/// The figures.
const LINES: [&str; 5] = [
    "Redis, lives, 64 callers, a job each",
    "Redis, lives, 16 callers, 100 jobs each",
    "Redis, drain",
    "memory, lives, 64 callers, a job each",
    "memory, drain",
];

async fn node(url: &str, tally: &Tally, side: Side) -> dq::Context {
    let keeps = side == Side::Dq;
    let factory = factory(url).listener::<do_nothing>().provide(tally.clone());
    factory.topic("nothing", move |topic| topic.statistics(keeps)).start().await.unwrap()
}

/// Each caller adds `batch` jobs at a time and waits for the answer.
fn call(dq: &dq::Context, jobs: usize, callers: usize, batch: usize) {
    for _ in 0..callers {
        let provider = dq.provider().clone();
        tokio::spawn(async move {
            for _ in 0..jobs / callers / batch {
                if batch == 1 {
                    provider.add(nothing()).await.unwrap();
                } else {
                    provider.add_many((0..batch).map(|_| nothing())).await.unwrap().all().unwrap();
                }
            }
        });
    }
}

async fn begin(server: Option<&Server>) -> Meter {
    match server {
        Some(server) => Meter::on(server).await,
        None => Meter::start(),
    }
}

async fn end(meter: Meter, server: Option<&Server>, jobs: usize) -> Cost {
    match server {
        Some(server) => meter.end_on(server, jobs).await,
        None => meter.end(jobs),
    }
}

async fn lives(url: &str, server: Option<&Server>, side: Side, jobs: usize, (callers, batch): (usize, usize)) -> Cost {
    let tally = Tally::of(jobs);
    let dq = node(url, &tally, side).await;
    dq.ready().await;
    let meter = begin(server).await;
    call(&dq, jobs, callers, batch);
    tally.all().await;
    let cost = end(meter, server, jobs).await;
    dq.shutdown(Duration::from_secs(1)).await;
    cost
}

async fn drain(url: &str, server: Option<&Server>, side: Side, jobs: usize) -> Cost {
    let adding = factory(url).without_listeners().start().await.unwrap();
    for from in (0..jobs).step_by(1_000) {
        adding.provider().add_many((from..jobs.min(from + 1_000)).map(|_| nothing())).await.unwrap().all().unwrap();
    }
    let tally = Tally::of(jobs);
    let meter = begin(server).await;
    let dq = node(url, &tally, side).await;
    tally.all().await;
    let cost = end(meter, server, jobs).await;
    dq.shutdown(Duration::from_secs(1)).await;
    adding.shutdown(Duration::from_secs(1)).await;
    cost
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(102_400, 512_000);
    let lines: Vec<usize> = (0..LINES.len()).filter(|line| arguments.wants(LINES[*line])).collect();
    let mut bench = Bench::start("statistics", arguments, 2 * lines.len());
    let server = bench.server().await;
    for round in bench.rounds() {
        for &line in &lines {
            // The first of a pair has the colder machine, so they take turns.
            let sides = if round % 2 == 0 { [Side::Bare, Side::Dq] } else { [Side::Dq, Side::Bare] };
            for side in sides {
                bench.step(format!("{} {side:?}", LINES[line]));
                let (memory, on) = (format!("memory:statistics-{round}-{side:?}"), Some(&server));
                if line < 3 {
                    server.empty().await;
                }
                let cost = match line {
                    0 => lives(&server.url(), on, side, jobs, (64, 1)).await,
                    1 => lives(&server.url(), on, side, jobs, (16, 100)).await,
                    2 => drain(&server.url(), on, side, jobs).await,
                    3 => lives(&memory, None, side, jobs, (64, 1)).await,
                    _ => drain(&memory, None, side, jobs).await,
                };
                bench.record_cost(side, LINES[line], &cost);
            }
        }
    }
    bench.finish();
}
