//! The `file:` store of dq beside SQLite and redb, doing the same durable work in one run: adds, and whole lives as transactions on
//! an index of due times, without a backlog and with one whose due times are random. Callers who come during a commit share the next one, on all sides, and nobody is answered before the sync.
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
#[allow(dead_code, reason = "the handler here also makes room for the next job")]
mod listener;
mod redb;
mod sqlite;

use std::sync::Arc;
use std::time::{Duration, Instant};

use dq::prelude::*;
use dq::store::file::FileStore;
use dq::time::Timestamp;
use dq_bench::{Arguments, Bench, Cost, Folder, Lateness, Meter, Permits, Side, now_ms};
use engine::{Engine, Queue, Work, next_id};
use job::{Nothing, factory, nothing};
use listener::Tally;
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
    /// How many jobs wait all the time. If any do, a job is added for each that ends, and due times are random.
    waiting: usize,
}

const LINES: [Line; 8] = [
    Line { name: "adds, one caller", callers: 1, batch: 1, part: 16, runs: false, waiting: 0 },
    Line { name: "adds, 64 callers", callers: 64, batch: 1, part: 1, runs: false, waiting: 0 },
    Line { name: "adds, 1,024 callers", callers: 1_024, batch: 1, part: 1, runs: false, waiting: 0 },
    Line { name: "lives, 64 callers, a job each", callers: 64, batch: 1, part: 1, runs: true, waiting: 0 },
    Line { name: "lives, 16 callers, 100 jobs each", callers: 16, batch: 100, part: 1, runs: true, waiting: 0 },
    Line { name: "lives, 1,000 wait", callers: 4, batch: 100, part: 1, runs: true, waiting: 1_000 },
    Line { name: "lives, 200,000 wait", callers: 16, batch: 100, part: 1, runs: true, waiting: 200_000 },
    Line { name: "lives, 1,000,000 wait", callers: 16, batch: 100, part: 1, runs: true, waiting: 1_000_000 },
];

impl Line {
    /// A random due time. Its range would let 400,000 jobs a second fall due, which is more than any side does.
    fn due(&self, from: u64) -> u64 {
        if !self.runs {
            return from + 600_000;
        }
        let range = (self.waiting / 200).max(1);
        from + fastrand::u64(..range as u64)
    }

    fn calls(&self, jobs: usize) -> usize {
        jobs / self.batch / self.callers * self.callers
    }

    /// A permit for each job that callers may add now. While jobs wait, only the end of one lets another be added.
    fn room(&self, jobs: usize) -> Permits {
        Permits::of(if self.waiting > 0 { 0 } else { jobs })
    }
}

/// What one side has cost in one round.
struct Spent {
    cost: Cost,
    /// Bytes that the process has given to the system to write, for each job.
    given: f64,
    /// The 99th percentile of a call that adds, ms.
    add: f64,
}

/// Bytes that this process has given to the system to write so far.
fn written() -> f64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("wchar:")?.trim().parse().ok()).unwrap()
}

/// A meter of a side.
struct Measured {
    meter: Meter,
    written: f64,
    adds: Lateness,
}

impl Measured {
    fn start(calls: usize) -> Self {
        Self { written: written(), meter: Meter::start(), adds: Lateness::of(calls) }
    }

    async fn end(self, jobs: usize) -> Spent {
        let cost = self.meter.end(jobs);
        let given = (written() - self.written) / jobs as f64;
        let add = self.adds.all().await.value_at_quantile(0.99) as f64 / 1e3;
        Spent { cost, given, add }
    }
}

/// How many jobs of a backlog are added in one call.
const BATCH: usize = 1_000;

/// Starts the callers of a line, which add by calls of `add` with the due times of their jobs.
async fn call<F: Future<Output = ()> + Send>(
    line: Line,
    jobs: usize,
    room: &Permits,
    adds: &Lateness,
    add: impl Fn(Vec<u64>) -> F + Clone + Send + 'static,
) {
    let mut callers = JoinSet::new();
    for _ in 0..line.callers {
        let (add, room, adds) = (add.clone(), room.clone(), adds.clone());
        callers.spawn(async move {
            for _ in 0..line.calls(jobs) / line.callers {
                room.take(line.batch).await;
                let due = (0..line.batch).map(|_| line.due(now_ms())).collect();
                let start = Instant::now();
                add(due).await;
                adds.note(start.elapsed());
            }
        });
    }
    callers.join_all().await;
}

async fn engine<E: Engine>(line: Line, jobs: usize) -> Spent {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"), "engines");
    std::fs::create_dir_all(&folder.0).unwrap();
    let (tally, room) = (Tally::of(jobs), line.room(jobs));
    let (sender, mut claims) = mpsc::channel(2);
    let (queue, thread) = Queue::start::<E>(&folder.0, line.runs.then_some(sender));
    // Nobody takes the claims yet, so these jobs wait although many are due.
    for _ in 0..line.waiting / BATCH {
        queue.order(Work::Add((0..BATCH).map(|_| (next_id(), line.due(now_ms()))).collect())).await;
    }
    let measured = Measured::start(line.calls(jobs));
    let (acking, acked, ended) = (queue.clone(), tally.clone(), room.clone());
    let worker = tokio::spawn(async move {
        let mut acks = JoinSet::new();
        while let Some(claimed) = claims.recv().await {
            let (queue, tally, room) = (acking.clone(), acked.clone(), ended.clone());
            acks.spawn(async move {
                let ran = claimed.ids.len();
                queue.order(Work::Ack(claimed.ids, claimed.fence)).await;
                room.add(ran);
                (0..ran).for_each(|_| tally.count());
            });
        }
        acks.join_all().await;
    });
    let adding = queue.clone();
    let add = move |due: Vec<u64>| {
        let queue = adding.clone();
        async move { queue.order(Work::Add(due.into_iter().map(|due| (next_id(), due)).collect())).await }
    };
    call(line, jobs, &room, &measured.adds, add).await;
    if line.runs {
        tally.all().await;
    }
    let spent = measured.end(jobs).await;
    worker.abort();
    let _ = worker.await;
    drop(queue);
    thread.join().unwrap();
    spent
}

#[delay_listener(register = false)]
async fn end(job: Job<Nothing>, tally: &Tally, room: &Permits) -> Result<(), JobError> {
    std::hint::black_box(&job);
    room.add(1);
    tally.count();
    Ok(())
}

/// Adds a job for each due time.
async fn add(provider: &Provider, due: Vec<u64>) {
    let at = |due| Timestamp::from_millis(due);
    if let [due] = due[..] {
        provider.add(nothing()).at(at(due)).await.unwrap();
    } else {
        let added = provider.add_many_at(due.into_iter().map(|due| (nothing(), at(due)))).await.unwrap();
        assert!(added.iter().all(Result::is_ok));
    }
}

async fn dq(line: Line, jobs: usize) -> Spent {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"), "engines");
    let factory = factory(Arc::new(FileStore::new(&folder.0)));
    let (tally, room) = (Tally::of(jobs), line.room(jobs));
    let factory = match line.runs {
        true => factory.listener::<end>().provide(tally.clone()).provide(room.clone()),
        false => factory.without_listeners(),
    };
    let dq = factory.start().await.unwrap();
    dq.ready().await;
    let begins = now_ms() + line.waiting as u64 / 50;
    for _ in 0..line.waiting / BATCH {
        add(dq.provider(), (0..BATCH).map(|_| line.due(begins)).collect()).await;
    }
    tokio::time::sleep(Duration::from_millis(begins.saturating_sub(now_ms()))).await;
    let measured = Measured::start(line.calls(jobs));
    let provider = dq.provider().clone();
    let adding = move |due| {
        let provider = provider.clone();
        async move { add(&provider, due).await }
    };
    call(line, jobs, &room, &measured.adds, adding).await;
    if line.runs {
        tally.all().await;
    }
    let spent = measured.end(jobs).await;
    dq.shutdown(Duration::from_secs(1)).await;
    spent
}

fn record(bench: &mut Bench, side: Side, name: &str, spent: &Spent) {
    bench.record_cost(side, name, &spent.cost);
    bench.record(side, &format!("{name}: written"), "bytes/job", spent.given);
    bench.record(side, &format!("{name}: a call that adds, p99"), "ms", spent.add);
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
