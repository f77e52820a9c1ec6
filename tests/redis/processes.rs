//! Nodes in processes of their own that share one server. What happens when one is killed, the storms check.

use std::time::{Duration, Instant};

use dq::context::Context;
use dq_tests::redis::RedisServer;
use dq_tests::{Count, NodeProcess, RunLog};

use super::topic::factory;

const JOBS: usize = 10_000;

/// How many runs of a process may end before `go_on`: few enough that the other process gets jobs too.
const SHARE: usize = 500;

async fn start(server: &RedisServer, name: &'static str, log: &RunLog) -> NodeProcess {
    const SHORT: [(&str, &str); 2] = [("DQ_LEASE", "6s"), ("DQ_HEARTBEAT_INTERVAL", "2s")];
    NodeProcess::start(env!("CARGO_BIN_EXE_node"), &server.url(), &SHORT, SHARE, name, log).await
}

/// Adds jobs that all fall due in the same millisecond, soon.
async fn add_all(server: &RedisServer) -> Context {
    let adder = factory(&server.url()).without_listeners().start().await.unwrap();
    let due = adder.provider().counts::<Count>().await.unwrap().clock.after(Duration::from_secs(2));
    for start in (0..JOBS as u64).step_by(1_000) {
        let batch = (start..start + 1_000).map(|n| Count { n });
        let added = adder.provider().add_many(batch).at(due).await.unwrap();
        assert!(added.iter().all(Result::is_ok));
    }
    adder
}

/// Waits until the topic has no job left.
async fn until_empty(adder: &Context) {
    let nothing = |counts: &dq::store::TopicCounts| (counts.delayed, counts.running, counts.dead) == (0, 0, 0);
    while !nothing(&adder.provider().counts::<Count>().await.unwrap()) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn two_processes_share_ten_thousand_jobs_and_each_runs_once() {
    let (server, log) = (RedisServer::start(), RunLog::default());
    let mut nodes = [start(&server, "one", &log).await, start(&server, "two", &log).await];
    let adder = add_all(&server).await;
    log.until(|runs| ["one", "two"].iter().all(|name| runs.by(name).len() > SHARE)).await;
    for node in &mut nodes {
        node.go_on().await;
    }
    log.until(|runs| runs.of_job.len() == JOBS).await;
    until_empty(&adder).await;
    for node in nodes {
        let (status, said) = node.stop().await;
        assert!(status.success() && said == ["stopped"], "{status} {said:?}");
    }
    let runs = log.runs();
    assert_eq!(runs.of_job.values().sum::<usize>(), JOBS, "each once");
}

/// Idle nodes look for jobs of their own accord once an hour here, so only a signal wakes them. Prints how long each job
/// took to start.
#[tokio::test]
async fn the_next_job_wakes_an_idle_node_after_the_watcher_was_killed() {
    const HOURLY: [(&str, &str); 1] = [("DQ_POLL_INTERVAL", "1h")];
    for _ in 0..10 {
        let (server, log) = (RedisServer::start(), RunLog::default());
        let mut nodes = Vec::new();
        for name in ["one", "two", "three"] {
            let program = env!("CARGO_BIN_EXE_node");
            nodes.push(NodeProcess::start(program, &server.url(), &HOURLY, 1, name, &log).await);
        }
        let adder = factory(&server.url()).without_listeners().start().await.unwrap();
        let watcher = loop {
            let watcher = server.command(&["HGET", "dq:{shop:count}:meta", "watcher"]);
            if let Some(place) = nodes.iter().position(|node| node.node() == watcher) {
                break nodes.remove(place);
            }
        };
        watcher.kill().await;
        let began = Instant::now();
        adder.provider().add(Count { n: 1 }).await.unwrap();
        let ran = tokio::time::timeout(Duration::from_secs(20), log.until(|runs| runs.of_job.len() == 1)).await;
        assert!(ran.is_ok(), "no node was woken");
        println!("started after {} ms", began.elapsed().as_millis());
        assert_eq!(log.runs().of_job[&1], 1);
    }
}
