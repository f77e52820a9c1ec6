//! A node in a process of its own, for tests that share work among processes and kill them.
//!
//! It listens to the topic `count` of the app `shop` on the store of `DQ_STORE` and says what happens, a line each:
//! `node NODE` when it is ready, `ran N` when a run of job N begins, `stopped` after a signal. A line that was written
//! before the process was killed can still be read.

#![allow(clippy::print_stdout, reason = "its lines are what it is for")]

use dq::prelude::*;
use dq_tests::Count;

#[delay_listener]
async fn count(job: Job<Count>) -> Result<(), JobError> {
    println!("ran {}", job.n);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), dq::Error> {
    let context = ContextFactory::new("shop").start().await?;
    context.ready().await;
    println!("node {}", context.health().node);
    context.run_until_signal().await?;
    println!("stopped");
    Ok(())
}
