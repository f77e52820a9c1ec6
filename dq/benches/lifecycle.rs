//! Jobs a second from add to ack, with a handler that does nothing, and the draining of a backlog: on Redis beside the bare
//! client, and on the memory store beside a naive heap.
//!
//! `cargo bench -p dq --bench lifecycle -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;
mod naive;

use std::time::Duration;

use dq_bench::bare::{self, Shape, best};
use dq_bench::{Arguments, Bench, Cost, Meter, Server, Side};
use job::{factory, nothing};
use listener::{Tally, do_nothing};

/// The figures; each is measured for dq and for what it is compared with.
const LINES: [&str; 5] = [
    "Redis, lives, 64 callers, a job each",
    "Redis, lives, 16 callers, 100 jobs each",
    "Redis, drain",
    "memory, lives, 64 callers, a job each",
    "memory, drain",
];

/// At most as many jobs are unanswered as 64 callers have.
const OF_SINGLES: [(usize, usize); 3] = [(64, 1), (32, 2), (16, 4)];
/// A script of the bare client has 300 jobs at most, as many as one of dq usually has.
const OF_BATCHES: [(usize, usize); 6] = [(50, 16), (100, 4), (100, 16), (200, 8), (300, 4), (300, 8)];
const OF_DRAINS: [(usize, usize); 6] = [(100, 1), (100, 2), (200, 1), (200, 2), (300, 1), (300, 2)];

#[derive(Clone, Copy)]
struct Shapes {
    singles: Shape,
    batches: Shape,
    drains: Shape,
}

impl Shapes {
    async fn find(server: &Server, jobs: usize) -> Self {
        let lives = async |shape| bare::lives(server, jobs, shape).await;
        Self {
            singles: best(&OF_SINGLES, lives).await,
            batches: best(&OF_BATCHES, lives).await,
            drains: best(&OF_DRAINS, async |shape| bare_drain(server, jobs, shape).await).await,
        }
    }
}

async fn bare_drain(server: &Server, jobs: usize, shape: Shape) -> Cost {
    server.empty().await;
    bare::fill(server, "bare", jobs, 1_000).await;
    bare::drain(server, "bare", jobs, shape).await
}

async fn on_redis(line: usize, side: Side, server: &Server, jobs: usize, shapes: Shapes) -> Cost {
    match (line, side) {
        (0, Side::Bare) => bare::lives(server, jobs, shapes.singles).await,
        (1, Side::Bare) => bare::lives(server, jobs, shapes.batches).await,
        (_, Side::Bare) => bare_drain(server, jobs, shapes.drains).await,
        (0, Side::Dq) => lives_on_redis(server, jobs, 64, 1).await,
        (1, Side::Dq) => lives_on_redis(server, jobs, 16, 100).await,
        (_, Side::Dq) => drain_on_redis(server, jobs).await,
    }
}

async fn in_memory(line: usize, side: Side, jobs: usize, round: usize) -> Cost {
    match (line, side) {
        (3, Side::Bare) => naive::lives(jobs, 64).await,
        (3, Side::Dq) => lives_in_memory(jobs).await,
        (_, Side::Bare) => naive::drain(jobs).await,
        (_, Side::Dq) => drain_in_memory(jobs, round).await,
    }
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

async fn lives_on_redis(server: &Server, jobs: usize, callers: usize, batch: usize) -> Cost {
    server.empty().await;
    let tally = Tally::of(jobs);
    let dq = factory(&server.url()).listener::<do_nothing>().provide(tally.clone()).start().await.unwrap();
    dq.ready().await;
    let meter = Meter::on(server).await;
    call(&dq, jobs, callers, batch);
    tally.all().await;
    let cost = meter.end_on(server, jobs).await;
    dq.shutdown(Duration::from_secs(1)).await;
    cost
}

async fn lives_in_memory(jobs: usize) -> Cost {
    let tally = Tally::of(jobs);
    let dq = factory("memory:").listener::<do_nothing>().provide(tally.clone()).start().await.unwrap();
    dq.ready().await;
    let meter = Meter::start();
    call(&dq, jobs, 64, 1);
    tally.all().await;
    let cost = meter.end(jobs);
    dq.shutdown(Duration::from_secs(1)).await;
    cost
}

/// Adds the jobs of a drain; the node that added them stays, because a memory store ends with its last node.
async fn backlog(url: &str, jobs: usize) -> dq::Context {
    let adding = factory(url).without_listeners().start().await.unwrap();
    for from in (0..jobs).step_by(1_000) {
        adding.provider().add_many((from..jobs.min(from + 1_000)).map(|_| nothing())).await.unwrap().all().unwrap();
    }
    adding
}

async fn drain_on_redis(server: &Server, jobs: usize) -> Cost {
    server.empty().await;
    let adding = backlog(&server.url(), jobs).await;
    let tally = Tally::of(jobs);
    let meter = Meter::on(server).await;
    let dq = factory(&server.url()).listener::<do_nothing>().provide(tally.clone()).start().await.unwrap();
    tally.all().await;
    let cost = meter.end_on(server, jobs).await;
    dq.shutdown(Duration::from_secs(1)).await;
    adding.shutdown(Duration::from_secs(1)).await;
    cost
}

async fn drain_in_memory(jobs: usize, round: usize) -> Cost {
    let url = format!("memory:drain-{round}");
    let adding = backlog(&url, jobs).await;
    let tally = Tally::of(jobs);
    let meter = Meter::start();
    let dq = factory(&url).listener::<do_nothing>().provide(tally.clone()).start().await.unwrap();
    tally.all().await;
    let cost = meter.end(jobs);
    dq.shutdown(Duration::from_secs(1)).await;
    adding.shutdown(Duration::from_secs(1)).await;
    cost
}

/// Records dq beside the bare client in batches of 100, the size that dq's callers use.
async fn beside_hundreds(bench: &mut Bench, side: Side, line: usize, server: &Server, cost: &Cost, jobs: usize) {
    let name = format!("{}, bare in batches of 100", LINES[line]);
    let bare = match (side, line) {
        (Side::Dq, _) => *cost,
        (Side::Bare, 1) => bare::lives(server, jobs, Shape { batch: 100, depth: 16 }).await,
        (Side::Bare, _) => bare_drain(server, jobs, Shape { batch: 100, depth: 1 }).await,
    };
    bench.record_cost(side, &name, &bare);
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(102_400, 512_000);
    let lines: Vec<usize> = (0..LINES.len()).filter(|line| arguments.wants(LINES[*line])).collect();
    let mut bench = Bench::start("lifecycle", arguments, 2 * lines.len());
    let server = bench.server().await;
    let needs_shapes = lines.iter().any(|line| *line < 3);
    let shapes = if needs_shapes { Some(Shapes::find(&server, jobs.min(102_400)).await) } else { None };
    if let Some(Shapes { singles, batches, drains }) = shapes {
        bench.note(format!("bare, at its best: singles {singles:?}, batches {batches:?}, drains {drains:?}"));
    }
    for round in bench.rounds() {
        for &line in &lines {
            for side in [Side::Bare, Side::Dq] {
                bench.step(format!("{} {side:?}", LINES[line]));
                let cost = match shapes {
                    Some(shapes) if line < 3 => on_redis(line, side, &server, jobs, shapes).await,
                    _ => in_memory(line, side, jobs, round).await,
                };
                bench.record_cost(side, LINES[line], &cost);
                if let 1 | 2 = line {
                    beside_hundreds(&mut bench, side, line, &server, &cost, jobs).await;
                }
            }
        }
    }
    bench.finish();
}
