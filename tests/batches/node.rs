//! A node that takes jobs in batches, in a process of its own. It writes each job of a batch to a file before it decides any.
//!
//! Arguments: the file, and how many calls may return; later ones ack a fifth of their jobs, print `hangs` and never return.
//! Without that number the process ends when the topic is empty.

#![allow(clippy::print_stdout, reason = "the tests read its output")]

mod job;

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dq::prelude::*;
use job::{Numbered, fails};

/// Whether the first run of this job panics, in the middle of its batch.
const fn panics(n: u64) -> bool {
    n % 4_000 == 1_111
}

#[derive(Debug)]
struct Ledger {
    file: File,
    /// How many calls may return.
    calls: AtomicUsize,
}

impl Ledger {
    /// Writes lines in one piece. What was written before the process is killed can be read.
    fn write(&self, lines: &str) {
        (&self.file).write_all(lines.as_bytes()).expect("the folder is there");
    }

    fn may_return(&self) -> bool {
        self.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |calls| calls.checked_sub(1)).is_ok()
    }
}

#[delay_listener(batch_size = 500, timeout = "none")]
struct Numbers {
    ledger: Arc<Ledger>,
}

impl BatchListener for Numbers {
    type Job = Numbered;

    async fn on_batch(&self, batch: Batch<Numbered>) -> Result<Decided, JobError> {
        let line = |job: &Job<Numbered>| format!("ran {} {} {}\n", job.n, job.fence(), batch.len());
        self.ledger.write(&batch.iter().map(line).collect::<String>());
        if !self.ledger.may_return() {
            batch.iter().take(batch.len() / 5).filter(|job| !fails(job.n)).for_each(|job| batch.ack(job));
            println!("hangs");
            std::future::pending::<()>().await;
        }
        for job in &batch {
            if fails(job.n) {
                batch.fail(job, "each tenth");
            }
            assert!(!panics(job.n) || job.attempt() > 0, "in the middle of a batch");
        }
        Ok(batch.rest().ack())
    }

    async fn on_exhausted(&self, job: Job<Numbered>, _: &Failure) {
        self.ledger.write(&format!("final {} {} 1\n", job.n, job.fence()));
    }
}

#[tokio::main]
async fn main() -> Result<(), dq::Error> {
    let mut arguments = std::env::args().skip(1);
    let file = File::create(arguments.next().expect("the first argument is a file")).expect("the folder is there");
    let calls = arguments.next().map(|calls| calls.parse().expect("the second argument is a number"));
    let ledger = Arc::new(Ledger { file, calls: AtomicUsize::new(calls.unwrap_or(usize::MAX)) });
    let factory = ContextFactory::new("shop").provide(ledger);
    let dq = factory.topic("batched", |topic| topic.concurrency(2).retry("immediate x 1")).start().await?;
    if calls.is_some() {
        return dq.run_until_signal().await.map(drop);
    }
    loop {
        let counts = dq.provider().counts::<Numbered>().await?;
        if counts.delayed + counts.running == 0 {
            let counters = dq.health().topics[0].counters;
            println!("stale {}", counters.stale_outcomes);
            return dq.run_until(async {}).await.map(drop);
        }
    }
}
