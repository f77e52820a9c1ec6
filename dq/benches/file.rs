//! The `file:` store beside a bare loop that writes the bytes of the same groups and syncs each, into a file that was filled with
//! zeros before: adds, whole lives, the draining of a backlog, lateness while snapshots are taken, and reopening.
//!
//! `cargo bench -p dq --bench file -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;
#[path = "node/recording.rs"]
mod recording;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use dq::environment::WallClock;
use dq::prelude::*;
use dq::store::Store;
use dq::store::file::FileStore;
use dq_bench::{Arguments, Bench, Lateness, Meter, Side};
use job::{Nothing, nothing};
use listener::{Tally, do_nothing};
use recording::{Groups, Recording, bare};
use tokio::task::JoinSet;

/// How the callers of a figure add: its name, callers, jobs a call, and which part of the jobs; `runs`: a node runs them.
struct Line {
    name: &'static str,
    callers: usize,
    batch: usize,
    part: usize,
    runs: bool,
}

const LINES: [Line; 6] = [
    Line { name: "adds, one caller", callers: 1, batch: 1, part: 16, runs: false },
    Line { name: "adds, 64 callers", callers: 64, batch: 1, part: 1, runs: false },
    Line { name: "adds, 1,024 callers", callers: 1_024, batch: 1, part: 1, runs: false },
    Line { name: "adds, 4 callers, 1,000 jobs a call", callers: 4, batch: 1_000, part: 1, runs: false },
    Line { name: "lives, 64 callers, a job each", callers: 64, batch: 1, part: 1, runs: true },
    Line { name: "lives, 16 callers, 100 jobs each", callers: 16, batch: 100, part: 1, runs: true },
];

/// A folder beside the build, so on the disk of the machine and not in memory. Dropping it removes it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("file-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn factory(store: Arc<dyn Store>) -> ContextFactory {
    ContextFactory::new("bench").store(store).without_inventory().variables([("", ""); 0])
}

fn recorded(folder: &Folder) -> (Arc<FileStore>, Arc<Groups>) {
    let (disk, groups) = Recording::open(&folder.0);
    (Arc::new(FileStore::on(disk, Arc::new(WallClock))), groups)
}

async fn call(provider: &Provider, jobs: usize, callers: usize, batch: usize, after: &'static str) {
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let provider = provider.clone();
        tasks.spawn(async move {
            for _ in 0..jobs / callers / batch {
                if batch == 1 {
                    provider.add(nothing()).after(after).await.unwrap();
                } else {
                    let added = provider.add_many((0..batch).map(|_| nothing())).after(after).await.unwrap();
                    assert!(added.iter().all(Result::is_ok));
                }
            }
        });
    }
    tasks.join_all().await;
}

/// Measures dq, and then the bare loop with the groups that dq has written.
async fn line(bench: &mut Bench, line: &Line, jobs: usize) {
    let folder = Folder::new("line");
    let (store, groups) = recorded(&folder);
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
        let (callers, batch) = (line.callers, line.batch);
        tokio::spawn(async move { call(&provider, jobs, callers, batch, "0s").await });
        tally.all().await;
    } else {
        call(dq.provider(), jobs, line.callers, line.batch, "10m").await;
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

/// Adds jobs that wait, closes the store, and opens it again.
async fn reopening(bench: &mut Bench, jobs: usize) {
    let folder = Folder::new("reopening");
    let store = Arc::new(FileStore::new(&folder.0));
    let dq = factory(store.clone()).without_listeners().start().await.unwrap();
    call(dq.provider(), jobs, 4, 1_000, "10h").await;
    dq.shutdown(Duration::from_secs(1)).await;
    drop(store);
    let start = Instant::now();
    let store = FileStore::new(&folder.0);
    store.open().await.unwrap();
    let name = format!("reopening with {jobs} waiting jobs");
    bench.record(Side::Dq, &name, "ms", start.elapsed().as_secs_f64() * 1e3);
    let bytes: u64 = std::fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    bench.record(Side::Dq, &format!("{name}: files"), "bytes/job", bytes as f64 / jobs as f64);
}

#[derive(Debug, Clone)]
struct Late(Lateness);

#[delay_listener(register = false)]
async fn note_lateness(job: Job<Nothing>, late: &Late) -> Result<(), JobError> {
    late.0.start(job.due());
    Ok(())
}

/// A thousand jobs a second, each due a second after its add, while snapshots of 200,000 waiting jobs are taken all the time.
async fn lateness(bench: &mut Bench, seconds: usize) {
    const RATE: usize = 1_000;
    let folder = Folder::new("lateness");
    let store = Arc::new(FileStore::new(&folder.0).with(|options| options.snapshot_bytes = 1));
    let late = Late(Lateness::of(RATE * seconds));
    let dq = factory(store).listener::<note_lateness>().provide(late.clone()).start().await.unwrap();
    call(dq.provider(), 200_000, 4, 1_000, "10h").await;
    let (start, provider) = (Instant::now(), dq.provider().clone());
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
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        let value = histogram.value_at_quantile(quantile) as f64 / 1e3;
        bench.record(Side::Dq, &format!("lateness beside snapshots, 1,000 a second, {name}"), "ms", value);
    }
    dq.shutdown(Duration::from_secs(1)).await;
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let jobs = arguments.scaled(102_400, 512_000);
    let (many, seconds) = (arguments.scaled(250_000, 1_000_000), arguments.scaled(5, 20));
    let wants = |name: &str| arguments.wants(name);
    let (reopens, is_late) = (wants("reopening"), wants("lateness"));
    let lines: Vec<Line> = LINES.into_iter().filter(|line| wants(line.name)).collect();
    let mut bench = Bench::start("file", arguments, lines.len() + usize::from(reopens) + usize::from(is_late));
    for _ in bench.rounds() {
        for it in &lines {
            bench.step(it.name);
            line(&mut bench, it, jobs / it.part).await;
        }
        if is_late {
            bench.step("lateness");
            lateness(&mut bench, seconds).await;
        }
        if reopens {
            bench.step("reopening");
            reopening(&mut bench, many).await;
        }
    }
    bench.finish();
}
