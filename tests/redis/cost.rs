//! What the steps cost: a number of commands per batch, and none per job.

use std::collections::BTreeMap;

use dq::store::Store;
use dq::store::step::{Change, Verdict};
use dq_tests::redis::RedisServer;

use super::topic::{Topic, generated, interest, job};

/// How often which commands were executed.
pub type Calls = BTreeMap<String, u64>;

/// Returns what `step` returns, and the commands that it made the server execute, without those of the count itself.
pub async fn counted<T>(server: &RedisServer, step: impl Future<Output = T>) -> (T, Calls) {
    server.command(&["CONFIG", "RESETSTAT"]);
    let done = step.await;
    let mut calls = server.calls();
    for own in ["config|resetstat", "config", "info", "evalsha", "eval"] {
        calls.remove(own);
    }
    (done, calls)
}

/// Returns the commands of a step that returns nothing.
pub async fn spent(server: &RedisServer, step: impl Future<Output = ()>) -> Calls {
    counted(server, step).await.1
}

/// Counts the commands without `TYPE`, which each step calls once per key.
pub fn total(calls: &Calls) -> u64 {
    calls.iter().filter(|(name, _)| *name != "type").map(|(_, count)| count).sum()
}

/// Returns the commands of adding, claiming and settling `count` jobs.
async fn life(count: u16) -> [Calls; 3] {
    let (server, topic) = Topic::served();
    // As every node does: a signal to a node that does not listen goes to all, with a second command.
    let _signals = topic.store.signals(&topic.key, interest()).await.unwrap();
    topic.reconcile().await;
    topic.add(vec![generated(60_000)]).await;
    let claims = topic.claims().await;
    topic.try_settle(&claims, Change::Ack).await.unwrap();
    let add = spent(&server, topic.add((0..count).map(generated).collect())).await;
    topic.ready().await;
    let (transferred, transfer) = counted(&server, topic.try_transfer(1_000)).await;
    let claims = transferred.unwrap().claims;
    assert_eq!(claims.len(), usize::from(count));
    let (settled, settle) = counted(&server, topic.try_settle(&claims, Change::Ack)).await;
    assert_eq!(settled.unwrap().verdicts, vec![Verdict::Done; usize::from(count)]);
    [add, transfer, settle]
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
async fn a_batch_of_a_thousand_goes_in_chunks() {
    let [add, transfer, settle] = life(1_000).await;
    let all = total(&add) + total(&transfer) + total(&settle);
    assert!((20..80).contains(&all), "{all}");
}
