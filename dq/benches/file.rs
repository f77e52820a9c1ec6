//! The `file:` store beside a bare loop that writes the bytes of the same groups and syncs each, into a file that was filled with
//! zeros before: adds, whole lives, and lateness while snapshots are taken.
//!
//! `cargo bench -p dq --bench file -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;
#[path = "node/recording.rs"]
mod recording;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use dq::environment::WallClock;
use dq::prelude::*;
use dq::store::Durability;
use dq::store::file::{FileOptions, FileStore};
use dq_bench::{Arguments, Bench, Folder, Lateness, Meter, Side};
use job::{Nothing, call, factory, nothing};
use listener::{Tally, do_nothing};
use recording::{Groups, Recording, bare};

/// How the callers of a figure add: its name, callers, jobs a call, and which part of the jobs; `runs`: a node runs them.
struct Line {
    name: &'static str,
    callers: usize,
    batch: usize,
    part: usize,
    runs: bool,
    durability: Durability,
}

const SYNC: Durability = Durability::Local;
/// Answers come before the sync.
const INTERVAL: Durability = Durability::Interval(Duration::from_millis(50));

const LINES: [Line; 8] = [
    Line { name: "adds, one caller", callers: 1, batch: 1, part: 16, runs: false, durability: SYNC },
    Line { name: "adds, 64 callers", callers: 64, batch: 1, part: 1, runs: false, durability: SYNC },
    Line { name: "adds, 1,024 callers", callers: 1_024, batch: 1, part: 1, runs: false, durability: SYNC },
    Line {
        name: "adds, 4 callers, 1,000 jobs a call",
        callers: 4,
        batch: 1_000,
        part: 1,
        runs: false,
        durability: SYNC,
    },
    Line { name: "lives, 64 callers, a job each", callers: 64, batch: 1, part: 1, runs: true, durability: SYNC },
    Line { name: "lives, 16 callers, 100 jobs each", callers: 16, batch: 100, part: 1, runs: true, durability: SYNC },
    Line { name: "interval:50ms, adds, 64 callers", callers: 64, batch: 1, part: 1, runs: false, durability: INTERVAL },
    Line {
        name: "interval:50ms, lives, 16 callers, 100 jobs each",
        callers: 16,
        batch: 100,
        part: 1,
        runs: true,
        durability: INTERVAL,
    },
];

fn recorded(folder: &Folder, change: impl FnOnce(&mut FileOptions)) -> (Arc<FileStore>, Arc<Groups>) {
    let (disk, groups) = Recording::open(&folder.0);
    (Arc::new(FileStore::on(disk, Arc::new(WallClock)).with(change)), groups)
}

/// Measures dq, and then the bare loop with the groups that dq has written.
async fn line(bench: &mut Bench, line: &Line, jobs: usize) {
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"), "file-line");
    let (store, groups) = recorded(&folder, |options| options.durability = line.durability);
    let tally = Tally::of(jobs);
    let dq = match line.runs {
        true => factory(store).listener::<do_nothing>().provide(tally.clone()),
        false => factory(store).without_listeners(),
    };
    let dq = dq.start().await.unwrap();
    dq.ready().await;
    groups.clear();
    let meter = Meter::start();
    if line.runs {
        let provider = dq.provider().clone();
        let callers = (line.callers, line.batch);
        tokio::spawn(async move { call(&provider, jobs, callers, Duration::ZERO).await });
        tally.all().await;
    } else {
        call(dq.provider(), jobs, (line.callers, line.batch), Duration::from_secs(600)).await;
    }
    bench.record_cost(Side::Dq, line.name, &meter.end(jobs));
    let written = groups.taken();
    let bytes: u64 = written.iter().sum();
    bench.record(Side::Dq, &format!("{}: written", line.name), "bytes/job", bytes as f64 / jobs as f64);
    bench.record(
        Side::Dq,
        &format!("{}: syncs", line.name),
        "per 1,000 jobs",
        written.len() as f64 * 1e3 / jobs as f64,
    );
    dq.shutdown(Duration::from_secs(1)).await;
    bare(&folder.0.join("bare"), &written, jobs, |cost| bench.record_cost(Side::Bare, line.name, &cost));
}

#[derive(Debug, Clone)]
struct Late(Lateness);

#[delay_listener(register = false)]
async fn note_lateness(job: Job<Nothing>, late: &Late) -> Result<(), JobError> {
    late.0.start(job.due());
    Ok(())
}

/// A thousand jobs a second, each due a second after its add, beside 200,000 jobs that wait.
struct Punctual {
    name: &'static str,
    /// One snapshot of all jobs follows the other.
    snapshots: bool,
    durability: Durability,
}

const PUNCTUAL: [Punctual; 3] = [
    Punctual { name: "lateness", snapshots: false, durability: SYNC },
    Punctual { name: "lateness beside snapshots", snapshots: true, durability: SYNC },
    Punctual { name: "interval:50ms, lateness beside snapshots", snapshots: true, durability: INTERVAL },
];

async fn lateness(bench: &mut Bench, it: &Punctual, seconds: usize) {
    const RATE: usize = 1_000;
    let folder = Folder::new(env!("CARGO_TARGET_TMPDIR"), "file-lateness");
    let (store, groups) = recorded(&folder, |options| {
        options.snapshot_bytes = if it.snapshots { 0 } else { u64::MAX };
        options.durability = it.durability;
    });
    let late = Late(Lateness::of(RATE * seconds));
    let dq = factory(store).listener::<note_lateness>().provide(late.clone()).start().await.unwrap();
    call(dq.provider(), 200_000, (4, 1_000), Duration::from_secs(36_000)).await;
    let (start, provider, before) = (Instant::now(), dq.provider().clone(), groups.snapshots());
    tokio::spawn(async move {
        for n in 0..(RATE * seconds) {
            let at = start + Duration::from_secs(1) * n as u32 / RATE as u32;
            tokio::time::sleep_until(at.into()).await;
            let provider = provider.clone();
            tokio::spawn(async move {
                provider.add(nothing()).at(SystemTime::now() + Duration::from_secs(1)).await.unwrap()
            });
        }
    });
    let histogram = late.0.all().await;
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1.0)] {
        let value = histogram.value_at_quantile(quantile) as f64 / 1e3;
        bench.record(Side::Dq, &format!("{}, 1,000 a second, {name}", it.name), "ms", value);
    }
    let taken = (groups.snapshots() - before) as f64 / start.elapsed().as_secs_f64();
    bench.record(Side::Dq, &format!("{}: snapshots", it.name), "per second", taken);
    dq.shutdown(Duration::from_secs(1)).await;
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(102_400, 512_000);
    let seconds = arguments.scaled(5, 20);
    let wants = |name: &str| arguments.wants(name);
    let late: Vec<&Punctual> = PUNCTUAL.iter().filter(|it| wants(it.name)).collect();
    let lines: Vec<Line> = LINES.into_iter().filter(|line| wants(line.name)).collect();
    let mut bench = Bench::start("file", arguments, lines.len() + late.len());
    for _ in bench.rounds() {
        for it in &lines {
            bench.step(it.name);
            line(&mut bench, it, jobs / it.part).await;
        }
        for it in &late {
            bench.step(it.name);
            lateness(&mut bench, it, seconds).await;
        }
    }
    bench.finish();
}
