//! The node: it adds the jobs if it is the first one, and prints a line for each run. It ends with its stdin.

use std::io::{self, Read, Write};
use std::time::{Duration, SystemTime};

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::life::Failed;

/// When the first job is due.
const FIRST: Duration = delay!("1s");
/// How long after the one before it each further job is due.
const NEXT: Duration = delay!("10ms");

/// A job of one run of the program. An earlier run may have left others.
#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work", id = "{run}-{number}")]
struct Work {
    run: u64,
    number: u64,
}

/// The run of the program that this node belongs to.
#[derive(Debug, Clone, Copy)]
struct ThisRun(u64);

#[delay_listener(concurrency = 8, timeout = "5s")]
async fn work(job: Job<Work>, this: &ThisRun) -> Result<(), JobError> {
    let is_early = SystemTime::now() < job.due();
    tokio::time::sleep(Duration::from_millis(5)).await;
    if job.run == this.0 {
        say(&format!("ran {} {} {}", job.number, job.fence(), if is_early { "early" } else { "on-time" }))?;
    }
    Ok(())
}

/// Prints a line for the parent. A node whose parent is gone ends soon.
fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Runs the node.
#[tokio::main]
pub(crate) async fn run(store: &str, run: u64, jobs: u64) -> Result<(), Failed> {
    let dq = ContextFactory::new("survives-restart")
        .store(store)
        .lease("5s") // so that the jobs of a killed node run again soon
        .heartbeat_interval("1s")
        .call_timeout("2s")
        .provide(ThisRun(run))
        .start()
        .await?;
    // Each job has its own delay, so these are single adds; started together, they share round trips to the store.
    let mut adds = JoinSet::new();
    for number in 0..jobs {
        let due = FIRST + NEXT * u32::try_from(number)?;
        adds.spawn(dq.provider().add(Work { run, number }).after(due));
    }
    while let Some(added) = adds.join_next().await {
        added??;
    }
    if jobs > 0 {
        say("added")?;
    }
    dq.run_until(end_of_stdin()).await?;
    Ok(())
}

/// Waits until the parent closes the stdin of this process, or is gone.
async fn end_of_stdin() {
    let (sender, ended) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _sender = sender;
        let _ = io::stdin().read(&mut [0]);
    });
    // The thread drops the sender at the end.
    let _ = ended.await;
}
