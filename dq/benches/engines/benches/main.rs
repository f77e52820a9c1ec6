//! The `file:` store of dq beside SQLite and redb, doing the same durable work in one run: adds, and whole lives as transactions on
//! an index of due times. Callers who come during a commit share the next one, on all sides, and nobody is answered before the sync.
//! The engines do nothing else. dq is measured twice: whole, with encoding, handlers and all, and as its store alone in the place of
//! an engine. The table has two lines for each engine; the column `bare` is the engine.
//!
//! `cargo bench --manifest-path dq/benches/engines/Cargo.toml -- [--quick] [--rounds N] [--only WORDS] [--json FILE]`

#![allow(clippy::unwrap_used, missing_docs)]

mod alone;
mod engine;
#[path = "../../node/job.rs"]
mod job;
#[path = "../../node/listener.rs"]
mod listener;
mod redb;
mod sqlite;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dq::prelude::*;
use dq::store::file::FileStore;
use dq_bench::{Arguments, Bench, Cost, Meter, Side};
use engine::{Engine, Queue, Work, next_id, now};
use job::nothing;
use listener::{Tally, do_nothing};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How the callers add: callers, jobs a call, and which part of the jobs; `runs`: the jobs run, and are acked.
#[derive(Clone, Copy)]
struct Line {
    name: &'static str,
    callers: usize,
    batch: usize,
    part: usize,
    runs: bool,
}

const LINES: [Line; 5] = [
    Line { name: "adds, one caller", callers: 1, batch: 1, part: 16, runs: false },
    Line { name: "adds, 64 callers", callers: 64, batch: 1, part: 1, runs: false },
    Line { name: "adds, 1,024 callers", callers: 1_024, batch: 1, part: 1, runs: false },
    Line { name: "lives, 64 callers, a job each", callers: 64, batch: 1, part: 1, runs: true },
    Line { name: "lives, 16 callers, 100 jobs each", callers: 16, batch: 100, part: 1, runs: true },
];

/// What one side has cost in one round.
struct Spent {
    cost: Cost,
    /// Bytes that the process has given to the system to write, for each job, and what of it goes to the disk, in whole pages.
    given: f64,
    pages: f64,
}

/// Bytes that this process has written so far: as it gave them to the system, and as the pages that go to the disk.
fn written() -> [f64; 2] {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let of = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap();
    [of("wchar:"), of("write_bytes:")]
}

/// A meter of a side.
struct Measured {
    meter: Meter,
    written: [f64; 2],
}

impl Measured {
    fn start() -> Self {
        Self { written: written(), meter: Meter::start() }
    }

    fn end(self, jobs: usize) -> Spent {
        let cost = self.meter.end(jobs);
        let [given, pages] = written();
        let each = |now: f64, before: f64| (now - before) / jobs as f64;
        Spent { cost, given: each(given, self.written[0]), pages: each(pages, self.written[1]) }
    }
}

/// An empty folder on the disk of the build. Dropping it removes it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("engines-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn engine<E: Engine>(line: Line, jobs: usize) -> Spent {
    let folder = Folder::new();
    let tally = Tally::of(jobs);
    let (sender, mut claims) = mpsc::channel(2);
    let (queue, thread) = Queue::start::<E>(&folder.0, line.runs.then_some(sender));
    let measured = Measured::start();
    let (acking, acked) = (queue.clone(), tally.clone());
    let worker = tokio::spawn(async move {
        let mut acks = JoinSet::new();
        while let Some(claimed) = claims.recv().await {
            let (queue, tally) = (acking.clone(), acked.clone());
            acks.spawn(async move {
                let ran = claimed.ids.len();
                queue.order(Work::Ack(claimed.ids, claimed.fence)).await;
                (0..ran).for_each(|_| tally.count());
            });
        }
        acks.join_all().await;
    });
    let mut callers = JoinSet::new();
    for _ in 0..line.callers {
        let queue = queue.clone();
        callers.spawn(async move {
            for _ in 0..jobs / line.callers / line.batch {
                let due = if line.runs { now() } else { now() + 600_000 };
                queue.order(Work::Add((0..line.batch).map(|_| next_id()).collect(), due)).await;
            }
        });
    }
    callers.join_all().await;
    if line.runs {
        tally.all().await;
    }
    let spent = measured.end(jobs);
    worker.abort();
    let _ = worker.await;
    drop(queue);
    thread.join().unwrap();
    spent
}

async fn dq(line: Line, jobs: usize) -> Spent {
    let folder = Folder::new();
    let factory = ContextFactory::new("bench").store(Arc::new(FileStore::new(&folder.0)) as Arc<dyn dq::store::Store>);
    let factory = factory.without_inventory().variables([("", ""); 0]);
    let tally = Tally::of(jobs);
    let factory = match line.runs {
        true => factory.listener::<do_nothing>().provide(tally.clone()),
        false => factory.without_listeners(),
    };
    let dq = factory.start().await.unwrap();
    dq.ready().await;
    let measured = Measured::start();
    let mut callers = JoinSet::new();
    for _ in 0..line.callers {
        let provider = dq.provider().clone();
        callers.spawn(async move {
            let after = if line.runs { "0s" } else { "10m" };
            for _ in 0..jobs / line.callers / line.batch {
                if line.batch == 1 {
                    provider.add(nothing()).after(after).await.unwrap();
                } else {
                    let added = provider.add_many((0..line.batch).map(|_| nothing())).after(after).await.unwrap();
                    assert!(added.iter().all(Result::is_ok));
                }
            }
        });
    }
    callers.join_all().await;
    if line.runs {
        tally.all().await;
    }
    let spent = measured.end(jobs);
    dq.shutdown(Duration::from_secs(1)).await;
    spent
}

fn record(bench: &mut Bench, side: Side, name: &str, spent: &Spent) {
    bench.record_cost(side, name, &spent.cost);
    bench.record(side, &format!("{name}: written"), "bytes/job", spent.given);
    bench.record(side, &format!("{name}: pages"), "bytes/job", spent.pages);
}

/// Measures all sides, which take turns in being the first.
async fn round(bench: &mut Bench, round: usize, line: Line, jobs: usize) {
    let mut spent: [Option<Spent>; 4] = [const { None }; 4];
    for at in 0..4 {
        let side = (at + round) % 4;
        bench.step(line.name);
        spent[side] = Some(match side {
            0 => dq(line, jobs).await,
            1 => engine::<alone::Alone>(line, jobs).await,
            2 => engine::<sqlite::Sqlite>(line, jobs).await,
            _ => engine::<redb::Redb>(line, jobs).await,
        });
    }
    let [dq, alone, sqlite, redb] = spent.map(|spent| spent.expect("each side had its time"));
    for (own, what) in [(&dq, "dq"), (&alone, alone::Alone::NAME)] {
        for (other, engine) in [(&sqlite, sqlite::Sqlite::NAME), (&redb, redb::Redb::NAME)] {
            let name = format!("{}, {what} beside {engine}", line.name);
            record(bench, Side::Dq, &name, own);
            record(bench, Side::Bare, &name, other);
        }
    }
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(51_200, 204_800);
    let lines: Vec<Line> = LINES.into_iter().filter(|line| arguments.wants(line.name)).collect();
    let mut bench = Bench::start("engines", arguments, 4 * lines.len());
    for n in bench.rounds() {
        for line in &lines {
            round(&mut bench, n, *line, jobs / line.part).await;
        }
    }
    bench.finish();
}
