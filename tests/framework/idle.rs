//! Smart sleep: an idle node asks the store for next to nothing, and still nothing is late.

use std::sync::Arc;

use dq::environment::TokioClock;
use dq::store::Store;
use dq::testing::Harness;
use dq_tests::{Faults, FaultyStore};

use crate::stage::store_under;
use crate::worker::{HOUR, MINUTE, MS, SECOND, Script, usual, work};

pub fn watched_store() -> (Arc<dyn Store>, Arc<Faults>) {
    FaultyStore::over(store_under(Arc::new(TokioClock::new())))
}

async fn node(store: &Arc<dyn Store>, seed: u64, script: &Script) -> Harness {
    Harness::start_on(store.clone(), seed, |factory| script.on(factory, usual)).await
}

#[tokio::test(start_paused = true)]
async fn an_idle_topic_sends_less_than_one_request_in_ten_seconds() {
    let (store, asked) = watched_store();
    let dq = node(&store, 1, &Script::acks()).await;
    dq.advance(MINUTE).await;
    let before = asked.asked_in_all();
    dq.advance(10 * HOUR).await;
    let requests = asked.asked_in_all() - before;
    assert!(requests < 3_600, "{requests} requests in ten hours: ten idle topics may ask once a second");
}

#[tokio::test(start_paused = true)]
async fn a_job_due_much_later_costs_an_idle_node_no_more_requests() {
    let (store, asked) = watched_store();
    let script = Script::acks();
    let dq = node(&store, 1, &script).await;
    dq.provider().add(work("far")).after(HOUR).await.unwrap();
    dq.advance(MINUTE).await;
    let before = asked.asked_in_all();
    dq.advance(59 * MINUTE).await;
    assert!(asked.asked_in_all() - before < 59 * 6 + 10, "{:?}", asked);
    assert_eq!(script.log.take(), ["3600s due far 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_sleeps_exactly_until_the_head_is_due() {
    let (store, asked) = watched_store();
    let script = Script::acks();
    let dq = node(&store, 1, &script).await;
    dq.provider().add(work("a")).after(3_137 * MS).await.unwrap();
    dq.settle().await;
    let before = asked.asked("transfer");
    dq.advance(10 * SECOND).await;
    assert_eq!(script.log.take(), ["3.137s due a 0"]);
    assert_eq!(asked.asked("transfer") - before, 1, "one for the head");
}

#[tokio::test(start_paused = true)]
async fn adding_an_earlier_job_wakes_a_sleeping_node() {
    let (store, _) = watched_store();
    let script = Script::acks();
    let dq = node(&store, 1, &script).await;
    dq.provider().add(work("far")).after(10 * SECOND).await.unwrap();
    dq.advance(SECOND).await;
    dq.provider().add(work("near")).after(MS).await.unwrap();
    dq.advance(MS).await;
    assert_eq!(script.log.take(), ["1.001s due near 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_signal_was_lost_runs_after_the_fallback() {
    let (store, faults) = watched_store();
    let script = Script::acks();
    let dq = node(&store, 1, &script).await;
    dq.advance(SECOND).await;
    faults.lose_signals();
    dq.provider().add(work("a")).await.unwrap();
    dq.settle().await;
    assert!(script.log.take().is_empty(), "nobody told it");
    dq.advance(15 * SECOND).await;
    assert_eq!(script.log.take_whats(), ["due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn only_a_few_of_many_idle_nodes_wake_for_one_job() {
    let (store, asked) = watched_store();
    let script = Script::acks();
    let mut nodes = Vec::new();
    for seed in 1..=20 {
        nodes.push(node(&store, seed, &script).await);
    }
    nodes[0].advance(MINUTE).await;
    let before = asked.asked("transfer");
    nodes[0].provider().add(work("a")).after(2 * SECOND).await.unwrap();
    nodes[0].advance(2_500 * MS).await;
    let usual = 20 * 2_500 / 12_000 + 5; // what the fallback asks in that time
    assert_eq!(script.log.take_whats(), ["due a 0"]);
    let transfers = asked.asked("transfer") - before;
    assert!(transfers <= usual + 10, "{transfers}");
}

#[tokio::test(start_paused = true)]
async fn outcomes_that_end_together_are_settled_together() {
    let (store, asked) = watched_store();
    let script = Script::takes(SECOND);
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, |topic| topic.concurrency(1_000))).await;
    dq.provider().add_many((0..1_000).map(work)).await.unwrap();
    dq.advance(10 * SECOND).await;
    assert_eq!(dq.health().topics[0].counters.acked, 1_000);
    assert!(asked.asked("settle") <= 5, "{asked:?}");
    assert!(asked.asked("transfer") <= 5, "{asked:?}");
    assert_eq!(asked.asked("add"), 1);
}
