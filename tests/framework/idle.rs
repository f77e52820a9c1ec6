//! Smart sleep: an idle node sends almost no requests, and still runs every job on time.

use std::sync::Arc;

use dq::store::Store;
use dq::testing::Harness;
use dq_tests::Faults;

use crate::scripted_listener::{HOUR, MINUTE, MS, SECOND, Script, default_settings, faulty_store, test_job};

async fn node(store: &Arc<dyn Store>, seed: u64, script: &Script) -> Harness {
    Harness::start_on(store.clone(), seed, |factory| script.on(factory, default_settings)).await
}

stores!(an_idle_topic_sends_less_than_one_request_in_ten_seconds: memory, file, redis);
async fn an_idle_topic_sends_less_than_one_request_in_ten_seconds() {
    let (dq, faults) = Script::acks().on_faulty(default_settings).await;
    dq.advance(MINUTE).await;
    let before = faults.requests();
    dq.advance(10 * HOUR).await;
    let requests = faults.requests() - before;
    // It looks each 12 to 15 s.
    assert!(
        (2_400..3_600).contains(&requests),
        "{requests} requests in ten hours: ten idle topics may ask once a second"
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_due_much_later_costs_an_idle_node_no_more_requests() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    dq.provider().add(test_job("far")).after(HOUR).await.unwrap();
    dq.advance(MINUTE).await;
    let before = faults.requests();
    dq.advance(59 * MINUTE).await;
    assert!((59 * 4..59 * 6 + 10).contains(&(faults.requests() - before)), "{faults:?}");
    assert_eq!(script.log.take(), ["3600s due far 0"]);
}

/// Scans and sweeps within this time.
async fn looks(dq: &Harness, faults: &Faults, time: std::time::Duration) -> (usize, usize) {
    let count = || (faults.requests_for("scan"), faults.requests_for("sweep"));
    let before = count();
    dq.advance(time).await;
    let after = count();
    (after.0 - before.0, after.1 - before.1)
}

#[tokio::test(start_paused = true)]
async fn only_a_topic_that_has_a_job_is_audited_every_minute() {
    let (dq, faults) = Script::acks().on_faulty(default_settings).await;
    dq.advance(MINUTE).await;
    assert_eq!(looks(&dq, &faults, HOUR).await, (6, 0));
    dq.provider().add(test_job("far")).after(3 * HOUR).await.unwrap();
    assert_eq!(looks(&dq, &faults, MINUTE + SECOND).await, (1, 0), "the first audit comes within a minute");
    let (scans, sweeps) = looks(&dq, &faults, HOUR).await;
    assert!(scans >= 59 && sweeps >= 11, "{scans} scans and {sweeps} sweeps in an hour");
    dq.advance(3 * HOUR).await;
    assert_eq!(looks(&dq, &faults, HOUR).await, (6, 0), "the topic is empty again");
}

stores!(a_job_whose_signal_was_lost_is_audited_within_ten_minutes: memory, file, redis);
async fn a_job_whose_signal_was_lost_is_audited_within_ten_minutes() {
    let (dq, faults) = Script::acks().on_faulty(default_settings).await;
    dq.advance(MINUTE).await;
    faults.lose_signals();
    dq.provider().add(test_job("far")).after(3 * HOUR).await.unwrap();
    dq.advance(10 * MINUTE).await;
    assert!(looks(&dq, &faults, 10 * MINUTE).await.0 >= 10);
}

stores!(a_node_sleeps_exactly_until_the_head_is_due: memory, file, redis);
async fn a_node_sleeps_exactly_until_the_head_is_due() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    dq.provider().add(test_job("a")).after(3_137 * MS).await.unwrap();
    dq.settle().await;
    let before = faults.requests_for("transfer");
    dq.advance(10 * SECOND).await;
    assert_eq!(script.log.take(), ["3.137s due a 0"]);
    assert_eq!(faults.requests_for("transfer") - before, 1, "one for the head");
}

stores!(each_earlier_head_costs_one_transfer_when_it_is_due: memory, file, redis);
async fn each_earlier_head_costs_one_transfer_when_it_is_due() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    dq.advance(MS).await;
    let before = faults.requests_for("transfer");
    for (name, after) in [("c", 3 * SECOND), ("b", 2 * SECOND), ("a", SECOND)] {
        dq.provider().add(test_job(name)).after(after).await.unwrap();
        dq.settle().await;
    }
    assert_eq!(faults.requests_for("transfer") - before, 0, "the signals say when to come");
    dq.advance(5 * SECOND).await;
    assert_eq!(script.log.take(), ["1.001s due a 0", "2.001s due b 0", "3.001s due c 0"]);
    assert_eq!(faults.requests_for("transfer") - before, 3);
}

stores!(a_job_whose_signal_was_lost_runs_after_the_fallback: memory, file, redis);
async fn a_job_whose_signal_was_lost_runs_after_the_fallback() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    dq.advance(SECOND).await;
    faults.lose_signals();
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    assert!(script.log.take().is_empty(), "the signal was lost");
    dq.advance(15 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
}

stores!(only_a_few_of_many_idle_nodes_wake_for_one_job: memory, file, redis);
async fn only_a_few_of_many_idle_nodes_wake_for_one_job() {
    let (store, faults) = faulty_store();
    let script = Script::acks();
    let mut nodes = Vec::new();
    for seed in 1..=20 {
        nodes.push(node(&store, seed, &script).await);
    }
    nodes[0].advance(MINUTE).await;
    let before = faults.requests_for("transfer");
    nodes[0].provider().add(test_job("a")).after(2 * SECOND).await.unwrap();
    nodes[0].advance(2_500 * MS).await;
    let usual = 20 * 2_500 / 12_000 + 5; // the requests of the fallback scans in that time
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    let transfers = faults.requests_for("transfer") - before;
    assert!((1..=usual + 10).contains(&transfers), "{transfers}");
}

#[tokio::test(start_paused = true)]
async fn outcomes_that_end_together_are_settled_together() {
    let script = Script::takes(SECOND);
    let (dq, faults) = script.on_faulty(|topic| topic.concurrency(1_000)).await;
    dq.provider().add_many((0..1_000).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(10 * SECOND).await;
    assert_eq!(dq.health().topics[0].counters.acked, 1_000);
    assert!((1..=5).contains(&faults.requests_for("settle")), "{faults:?}");
    // A node asks for at most 300 jobs at once.
    assert!((4..=6).contains(&faults.requests_for("transfer")), "{faults:?}");
    assert_eq!(faults.requests_for("add"), 1);
}
