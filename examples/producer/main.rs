//! A program that only adds: a provider without a node. A worker runs the jobs, here in the same process and started later; it could as
//! well be another program.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

const STORE: &str = "memory:newsletter"; // `DQ_STORE` overrides this
const READERS: u32 = 20;

/// Producer and worker share this, in a library.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "newsletter")]
struct SendIssue {
    #[job(id)]
    reader: u32,
}

#[derive(Debug, Default)]
struct Sent(AtomicU32);

/// Belongs to the worker.
#[delay_listener(timeout = "5s")]
async fn send_issue(_job: Job<SendIssue>, sent: &Arc<Sent>) -> Result<(), JobError> {
    sent.0.fetch_add(1, Relaxed);
    Ok(())
}

/// Adds jobs without a node, and then starts a worker that runs them.
///
/// The variable DQ_STORE names the store. Without it, the store is `memory:newsletter`.
#[derive(Parser)]
struct Arguments;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments = Arguments::parse();
    let jobs = Provider::connect("press", STORE).await?; // no listener, no lease, nothing to shut down
    // Safe to repeat: a producer that crashed here adds the rest when it is started again.
    let added = jobs.add_many((0..READERS).map(|reader| SendIssue { reader })).keep_existing().within("5s").await?;
    added.or_error_if_dead().all()?;
    jobs.delete::<SendIssue>(13).await?; // this one has unsubscribed
    println!("{} job(s) wait, and nobody runs them", jobs.counts::<SendIssue>().await?.delayed);

    let sent = Arc::new(Sent::default());
    let worker = ContextFactory::new("press").store(STORE).provide(sent.clone()).start().await?;
    while sent.0.load(Relaxed) < READERS - 1 {
        sleep(delay!("10ms")).await;
    }
    worker.shutdown(delay!("5s")).await;
    let left = jobs.counts::<SendIssue>().await?;
    println!("the worker has run {}, and {} wait", sent.0.load(Relaxed), left.delayed + left.running);
    jobs.close().await; // waits for what is in flight
    let is_right = sent.0.load(Relaxed) == READERS - 1 && left.delayed + left.running == 0;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
