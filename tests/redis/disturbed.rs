//! Nodes on a server that is disturbed while they work: no job is lost, and no acked job runs again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dq::context::Condition;
use dq::prelude::*;
use dq::{Context, ContextFactory};
use dq_tests::Count;
use dq_tests::redis::RedisServer;
use tokio::sync::watch;

use super::topic::until;

/// How often each job ran.
#[derive(Debug, Default)]
struct Ledger {
    runs: Mutex<BTreeMap<u64, usize>>,
    handled: watch::Sender<usize>,
}

#[delay_listener]
async fn count(job: Job<Count>, channel: Channel, ledger: &Arc<Ledger>) -> Result<Decided, JobError> {
    let mut runs = ledger.runs.lock().unwrap();
    *runs.entry(job.n).or_default() += 1;
    ledger.handled.send_replace(runs.len());
    drop(runs);
    Ok(channel.ack())
}

impl Ledger {
    async fn has(&self, count: usize) {
        self.handled.subscribe().wait_for(|handled| *handled >= count).await.unwrap();
    }

    /// Returns the number of jobs that ran more than once.
    fn ran_twice(&self) -> usize {
        self.runs.lock().unwrap().values().filter(|runs| **runs > 1).count()
    }
}

async fn node(server: &RedisServer, ledger: &Arc<Ledger>) -> Context {
    const SHORT: [(&str, &str); 3] =
        [("DQ_LEASE", "3s"), ("DQ_HEARTBEAT_INTERVAL", "1s"), ("DQ_CALL_TIMEOUT", "500ms")];
    ContextFactory::new("shop")
        .store(server.url())
        .variables(SHORT)
        .without_inventory()
        .listener::<count>()
        .provide(Arc::clone(ledger))
        .start()
        .await
        .unwrap()
}

async fn add(context: &Context, from: u64, count: u64) {
    for start in (from..from + count).step_by(1_000) {
        let end = (start + 1_000).min(from + count);
        for added in context.provider().add_many((start..end).map(|n| Count { n })).await.unwrap() {
            added.unwrap();
        }
    }
}

/// Waits until the server has no key of the topic left.
async fn until_empty(server: &RedisServer) {
    let keys = ["dq:{shop:count}:jobs", "dq:{shop:count}:delayed", "dq:{shop:count}:leases"];
    until(|| server.command(&[&["EXISTS"][..], &keys].concat()) == ":0").await;
}

/// Runs jobs on one node and calls `disturb` after each batch of adds.
async fn disturbed(settings: &[&str], mut disturb: impl FnMut(&mut RedisServer)) -> Arc<Ledger> {
    const JOBS: u64 = 20_000;
    const PARTS: u64 = 10;
    let mut server = RedisServer::start_with(settings);
    let ledger = Arc::<Ledger>::default();
    let context = node(&server, &ledger).await;
    for part in 0..PARTS {
        add(&context, part * JOBS / PARTS, JOBS / PARTS).await;
        disturb(&mut server);
    }
    ledger.has(JOBS as usize).await;
    until_empty(&server).await;
    assert_eq!(ledger.runs.lock().unwrap().len() as u64, JOBS);
    ledger
}

const IN_MEMORY: [&str; 4] = ["--save", "", "--appendonly", "no"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_scripts_lose_no_job_and_run_none_twice() {
    let ledger = disturbed(&IN_MEMORY, |server| drop(server.command(&["SCRIPT", "FLUSH"]))).await;
    assert_eq!(ledger.ran_twice(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_connections_lose_no_job_and_run_none_twice() {
    let ledger = disturbed(&IN_MEMORY, |server| {
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    })
    .await;
    assert_eq!(ledger.ran_twice(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_restart_from_its_file_loses_no_job_and_runs_none_twice() {
    let on_disk = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let ledger = disturbed(&on_disk, RedisServer::restart).await;
    assert_eq!(ledger.ran_twice(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_executed_late_after_a_server_pause_leaves_no_job_claimed() {
    let (server, ledger) = (RedisServer::start(), Arc::<Ledger>::default());
    let context = node(&server, &ledger).await;
    add(&context, 0, 1_000).await;
    ledger.has(1_000).await;
    // The server is paused for longer than `call_timeout`; it executes the requests of that time late.
    server.pause();
    let adding = tokio::spawn({
        let provider = context.provider().clone();
        async move { provider.add_many((1_000..2_000).map(|n| Count { n })).await.map(|added| added.len()) }
    });
    let is_recovering =
        || context.health().topics.iter().any(|topic| matches!(topic.condition, Condition::Recovering(_)));
    until(|| is_recovering() || adding.is_finished()).await;
    server.go_on();
    assert_eq!(adding.await.unwrap().unwrap(), 1_000);
    ledger.has(2_000).await;
    until_empty(&server).await;
    assert_eq!(ledger.ran_twice(), 0);
}
