//! A node in a process of its own, for tests that share jobs among processes and kill them.
//!
//! The node listens to the topic `count` of the app `shop` on the store in `DQ_STORE` and prints one line per event:
//! `node NODE` when it is ready, `ran N` when a run of job N begins (of a job of a schedule: the second of its tick), `stopped` after a signal. A line that was written
//! before the process was killed can still be read.
//!
//! Its argument is the number of runs that may end at once. Later runs begin and then wait until the program reads a line from
//! stdin. A test that starts several processes can therefore be sure that each has run some jobs while others are still
//! unfinished, however slow a process is.
//!
//! With the arguments `add DIRECTORY N` it is a provider with a buffer instead. It adds the jobs from N on, and prints `added N` for each and
//! `away` once the store is away. After a line from stdin it prints `sent` when nothing waits in the buffer.

#![allow(clippy::print_stdout, reason = "the tests read its output")]

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::UNIX_EPOCH;

use dq::prelude::*;
use dq_tests::Count;
use tokio::sync::Semaphore;

/// One permit for each run that may end.
type Ends = Arc<Semaphore>;

#[delay_listener(timeout = "none")]
async fn count(job: Job<Count>, ends: &Ends) -> Result<(), JobError> {
    let of_schedule = job.id().as_str().starts_with("dq:tick:");
    let due = job.due().duration_since(UNIX_EPOCH)?.as_secs();
    println!("ran {}", if of_schedule { due } else { job.n });
    ends.acquire().await?.forget();
    Ok(())
}

async fn add(directory: &str, from: u64) -> Result<(), dq::Error> {
    let jobs = ContextFactory::new("shop").buffer(directory).call_deadline("5s").connect().await?;
    let ends = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ends);
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().next();
        told.store(true, SeqCst);
    });
    let mut is_away = false;
    for n in from.. {
        match jobs.add(Count { n }).await {
            Ok(_) => println!("added {n}"),
            Err(error) => println!("lost {n}: {error}"),
        }
        let buffer = jobs.buffer().expect("it has one");
        if buffer.is_away && !std::mem::replace(&mut is_away, true) {
            println!("away");
        }
        if ends.load(SeqCst) && buffer.jobs == 0 {
            println!("sent");
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), dq::Error> {
    let words: Vec<_> = std::env::args().collect();
    if let [_, role, directory, from] = &words[..] {
        assert_eq!(role, "add");
        return add(directory, from.parse().expect("a number")).await;
    }
    let ends = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .expect("the argument is the number of runs that may end at once");
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
