//! Jobs a second from add to ack, with a handler that does nothing, and the draining of a backlog: on Redis beside the bare
//! client, and on the memory store beside a naive heap.
//!
//! `cargo bench -p dq --bench lifecycle -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;
#[path = "node/lives.rs"]
mod lives;
mod naive;

use dq_bench::bare::{self, Shape, best};
use dq_bench::{Arguments, Bench, Cost, Server, Side};
use listener::do_nothing;
use lives::{LINES, Line};

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

/// What dq is compared with.
async fn compared(line: Line, server: &Server, jobs: usize, shapes: Option<Shapes>) -> Cost {
    match (line.callers, shapes.filter(|_| line.on_redis)) {
        (Some((_, 1)), Some(shapes)) => bare::lives(server, jobs, shapes.singles).await,
        (Some(_), Some(shapes)) => bare::lives(server, jobs, shapes.batches).await,
        (None, Some(shapes)) => bare_drain(server, jobs, shapes.drains).await,
        (Some((callers, _)), None) => naive::lives(jobs, callers).await,
        (None, None) => naive::drain(jobs).await,
    }
}

/// The bare client in batches of 100, the size that dq's callers use; none beside callers of single jobs.
async fn in_hundreds(line: Line, server: &Server, jobs: usize) -> Option<Cost> {
    match line.callers {
        Some((_, 100)) => Some(bare::lives(server, jobs, Shape { batch: 100, depth: 16 }).await),
        None if line.on_redis => Some(bare_drain(server, jobs, Shape { batch: 100, depth: 1 }).await),
        _ => None,
    }
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(102_400, 512_000);
    let lines: Vec<Line> = LINES.into_iter().filter(|line| arguments.wants(line.name)).collect();
    let mut bench = Bench::start("lifecycle", arguments, 2 * lines.len());
    let server = bench.server().await;
    let needs_shapes = lines.iter().any(|line| line.on_redis);
    let shapes = if needs_shapes { Some(Shapes::find(&server, jobs.min(102_400)).await) } else { None };
    if let Some(Shapes { singles, batches, drains }) = shapes {
        bench.note(format!("bare, at its best: singles {singles:?}, batches {batches:?}, drains {drains:?}"));
    }
    for _ in bench.rounds() {
        for &line in &lines {
            bench.step(format!("{} {:?}", line.name, Side::Bare));
            bench.record_cost(Side::Bare, line.name, &compared(line, &server, jobs, shapes).await);
            let hundreds = in_hundreds(line, &server, jobs).await;
            bench.step(format!("{} {:?}", line.name, Side::Dq));
            let node = |factory: dq::ContextFactory, tally| factory.listener::<do_nothing>().provide(tally);
            let cost = line.cost(&server, jobs, node).await;
            bench.record_cost(Side::Dq, line.name, &cost);
            if let Some(hundreds) = hundreds {
                let name = format!("{}, bare in batches of 100", line.name);
                bench.record_cost(Side::Bare, &name, &hundreds);
                bench.record_cost(Side::Dq, &name, &cost);
            }
        }
    }
    bench.finish();
}
