//! A node in a process of its own, for tests that share work among processes and kill them.
//!
//! It listens to the topic `count` of the app `shop` on the store of `DQ_STORE` and says what happens, a line each:
//! `node NODE` when it is ready, `ran N` when a run of job N begins, `stopped` after a signal. A line that was written
//! before the process was killed can still be read.
//!
//! Its argument is how many runs end by themselves. The others have begun and go on when it reads a line: so whoever starts
//! several processes knows that each has its share, and that the work is not over, however slow one of them is.

#![allow(clippy::print_stdout, reason = "its lines are what it is for")]

use std::io::BufRead;
use std::sync::Arc;

use dq::prelude::*;
use dq_tests::Count;
use tokio::sync::Semaphore;

/// One for each run that may end.
type Ends = Arc<Semaphore>;

#[delay_listener(timeout = "none")]
async fn count(job: Job<Count>, ends: &Ends) -> Result<(), JobError> {
    println!("ran {}", job.n);
    ends.acquire().await?.forget();
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), dq::Error> {
    let ends = std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("how many runs end by themselves");
    let ends = Ends::new(Semaphore::new(ends));
    let context = ContextFactory::new("shop").provide(ends.clone()).start().await?;
    context.ready().await;
    println!("node {}", context.health().node);
    std::thread::spawn(move || {
        if std::io::stdin().lock().lines().next().is_some() {
            ends.add_permits(Semaphore::MAX_PERMITS / 2);
        }
    });
    context.run_until_signal().await?;
    println!("stopped");
    Ok(())
}
