//! Jobs a second on the memory store: concurrent callers add them one by one; a node claims and decodes them, runs a handler
//! that does nothing, and acks them. For comparison, the same jobs through the bare store: three steps a batch.
//!
//! `cargo bench -p dq --bench lifecycle -- [--quick]`

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use dq::environment::TokioClock;
use dq::job::{AppName, Codec, Deliver, JobId, Metadata, NodeId, ProducerId, Record, Sequence, TopicKey, TopicName};
use dq::prelude::*;
use dq::store::memory::MemoryStore;
use dq::store::step::{Change, LeaseStatus, Outcome, Reconcile, Reconciled, Sequenced, Settle, Transfer, USUAL_BYTES};
use dq::store::{Due, NewJob, Numbered, OnDuplicate, Store};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "nothing")]
struct Nothing {
    payload: String,
}

#[derive(Debug, Clone, Default)]
struct Tally(Arc<(AtomicUsize, AtomicUsize, Notify)>);

impl Tally {
    fn expect(&self, jobs: usize) {
        self.0.0.store(0, Relaxed);
        self.0.1.store(jobs, Relaxed);
    }

    fn count(&self) {
        if self.0.0.fetch_add(1, Relaxed) + 1 == self.0.1.load(Relaxed) {
            self.0.2.notify_one();
        }
    }

    async fn all(&self) {
        self.0.2.notified().await;
    }
}

#[delay_listener(register = false)]
async fn do_nothing(job: Job<Nothing>, tally: &Tally) -> Result<(), JobError> {
    std::hint::black_box(&job.payload);
    tally.count();
    Ok(())
}

/// User and system time of this process so far.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|&i| fields.get(i)?.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10) // 100 ticks a second on Linux
}

struct Round {
    per_second: f64,
    cpu_us: f64,
}

fn measured(jobs: usize, start: Instant, cpu_start: Duration) -> Round {
    let cpu_us = (cpu() - cpu_start).as_secs_f64() * 1e6 / jobs as f64;
    Round { per_second: jobs as f64 / start.elapsed().as_secs_f64(), cpu_us }
}

const CALLERS: usize = 64;

async fn whole_lives(jobs: usize) -> Round {
    let tally = Tally::default();
    let dq = ContextFactory::new("bench")
        .without_inventory()
        .listener::<do_nothing>()
        .provide(tally.clone())
        .store("memory:")
        .start()
        .await
        .unwrap();
    tally.expect(jobs);
    let (start, cpu_start) = (Instant::now(), cpu());
    for _ in 0..CALLERS {
        let provider = dq.provider().clone();
        tokio::spawn(async move {
            for _ in 0..jobs / CALLERS {
                provider.add(Nothing { payload: "x".repeat(100) }).await.unwrap();
            }
        });
    }
    tally.all().await;
    let round = measured(jobs, start, cpu_start);
    dq.shutdown(Duration::from_secs(1)).await;
    round
}

async fn drain(jobs: usize) -> Round {
    let name = format!("drain-{jobs}-{}", cpu().as_millis());
    let url = format!("memory:{name}");
    let adding =
        ContextFactory::new("bench").without_inventory().without_listeners().store(&url).start().await.unwrap();
    for _ in 0..jobs / 1_000 {
        let batch = (0..1_000).map(|_| Nothing { payload: "x".repeat(100) });
        adding.provider().add_many(batch).await.unwrap();
    }
    let tally = Tally::default();
    tally.expect(jobs);
    let (start, cpu_start) = (Instant::now(), cpu());
    let factory = ContextFactory::new("bench").without_inventory().listener::<do_nothing>().provide(tally.clone());
    let dq = factory.store(&url).start().await.unwrap();
    tally.all().await;
    let round = measured(jobs, start, cpu_start);
    dq.shutdown(Duration::from_secs(1)).await;
    adding.shutdown(Duration::from_secs(1)).await;
    round
}

async fn bare_store(jobs: usize) -> Round {
    let store = MemoryStore::new(Arc::new(TokioClock::new()));
    let key = TopicKey { app: AppName::new("bench").unwrap(), topic: TopicName::new("bare").unwrap() };
    let (link, producer) = (store.link(&key, &NodeId::new("n")), store.producer(&key, &ProducerId::new("p")));
    let lease = Duration::from_secs(15);
    let first = link.step(Reconcile { last_seen: Sequence::default(), after: None, limit: 1 }).await.unwrap();
    let Sequenced::Done(Reconciled { lease_status: LeaseStatus { sequence: mut last_seen, .. }, .. }) = first else {
        panic!("the first request takes a sequence number")
    };
    let (start, cpu_start) = (Instant::now(), cpu());
    for number in 1..=(jobs as u64 / 100) {
        let job = |i| NewJob {
            id: JobId::generated(number, i, 7),
            generated: true,
            due: Due::After(Duration::ZERO),
            expires_after: None,
            record: Record::new(&Metadata::default(), Codec::Json, &[b'x'; 100]),
            on_duplicate: OnDuplicate::Reject,
            deliver: Deliver::Queue,
        };
        producer.add(Numbered { number, items: (0..100).map(job).collect() }).await.unwrap();
    }
    let mut left = jobs / 100 * 100;
    while left > 0 {
        let request =
            Transfer { last_seen, limit: 100, bytes: USUAL_BYTES, lease, fallback: lease, lookahead: Duration::ZERO };
        let Sequenced::Done(answer) = link.step(request).await.unwrap() else {
            panic!("no other node takes a sequence number")
        };
        last_seen = answer.lease_status.sequence;
        let done = answer.claims.into_iter();
        let outcomes: Vec<_> =
            done.map(|c| Outcome { id: c.id, token: c.token, change: Change::Ack, metadata: None }).collect();
        left -= outcomes.len();
        link.step(Settle { last_seen, lease, bytes: USUAL_BYTES, outcomes }).await.unwrap();
    }
    measured(jobs, start, cpu_start)
}

fn table(name: &str, rounds: &mut [Round]) {
    rounds.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    let (low, high) = (rounds[0].per_second, rounds[rounds.len() - 1].per_second);
    let middle = &rounds[rounds.len() / 2];
    println!(
        "{name:<28} {:>9.0} jobs/s [{low:.0} to {high:.0}]   {:.2} µs CPU a job",
        middle.per_second, middle.cpu_us
    );
}

#[tokio::main]
async fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let (jobs, rounds) = if quick { (64_000, 3) } else { (1_024_000, 5) };
    let (mut lives, mut drained, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        println!("round {round} of {rounds}, {jobs} jobs each");
        bare.push(bare_store(jobs).await);
        lives.push(whole_lives(jobs).await);
        drained.push(drain(jobs).await);
    }
    table("bare memory store", &mut bare);
    table("whole lives, 64 callers", &mut lives);
    table("draining jobs already due", &mut drained);
}
