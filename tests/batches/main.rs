//! Many jobs in batches on real stores, and a process that is killed in the middle of two batches.
//!
//! `BATCH_JOBS=100000` takes so many jobs instead of 20,000.

mod job;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use dq::context::ContextFactory;
use dq::job::Cause;
use dq::prelude::*;
use dq::store::TopicCounts;
use dq_tests::file::Folder;
use dq_tests::redis::RedisServer;
use job::{Numbered, fails};
use rustix::fs::{FlockOperation, flock};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// How many jobs a test has.
fn jobs() -> u64 {
    std::env::var("BATCH_JOBS").map_or(20_000, |jobs| jobs.parse().unwrap())
}

/// A program that adds and asks, and has no listener.
async fn observer(store: &str) -> Context {
    let factory = ContextFactory::new("shop").without_inventory().without_listeners().variables([("", ""); 0]);
    factory.store(store.to_owned()).start().await.unwrap()
}

/// Stops a program. A store in files has one process, which is free to be another once the last task of this one is gone.
async fn stop(dq: Context, store: &str) {
    dq.shutdown(std::time::Duration::ZERO).await;
    if let Some(path) = store.strip_prefix("file:") {
        let lock = File::open(Path::new(path).join("LOCK")).unwrap();
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            tokio::task::yield_now().await;
        }
    }
}

fn start(store: &str, ledger: &Path, calls: Option<u64>) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_batch-node"))
        .arg(ledger)
        .args(calls.map(|calls| calls.to_string()))
        .env_remove("DQ_REDIS_SERVER") // the tests read this variable
        .envs([("DQ_STORE", store), ("DQ_LEASE", "6s"), ("DQ_HEARTBEAT_INTERVAL", "2s")])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

/// A line of a ledger.
#[derive(Debug, Clone, Copy)]
struct Line {
    n: u64,
    fence: u64,
    batch: usize,
    is_final: bool,
}

fn read(ledger: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(ledger).unwrap();
    let line = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        Line { n: number(1), fence: number(2), batch: number(3) as usize, is_final: words[0] == "final" }
    };
    text.lines().map(line).collect()
}

fn distinct(lines: &[Line]) -> BTreeSet<u64> {
    lines.iter().map(|line| line.n).collect()
}

async fn counts(dq: &Context) -> TopicCounts {
    dq.provider().counts::<Numbered>().await.unwrap()
}

/// Kills a process in the middle of two batches, and lets another one finish. Checks that nothing is lost, that no outcome
/// counted twice, and that the batches are split.
async fn is_killed_in_the_middle(store: &str, folder: &Path) {
    let (dq, jobs) = (observer(store).await, jobs());
    for first in (0..jobs).step_by(1_000) {
        let added = dq.provider().add_many((first..first + 1_000).map(|n| Numbered { n })).await.unwrap();
        assert!(added.iter().all(Result::is_ok));
    }
    stop(dq, store).await;

    let (before, after) = (folder.join("before"), folder.join("after"));
    let (mut victim, mut lines) = start(store, &before, Some(jobs / 500 / 3)); // a third returns
    for _ in 0..2 {
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("hangs"));
    }
    victim.kill().await.unwrap();
    let before = read(&before);

    let dq = observer(store).await;
    let left = counts(&dq).await;
    stop(dq, store).await;
    assert!(left.running > 0, "it was killed in the middle");

    let (mut survivor, mut lines) = start(store, &after, None);
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("stale 0"));
    assert!(survivor.wait().await.unwrap().success());
    let after = read(&after);
    let dq = observer(store).await;
    let end = counts(&dq).await;
    assert_eq!((end.delayed, end.running, end.dead), (0, 0, jobs as usize / 10));
    check_dead(&dq, jobs).await;

    let (ran_before, ran_after) = (distinct(&before), distinct(&after));
    assert_eq!(ran_before.union(&ran_after).count(), jobs as usize, "none is lost");
    assert_eq!(ran_after.len(), left.delayed + left.running, "an outcome that counted is final");
    check_fences(&before, &after);
    check_split(&before, &after);
}

/// Each tenth job is DEAD after two failed runs: no failure counted twice, and no crash.
async fn check_dead(dq: &Context, jobs: u64) {
    let mut pages = dq.provider().dead::<Numbered>();
    let mut dead = BTreeSet::new();
    while let Some(page) = pages.next_page().await.unwrap() {
        for seen in page {
            let details = seen.details.unwrap();
            assert_eq!((details.attempts, details.cause), (2, Some(Cause::Error)), "{}", seen.id);
            dead.insert(seen.id.as_str().parse::<u64>().unwrap());
        }
    }
    assert_eq!(dead, (0..jobs).filter(|n| fails(*n)).collect());
}

/// The runs of a job, but for its `on_exhausted`, have fences that grow.
fn check_fences(before: &[Line], after: &[Line]) {
    let mut last = BTreeMap::new();
    for line in before.iter().chain(after).filter(|line| !line.is_final) {
        let earlier = last.insert(line.n, line.fence);
        assert!(earlier.is_none_or(|earlier| earlier < line.fence), "{line:?} after {earlier:?}");
    }
}

/// Batches were full before the kill. What was in the two that hung runs alone afterwards, and the rest in full batches.
fn check_split(before: &[Line], after: &[Line]) {
    let (full, runs) = (before.iter().filter(|line| line.batch == 500).count(), before.len());
    assert!(full * 10 > runs * 7, "{full} of {runs} runs were in full batches");
    let hung: BTreeSet<u64> = before.iter().rev().filter(|line| !line.is_final).take(500).map(|line| line.n).collect();
    let first_runs = |n: &u64| after.iter().find(|line| line.n == *n);
    let again: Vec<_> = hung.iter().filter_map(first_runs).collect();
    assert!(again.len() >= 360 && again.iter().all(|line| line.batch == 1), "{} ran again", again.len());
    assert!(after.iter().any(|line| line.batch == 500), "others run in full batches");
}

#[tokio::test]
async fn batches_of_a_killed_process_lose_nothing_and_are_split_on_redis() {
    let (server, folder) = (RedisServer::start(), Folder::unmade());
    std::fs::create_dir_all(folder.path()).unwrap();
    is_killed_in_the_middle(&server.url(), folder.path()).await;
}

#[tokio::test]
async fn batches_of_a_killed_process_lose_nothing_and_are_split_in_files() {
    let (store, folder) = (Folder::unmade(), Folder::unmade());
    std::fs::create_dir_all(folder.path()).unwrap();
    is_killed_in_the_middle(&store.url(), folder.path()).await;
}
