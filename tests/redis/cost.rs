//! What the steps cost: a number of commands per batch, and none per job.

use std::collections::BTreeMap;

use dq::job::NodeId;
use dq::store::step::{Change, Verdict};
use dq::store::{Interest, Store};
use dq_tests::redis::RedisServer;

use super::topic::{Topic, generated, job};

/// Returns the commands that `step` made the server execute, without those of the count itself.
pub async fn spent(server: &RedisServer, step: impl Future<Output = ()>) -> BTreeMap<String, u64> {
    server.command(&["CONFIG", "RESETSTAT"]);
    step.await;
    let mut calls = server.calls();
    for own in ["config|resetstat", "config", "info", "evalsha", "eval"] {
        calls.remove(own);
    }
    calls
}

/// Counts the commands without `TYPE`, which each step calls once per key.
pub fn total(calls: &BTreeMap<String, u64>) -> u64 {
    calls.iter().filter(|(name, _)| *name != "type").map(|(_, count)| count).sum()
}

/// Returns the commands of adding, claiming and settling `count` jobs.
async fn life(count: u16) -> [BTreeMap<String, u64>; 3] {
    let (server, topic) = Topic::served();
    // As every node does: a signal to a node that does not listen goes to all, with a second command.
    let interest = Interest { node: Some(NodeId::new("n")), broadcasts: false, moves: false };
    let _signals = topic.store.signals(&topic.key, interest).await.unwrap();
    topic.reconcile().await;
    topic.add(vec![generated(60_000)]).await;
    let claims = topic.claims().await;
    topic.try_settle(&claims, Change::Ack).await.unwrap();
    let add = spent(&server, topic.add((0..count).map(generated).collect())).await;
    let mut claims = Vec::new();
    topic.ready().await;
    let transfer = spent(&server, async { claims = topic.try_transfer(1_000).await.unwrap().claims }).await;
    assert_eq!(claims.len(), usize::from(count));
    let settle = spent(&server, async {
        let settled = topic.try_settle(&claims, Change::Ack).await.unwrap();
        assert!(settled.verdicts.iter().all(|verdict| *verdict == Verdict::Done));
    });
    [add, transfer, settle.await]
}

#[tokio::test]
async fn chosen_ids_cost_one_more_read_for_the_whole_batch() {
    let (server, topic) = Topic::served();
    for number in [0, 500] {
        topic.add(vec![generated(number)]).await;
    }
    let chosen = spent(&server, topic.add((0..400).map(|n| job(&format!("j{n}"))).collect())).await;
    let free = spent(&server, topic.add((1..400).map(generated).collect())).await;
    assert_eq!(total(&chosen), total(&free) + 2, "one HMGET, and one check whether any broadcast waits");
}

#[tokio::test]
async fn no_batch_of_a_hot_step_checks_the_types_of_keys() {
    for commands in life(100).await {
        assert_eq!(commands.get("type"), None, "{commands:?}");
    }
}

#[tokio::test]
async fn a_batch_of_a_thousand_goes_in_chunks() {
    let [add, transfer, settle] = life(1_000).await;
    assert!(total(&add) + total(&transfer) + total(&settle) < 80);
}
