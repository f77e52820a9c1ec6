//! Commands of clients, and calls within scripts, of jobs that run one by one and of a backlog.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dq::prelude::*;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::{ALONE, assert_at_most, bounds};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "orders")]
struct Order(u64);

#[derive(Debug, Clone)]
struct Runs(Arc<Semaphore>);

impl Runs {
    async fn wait_for(&self, count: u32) {
        self.0.acquire_many(count).await.unwrap().forget();
    }
}

#[delay_listener(register = false)]
async fn run(_job: Job<Order>, runs: &Runs) -> Result<(), JobError> {
    runs.0.add_permits(1);
    Ok(())
}

/// Without the fallback, whose transfers depend on how long a test takes.
fn factory(server: &RedisServer) -> ContextFactory {
    let factory = ContextFactory::new("costs").store(server.url()).without_inventory().variables([("", ""); 0]);
    factory.poll_interval("1h")
}

/// Commands that a client sends; the others are called in scripts. `INFO` and `CONFIG` are the count itself.
fn counts(calls: &BTreeMap<String, u64>) -> (f64, f64) {
    let of_clients = ["evalsha", "eval", "fcall", "hello", "ping", "subscribe", "client|setinfo", "client|setname"];
    let of_count = ["info", "config", "config|resetstat"];
    let sum = |wanted: bool| -> f64 {
        let calls = calls.iter().filter(|(name, _)| !of_count.contains(&name.as_str()));
        calls.filter(|(name, _)| of_clients.contains(&name.as_str()) == wanted).map(|(_, count)| *count as f64).sum()
    };
    (sum(true), sum(false))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_runs_alone_costs_few_commands() {
    const JOBS: u32 = 50;
    let (_alone, server) = (ALONE.lock().await, RedisServer::start());
    let runs = Runs(Arc::new(Semaphore::new(0)));
    let dq = factory(&server).listener::<run>().provide(runs.clone()).start().await.unwrap();
    dq.ready().await;
    let life = async |n| {
        dq.provider().add(Order(n)).after("20ms").await.unwrap();
        runs.wait_for(1).await;
    };
    life(0).await;
    server.command(&["CONFIG", "RESETSTAT"]);
    for n in 1..=u64::from(JOBS) {
        life(n).await;
    }
    let (commands, calls) = counts(&server.calls());
    assert_at_most("commands of a job alone", commands / f64::from(JOBS), bounds::COMMANDS_ALONE);
    assert_at_most("calls of a job alone", calls / f64::from(JOBS), bounds::CALLS_ALONE);
    dq.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_backlog_costs_a_fraction_of_a_command() {
    const JOBS: u32 = 10_000;
    let (_alone, server) = (ALONE.lock().await, RedisServer::start());
    let adding = factory(&server).without_listeners().start().await.unwrap();
    for from in (0..u64::from(JOBS)).step_by(1_000) {
        adding.provider().add_many((from..from + 1_000).map(Order)).await.unwrap().all().unwrap();
    }
    server.command(&["CONFIG", "RESETSTAT"]);
    let runs = Runs(Arc::new(Semaphore::new(0)));
    let dq = factory(&server).listener::<run>().provide(runs.clone()).start().await.unwrap();
    runs.wait_for(JOBS).await;
    let (commands, calls) = counts(&server.calls());
    assert_at_most("commands of a job of a backlog", commands / f64::from(JOBS), bounds::COMMANDS_DRAINING);
    assert_at_most("calls of a job of a backlog", calls / f64::from(JOBS), bounds::CALLS_DRAINING);
    dq.shutdown(Duration::from_secs(1)).await;
    adding.shutdown(Duration::from_secs(1)).await;
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "invoices")]
struct Invoice(#[job(id)] u64);

/// The first part leaves while the caller makes the second one, where a thread is free for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_add_many_goes_out_in_at_most_two_commands_and_its_results_are_in_order() {
    let (_alone, server) = (ALONE.lock().await, RedisServer::start());
    let dq = factory(&server).without_listeners().start().await.unwrap();
    dq.provider().add_many((0..1_000).filter(|n| n % 2 == 1).map(Invoice)).after("1h").await.unwrap().all().unwrap();
    server.command(&["CONFIG", "RESETSTAT"]);
    let results = dq.provider().add_many((0..1_000).map(Invoice)).after("1h").await.unwrap();
    for (n, result) in results.iter().enumerate() {
        match result {
            Ok(added) => assert_eq!((n % 2, added.id.as_str()), (0, &*n.to_string())),
            Err(dq::provider::CallError::Refused { target, refusal: dq::provider::Refusal::Exists(_) }) => {
                let id = target.id.as_ref().unwrap();
                assert_eq!((n % 2, id.as_str()), (1, &*n.to_string()))
            }
            Err(other) => panic!("{n}: {other}"),
        }
    }
    let calls = server.calls()["evalsha"];
    assert!(results.len() == 1_000 && (1..=2).contains(&calls), "{} results, {calls} commands", results.len());
    dq.shutdown(Duration::from_secs(1)).await;
}
