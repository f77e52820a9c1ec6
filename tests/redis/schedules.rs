//! A schedule on a real server and its clock, while its nodes are killed.

use std::collections::VecDeque;

use dq::context::ContextFactory;
use dq::schedule::OnMissed;
use dq_tests::redis::RedisServer;
use dq_tests::{Count, NodeProcess, RunLog};

/// How many ticks the test waits for. `SCHEDULE_TICKS=60` takes a minute.
fn ticks() -> u64 {
    std::env::var("SCHEDULE_TICKS").map_or(8, |ticks| ticks.parse().unwrap())
}

async fn start(server: &RedisServer, number: u64, log: &RunLog) -> NodeProcess {
    const SHORT: [(&str, &str); 2] = [("DQ_LEASE", "2s"), ("DQ_HEARTBEAT_INTERVAL", "500ms")];
    let name = Box::leak(format!("node {number}").into_boxed_str());
    NodeProcess::start(env!("CARGO_BIN_EXE_node"), &server.url(), &SHORT, usize::MAX >> 4, name, log).await
}

#[tokio::test]
async fn of_five_processes_one_is_killed_at_each_tick_and_each_tick_adds_its_job() {
    let (server, log) = (RedisServer::start(), RunLog::default());
    let factory = ContextFactory::new("shop").without_inventory().without_listeners().variables([("", ""); 0]);
    let adder = factory.store(server.url()).start().await.unwrap();
    let mut nodes = VecDeque::new();
    for number in 0..5 {
        nodes.push_back(start(&server, number, &log).await);
    }
    let each = adder.provider().add_schedule("each", Count { n: 0 }).every("1s").on_missed(OnMissed::All);
    let first = each.await.unwrap().first.as_millis() / 1000;
    for tick in 0..ticks() {
        log.until(|runs| runs.of_job.len() as u64 > tick).await;
        nodes.pop_front().unwrap().kill().await;
        nodes.push_back(start(&server, 5 + tick, &log).await);
    }
    let last = first + ticks() - 1;
    log.until(|runs| (first..=last).all(|tick| runs.of_job.contains_key(&tick))).await;
    let runs = log.runs().of_job;
    assert_eq!(*runs.keys().next().unwrap(), first, "no other tick is before the first");
    // A killed node may have held several jobs, if the machine was slow; each kill repeats a job once at most.
    let most = *runs.values().max().unwrap() as u64;
    assert!(most <= 1 + ticks(), "only a kill makes a job run again: {runs:?}");
}
