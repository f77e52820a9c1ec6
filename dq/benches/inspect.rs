//! How long each read of `dq::inspect` takes where many jobs wait, on Redis and on the memory store: median and worst of the rounds.
//!
//! `cargo bench -p dq --bench inspect -- [--quick] [--rounds N]`; without `--quick` it needs 8 GB. `--only memory` and `--only Redis`
//! measure one of the two.

#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use dq::config::NodeSettings;
use dq::environment::{Environment, WallClock};
use dq::inspect::{BulkAction, Inspector, JobFilter, Scale};
use dq::job::{AppName, Codec, JobId, Metadata, NodeId, ProducerId, Record, State, TopicKey, TopicName};
use dq::provider::Provider;
use dq::store::memory::MemoryStore;
use dq::store::redis::RedisStore;
use dq::store::step::{Reconcile, Sequenced, Transfer};
use dq::store::{BatchAnswer, Due, NewJob, Numbered, Store};
use dq_bench::{Arguments, Bench, PAYLOAD, Side};
use futures_util::StreamExt;

const TOPIC: &str = "orders";
const BATCH: usize = 1_000;
const NODES: usize = 100;
const HELD: usize = 50;
const SPAN: Duration = Duration::from_secs(28 * 24 * 3_600);

fn key() -> TopicKey {
    TopicKey { app: AppName::new("bench").unwrap(), topic: TopicName::new(TOPIC).unwrap() }
}

fn id(n: usize) -> String {
    format!("j{n:08}")
}

/// A third of the jobs is due, the others are due over four weeks. Nodes run some.
async fn fill(store: &dyn Store, jobs: usize) {
    let producer = store.producer(&key(), &ProducerId::new("filler"));
    let record = Record::new(&Metadata::default(), Codec::Json, PAYLOAD.as_bytes());
    let apart = SPAN.as_secs_f64() / jobs as f64;
    let job = |n: usize| NewJob {
        due: Due::After(if n < jobs / 3 { Duration::ZERO } else { Duration::from_secs_f64(apart * n as f64) }),
        ..NewJob::new(JobId::new(id(n)).unwrap(), record.clone())
    };
    let add = |batch: usize| {
        let items = (batch * BATCH..(batch + 1) * BATCH).map(job).collect();
        producer.add(Numbered { number: batch as u64 + 1, items })
    };
    // The server learns the script with the first batch.
    assert!(matches!(add(0).await.unwrap(), BatchAnswer::Done(_)));
    let mut answers = futures_util::stream::iter((1..jobs / BATCH).map(add)).buffered(4);
    while let Some(answer) = answers.next().await {
        assert!(matches!(answer.unwrap(), BatchAnswer::Done(outcomes) if outcomes.len() == BATCH));
    }
    for node in 0..NODES {
        let link = store.link(&key(), &NodeId::new(format!("web-{node:03}")));
        let reconcile = Reconcile { last_seen: Default::default(), after: None, limit: 1 };
        let Sequenced::Done(reconciled) = link.step(reconcile).await.unwrap() else { panic!("a first page") };
        let transfer = Transfer::new(reconciled.lease_status.sequence, HELD, Duration::from_secs(600));
        link.step(transfer).await.unwrap();
    }
}

struct Reads<'a> {
    bench: &'a mut Bench,
    store: &'static str,
}

impl Reads<'_> {
    async fn time<T>(&mut self, name: &str, read: impl Future<Output = T>) -> T {
        let name = format!("{name}, {}", self.store);
        self.bench.step(name.clone());
        let began = Instant::now();
        let found = read.await;
        self.bench.record(Side::Dq, &name, "ms", began.elapsed().as_secs_f64() * 1e3);
        found
    }

    async fn round(&mut self, look: &Inspector, jobs: usize) {
        let (all, none) = (JobFilter::default(), JobFilter { attempts: Some(9), ..JobFilter::default() });
        let now = self.time("topic", look.topic(TOPIC)).await.unwrap().store_time;
        self.time("page of topics", look.topics(None)).await.unwrap();
        self.time("page of nodes", look.nodes(TOPIC, None)).await.unwrap();
        self.time("job", look.job(TOPIC, id(jobs / 2).as_str())).await.unwrap();
        self.time("page of waiting jobs", look.jobs(TOPIC, State::Delayed, &all, None)).await.unwrap();
        let middle = JobFilter { from: Some(now.after(SPAN / 2)), ..JobFilter::default() };
        self.time("the same from the middle on", look.jobs(TOPIC, State::Delayed, &middle, None)).await.unwrap();
        let page = self.time("filter over 10,000 waiting jobs", look.jobs(TOPIC, State::Delayed, &none, None)).await;
        assert_eq!(page.unwrap().looked_at, 10_000);
        self.time("page of running jobs", look.jobs(TOPIC, State::Running, &all, None)).await.unwrap();
        self.time("filter over running jobs", look.jobs(TOPIC, State::Running, &none, None)).await.unwrap();
        self.time("timeline", look.timeline(TOPIC)).await.unwrap();
        self.time("timeline_for of the days", look.timeline_for(TOPIC, Scale::Days, now)).await.unwrap();
        self.time("why, behind others", look.why(TOPIC, id(jobs / 3 - 1).as_str())).await.unwrap();
        self.time("why, running", look.why(TOPIC, id(NODES * HELD - 1).as_str())).await.unwrap();
        let mut bulk = look.bulk(TOPIC, State::Delayed, middle, BulkAction::Delete).unwrap();
        self.time("step that deletes 100 jobs", bulk.step()).await.unwrap();
    }
}

const READS: usize = 14;

async fn on(bench: &mut Bench, name: &'static str, store: Arc<dyn Store>, jobs: usize) {
    let began = Instant::now();
    fill(&*store, jobs).await;
    bench.note(format!("{name}: filled in {:.0} s", began.elapsed().as_secs_f64()));
    let environment = Environment::of_this_runtime().unwrap();
    let look = Provider::root(key().app, store, environment, NodeSettings::default()).inspect();
    // The server learns the scripts.
    look.topics(None).await.unwrap();
    for _ in bench.rounds() {
        Reads { bench: &mut *bench, store: name }.round(&look, jobs).await;
    }
}

#[tokio::main]
async fn main() {
    let asked = Arguments::read();
    let arguments = Arguments { rounds: asked.rounds.or(Some(20)), ..asked };
    let jobs = arguments.scaled(1_000_000, 10_000_000);
    let mut bench = Bench::start("inspect", arguments, 2 * READS);
    if bench.arguments.wants("Redis") {
        let server = bench.server().await;
        let store = Arc::new(RedisStore::new(&server.url()).unwrap());
        on(&mut bench, "Redis", store, jobs).await;
    }
    if bench.arguments.wants("memory") {
        on(&mut bench, "memory", Arc::new(MemoryStore::new(Arc::new(WallClock))), jobs).await;
    }
    bench.note(format!("{jobs} jobs wait"));
    bench.finish();
}
