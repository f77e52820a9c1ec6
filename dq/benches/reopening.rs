//! Opening a `file:` directory in which jobs wait: how long it takes, whether lives that ended long ago count, and how much memory and
//! disk a waiting job takes. Each part is a process of its own, because memory once used may stay with a process.
//!
//! `cargo bench -p dq --bench reopening -- [--quick]`, or one part: `-- --role fill|open|compact DIRECTORY [WAITING LIVES]`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;

use std::path::Path;
use std::time::{Duration, Instant};

use dq::store::file::{FileStore, compact};
use dq_bench::meter::resident;
use dq_bench::{Arguments, Bench, Folder, Side, in_process};
use job::{call, factory};
use listener::{Tally, do_nothing};

/// Jobs that are added together; the next are added when these have run.
const SLICE: usize = 100_000;

/// Adds jobs that wait, and beside them lets others live and end. Returns the bytes of memory of a waiting job.
async fn fill(url: &str, waiting: usize, lives: usize) -> f64 {
    let dq = factory(url).without_listeners().start().await.unwrap();
    let before = resident();
    call(dq.provider(), waiting, (1, 1_000), Duration::from_secs(36_000)).await;
    let bytes = (resident() - before) as f64 / waiting as f64;
    for _ in 0..lives / SLICE {
        let tally = Tally::of(SLICE);
        let node = factory(url).listener::<do_nothing>().provide(tally.clone()).start().await.unwrap();
        call(dq.provider(), SLICE, (1, 1_000), Duration::ZERO).await;
        tally.all().await;
        node.shutdown(Duration::from_secs(5)).await;
    }
    dq.shutdown(Duration::from_secs(5)).await;
    bytes
}

/// A part: milliseconds, and bytes of memory that the process has taken.
async fn part(words: &[String]) -> [f64; 2] {
    let (what, directory) = (words[0].as_str(), Path::new(&words[1]));
    let number = |at: usize| words[at].parse().unwrap();
    let (before, start) = (resident(), Instant::now());
    match what {
        "fill" => return [0.0, fill(&format!("file:{}", directory.display()), number(2), number(3)).await],
        "open" => {
            let store = FileStore::new(directory);
            store.open().await.unwrap();
            return [start.elapsed().as_secs_f64() * 1e3, (resident() - before) as f64];
        }
        "compact" => drop(compact(directory).unwrap()),
        _ => panic!("a part is fill, open or compact"),
    }
    [start.elapsed().as_secs_f64() * 1e3, (resident() - before) as f64]
}

fn bytes_of(directory: &Path) -> u64 {
    std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// A directory with this many waiting jobs, beside which others have lived.
fn directory(bench: &mut Bench, waiting: usize, lives: usize) {
    let directory = Folder::new(env!("CARGO_TARGET_TMPDIR"), &format!("reopening-{lives}"));
    let path = directory.0.display();
    let name = format!("{waiting} wait, {lives} have ended");
    bench.step(&name);
    let [_, added] = in_process(&[&"fill", &path, &waiting, &lives]);
    let files = bytes_of(&directory.0);
    let [opening, memory] = in_process(&[&"open", &path]);
    let [compacting, _] = in_process(&[&"compact", &path]);
    bench.record(Side::Dq, &format!("{name}: reopening"), "ms", opening);
    bench.record(Side::Dq, &format!("{name}: reopening and a snapshot"), "ms", compacting);
    bench.record(Side::Dq, &format!("{name}: memory as added"), "bytes/job", added);
    bench.record(Side::Dq, &format!("{name}: memory as reopened"), "bytes/job", memory / waiting as f64);
    bench.record(Side::Dq, &format!("{name}: files"), "bytes/job", files as f64 / waiting as f64);
    bench.record(
        Side::Dq,
        &format!("{name}: files once compact"),
        "bytes/job",
        bytes_of(&directory.0) as f64 / waiting as f64,
    );
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    if !arguments.role.is_empty() {
        let [ms, bytes] = part(&arguments.role).await;
        return println!("{ms} {bytes}");
    }
    let waiting = arguments.scaled(250_000, 1_000_000);
    let lives = [0, arguments.scaled(500_000, 5_000_000)];
    let mut bench = Bench::start("reopening", arguments, lives.len());
    for _ in bench.rounds() {
        for lives in lives {
            directory(&mut bench, waiting, lives);
        }
    }
    bench.finish();
}
