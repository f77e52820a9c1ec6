//! Nodes on a server that is disturbed while they work: no job is lost, and no acked job runs again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use dq::context::Condition;
use dq::prelude::*;
use dq::{Context, ContextFactory};
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "count")]
struct Count {
    #[job(id)]
    n: u64,
}

/// The nodes that ran each job.
#[derive(Debug)]
struct Ledger {
    runs: Mutex<BTreeMap<u64, Vec<&'static str>>>,
    handled: watch::Sender<usize>,
    /// The nodes that have begun a run. No run ends before there are `together` of them, however slow a node is.
    nodes: watch::Sender<BTreeSet<&'static str>>,
    together: usize,
}

/// The ledger, as one node writes it.
#[derive(Debug)]
struct NodeLedger {
    ledger: Arc<Ledger>,
    node: &'static str,
}

#[delay_listener(topic = "count")]
struct Counter {
    node_ledger: Arc<NodeLedger>,
}

impl DelayListener for Counter {
    type Job = Count;

    async fn on_due(&self, job: Job<Count>, channel: Channel) -> Result<Decided, JobError> {
        let NodeLedger { ledger, node } = &*self.node_ledger;
        ledger.begin(node).await;
        let mut runs = ledger.runs.lock().unwrap();
        runs.entry(job.n).or_default().push(node);
        ledger.handled.send_replace(runs.len());
        drop(runs);
        Ok(channel.ack())
    }
}

impl Ledger {
    /// A ledger for nodes that need not wait for each other.
    fn new() -> Arc<Self> {
        Self::of_nodes_together(1)
    }

    fn of_nodes_together(together: usize) -> Arc<Self> {
        let (handled, nodes) = (watch::Sender::new(0), watch::Sender::default());
        Arc::new(Self { runs: Mutex::default(), handled, nodes, together })
    }

    async fn begin(&self, node: &'static str) {
        self.nodes.send_if_modified(|nodes| nodes.insert(node));
        self.nodes.subscribe().wait_for(|nodes| nodes.len() >= self.together).await.unwrap();
    }

    async fn has(&self, count: usize) {
        self.handled.subscribe().wait_for(|handled| *handled >= count).await.unwrap();
    }

    /// Returns the number of jobs that ran more than once.
    fn ran_twice(&self) -> usize {
        self.runs.lock().unwrap().values().filter(|runs| runs.len() > 1).count()
    }

    fn runs_of(&self, node: &str) -> usize {
        self.runs.lock().unwrap().values().flatten().filter(|by| **by == node).count()
    }
}

async fn node(server: &RedisServer, ledger: &Arc<Ledger>, node: &'static str) -> Context {
    const SHORT: [(&str, &str); 3] = [("DQ_LEASE", "3s"), ("DQ_RENEWAL", "1s"), ("DQ_CALL_TIMEOUT", "500ms")];
    ContextFactory::new("shop")
        .store(server.url())
        .variables(SHORT)
        .without_inventory()
        .listener::<Counter>()
        .provide(Arc::new(NodeLedger { ledger: Arc::clone(ledger), node }))
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
    while server.command(&["EXISTS", "dq:{shop:count}:jobs", "dq:{shop:count}:delayed", "dq:{shop:count}:leases"])
        != ":0"
    {
        tokio::task::yield_now().await;
    }
}

/// Runs jobs on one node and calls `disturb` after each batch of adds.
async fn disturbed(settings: &[&str], mut disturb: impl FnMut(&mut RedisServer)) -> Arc<Ledger> {
    const JOBS: u64 = 20_000;
    const PARTS: u64 = 10;
    let mut server = RedisServer::start_with(settings);
    let ledger = Ledger::new();
    let context = node(&server, &ledger, "one").await;
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
async fn two_nodes_share_the_work_and_each_job_runs_once() {
    let (server, ledger) = (RedisServer::start(), Ledger::of_nodes_together(2));
    let (one, two) = (node(&server, &ledger, "one").await, node(&server, &ledger, "two").await);
    add(&one, 0, 10_000).await;
    ledger.has(10_000).await;
    until_empty(&server).await;
    assert_eq!(ledger.ran_twice(), 0);
    assert!(ledger.runs_of("one") > 0 && ledger.runs_of("two") > 0, "{} by one", ledger.runs_of("one"));
    drop(two);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_killed_node_run_on_the_other_node() {
    let (server, ledger) = (RedisServer::start(), Ledger::new());
    let (one, two) = (node(&server, &ledger, "one").await, node(&server, &ledger, "two").await);
    add(&one, 0, 5_000).await;
    two.kill();
    add(&one, 5_000, 5_000).await;
    ledger.has(10_000).await;
    until_empty(&server).await;
    assert_eq!(ledger.runs.lock().unwrap().len(), 10_000);
    assert!(ledger.ran_twice() <= 1_000, "{} ran twice: more than a node holds", ledger.ran_twice());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_executed_late_after_a_server_pause_leaves_no_job_claimed() {
    let (server, ledger) = (RedisServer::start(), Ledger::new());
    let context = node(&server, &ledger, "one").await;
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
    while !is_recovering() && !adding.is_finished() {
        tokio::task::yield_now().await;
    }
    server.go_on();
    assert_eq!(adding.await.unwrap().unwrap(), 1_000);
    ledger.has(2_000).await;
    until_empty(&server).await;
    assert_eq!(ledger.ran_twice(), 0);
}
