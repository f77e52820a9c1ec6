//! Allocations of an add and of a run. Under the paused clock everything runs on the thread that is counted.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use allocation_counter::measure;
use dq::job::{AppName, Codec, JobId, Metadata, NodeId, ProducerId, Record, Sequence, TopicKey, TopicName};
use dq::prelude::*;
use dq::store::redis::RedisStore;
use dq::store::step::{Change, Claim, DEFAULT_BYTES, Outcome, Reconcile, Sequenced, Settle, Transfer};
use dq::store::{NewJob, Numbered, Store};
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use crate::{ALONE, assert_at_most, bounds};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "orders")]
struct Order {
    #[job(id)]
    order: u64,
}

#[delay_listener(register = false)]
async fn run(_job: Job<Order>, runs: &Runs) -> Result<(), JobError> {
    runs.0.add_permits(1);
    Ok(())
}

#[derive(Debug, Clone)]
struct Runs(Arc<Semaphore>);

/// How many jobs a count has: fixed costs, such as a larger table, hardly show in the quotient.
const JOBS: u64 = 2_000;

fn paused() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

fn factory(name: &str) -> ContextFactory {
    let store = format!("memory:{name}");
    ContextFactory::new("costs").store(store).without_inventory().variables([("", ""); 0])
}

/// Allocations of the future, for each of `jobs`.
fn allocations(runtime: &Runtime, jobs: u64, work: impl Future<Output = ()>) -> f64 {
    measure(|| runtime.block_on(work)).count_total as f64 / jobs as f64
}

#[test]
fn an_add_allocates_little() {
    let (_alone, runtime) = (ALONE.blocking_lock(), paused());
    let dq = runtime.block_on(factory("adds").without_listeners().start()).unwrap();
    let add = async |from: u64| {
        for order in from..from + JOBS {
            dq.provider().add(Order { order }).after("1h").await.unwrap();
        }
    };
    runtime.block_on(add(0));
    assert_at_most("allocations of an add", allocations(&runtime, JOBS, add(JOBS)), bounds::ALLOCATIONS_ADD);
}

async fn add_many(dq: &Context, from: u64, after: &str) {
    for first in (from..from + JOBS).step_by(100) {
        let jobs = (first..first + 100).map(|order| Order { order });
        dq.provider().add_many(jobs).after(after).await.unwrap().all().unwrap();
    }
}

#[test]
fn a_job_of_a_batch_allocates_little() {
    let (_alone, runtime) = (ALONE.blocking_lock(), paused());
    let dq = runtime.block_on(factory("batches").without_listeners().start()).unwrap();
    runtime.block_on(add_many(&dq, 0, "1h"));
    let found = allocations(&runtime, JOBS, add_many(&dq, JOBS, "1h"));
    assert_at_most("allocations of a job of add_many", found, bounds::ALLOCATIONS_ADD_MANY);
}

#[test]
fn a_run_allocates_little() {
    let (_alone, runtime) = (ALONE.blocking_lock(), paused());
    let runs = Runs(Arc::new(Semaphore::new(0)));
    let node = factory("runs").listener::<run>().provide(runs.clone());
    let dq = runtime.block_on(node.start()).unwrap();
    let all = async || runs.0.acquire_many(u32::try_from(JOBS).unwrap()).await.unwrap().forget();
    runtime.block_on(async { (add_many(&dq, 0, "10s").await, all().await) });
    runtime.block_on(add_many(&dq, JOBS, "10s"));
    assert_at_most("allocations of a run", allocations(&runtime, JOBS, all()), bounds::ALLOCATIONS_RUN);
}

const LEASE: Duration = Duration::from_secs(60);
const BATCH: u64 = 100;

fn new_job(number: u64) -> NewJob {
    let record = Record::new(&Metadata::default(), Codec::Json, &[b'7'; 100]);
    NewJob { generated: true, ..NewJob::new(JobId::generated(number, 7), record) }
}

#[test]
fn adding_to_redis_and_claiming_from_it_allocates_little() {
    let (_alone, server) = (ALONE.blocking_lock(), RedisServer::start());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let key = TopicKey { app: AppName::new("costs").unwrap(), topic: TopicName::new("t").unwrap() };
    let store = RedisStore::new(&server.url()).unwrap();
    let (link, producer) = (store.link(&key, &NodeId::new("n")), store.producer(&key, &ProducerId::new("p")));
    let reconcile = Reconcile { last_seen: Sequence::default(), after: None, limit: 1 };
    let first = runtime.block_on(link.step(reconcile)).unwrap();
    let Sequenced::Done(first) = first else { panic!("a first page needs no number") };
    let mut last_seen = first.lease_status.sequence;
    let (mut number, mut added, mut ran) = (0, f64::MAX, f64::MAX);
    for round in 0..20 {
        number += 1;
        let items = (0..BATCH).map(|n| new_job(number * BATCH + n)).collect();
        let add = allocations(&runtime, BATCH, async { drop(producer.add(Numbered { number, items }).await.unwrap()) });
        let mut left = BATCH;
        let run = allocations(&runtime, BATCH, async {
            while left > 0 {
                let request = Transfer::new(last_seen, 100, LEASE);
                let Sequenced::Done(answer) = link.step(request).await.unwrap() else { panic!("the number is right") };
                last_seen = answer.lease_status.sequence;
                left -= answer.claims.len() as u64;
                // Unlike `Claim::outcome`, this copies no id.
                let ack =
                    |claim: Claim| Outcome { id: claim.id, token: claim.token, change: Change::Ack, metadata: None };
                let outcomes = answer.claims.into_iter().map(ack).collect();
                link.step(Settle { last_seen, lease: LEASE, bytes: DEFAULT_BYTES, outcomes }).await.unwrap();
            }
        });
        // The least of many rounds: an answer that a busy machine reads in parts takes a few allocations more.
        if round >= 10 {
            (added, ran) = (added.min(add), ran.min(run));
        }
    }
    assert_at_most("allocations of an add to Redis", added, bounds::ALLOCATIONS_REDIS_ADD);
    assert_at_most("allocations of a claim and an ack on Redis", ran, bounds::ALLOCATIONS_REDIS_RUN);
}
