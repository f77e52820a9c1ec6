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
    let server = RedisServer::start();
    let topic = Topic::on(&server.url());
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
async fn a_large_batch_costs_as_many_commands_as_a_small_one() {
    let (few, many) = (life(20).await, life(400).await);
    assert_eq!(few, many, "400 jobs fit into one call of each command");
    let [add, transfer, settle] = many.each_ref().map(total);
    // One for the jobs; the topic was empty, so the add enters it into the directory.
    assert_eq!(many[0]["zadd"], 2);
    // One of an add is for the watcher's role, which lapses earlier than before.
    assert!(add <= 11 && transfer <= 17 && settle <= 10, "add {add}, transfer {transfer}, settle {settle}");
    let one = life(1).await;
    assert_eq!((&one[0], &one[2]), (&many[0], &many[2]));
    assert!(total(&one[1]) < transfer && !one[1].contains_key("hdel"), "one row needs no table: {:?}", one[1]);
}

#[tokio::test]
async fn jobs_due_in_the_same_millisecond_need_no_extra_read_of_scores() {
    let server = RedisServer::start();
    let topic = Topic::on(&server.url());
    topic.reconcile().await;
    let transfer = async |count: usize| {
        topic.ready().await;
        let claims = spent(&server, async { assert_eq!(topic.try_transfer(1_000).await.unwrap().claims.len(), count) });
        claims.await["zrange"]
    };
    topic.add((0..100).map(generated).collect()).await;
    let together = transfer(100).await;
    for name in ["a", "b"] {
        topic.add(vec![job(name)]).await;
        topic.ready().await; // the next job is due a millisecond later
    }
    assert_eq!(transfer(2).await, together + 1, "their ids again, with scores");
}

#[tokio::test]
async fn the_common_path_checks_once_for_rare_state() {
    let [add, transfer, settle] = life(100).await;
    // One HSET for the jobs, and one because the head is earlier and with it the end of the watcher's role.
    // One ZADD for the jobs, and one that enters the topic into the directory.
    assert_eq!((add.get("hset"), add.get("zadd"), add.get("hmget")), (Some(&2), Some(&2), Some(&1)), "{add:?}");
    assert_eq!((add.get("type"), transfer.get("type"), settle.get("type")), (None, None, None));
    assert_eq!(transfer.get("exists"), Some(&1), "crashes: {transfer:?}");
    assert_eq!(transfer.get("zremrangebyrank"), Some(&1), "the head is taken by rank: {transfer:?}");
    assert_eq!(settle.get("exists"), Some(&1), "pending commands and crashes: {settle:?}");
    assert_eq!(settle.get("hdel"), Some(&2), "rows and records: {settle:?}");
    assert!(!settle.contains_key("hset") && !settle.contains_key("publish"), "{settle:?}");
}

#[tokio::test]
async fn chosen_ids_cost_one_more_read_for_the_whole_batch() {
    let server = RedisServer::start();
    let topic = Topic::on(&server.url());
    for number in [0, 500] {
        topic.add(vec![generated(number)]).await;
    }
    let chosen = spent(&server, topic.add((0..400).map(|n| job(&format!("j{n}"))).collect())).await;
    let free = spent(&server, topic.add((1..400).map(generated).collect())).await;
    assert_eq!(total(&chosen), total(&free) + 2, "one HMGET, and one check whether any broadcast waits");
}

#[tokio::test]
async fn a_batch_of_a_thousand_goes_in_chunks() {
    let [add, transfer, settle] = life(1_000).await;
    assert!(total(&add) + total(&transfer) + total(&settle) < 80);
}
