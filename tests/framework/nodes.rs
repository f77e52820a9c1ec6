//! Rules of the protocol that a store alone cannot show: how a node handles leases, rows, roles and clocks.

use std::sync::Arc;

use dq::job::{AppName, NodeId, Sequence, Token, TopicKey, TopicName};
use dq::listener::Job;
use dq::store::step::{Change, Outcome, Settle, USUAL_BYTES, Verdict};
use dq::testing::{Harness, ManualClock};
use dq_tests::{Fault, FaultyStore};

use crate::backend::store_under;
use crate::idle::faulty_store;
use crate::scripted_listener::{HOUR, Log, MINUTE, MS, SECOND, Script, TestJob, default_settings, test_job};

/// Records `dropped` when it is dropped.
struct RecordDrop(Log);

impl Drop for RecordDrop {
    fn drop(&mut self) {
        self.0.record("dropped");
    }
}

/// A script that hangs and hands out its tokens. Its future records when it is dropped.
fn hangs_with_token() -> (Script, Arc<std::sync::Mutex<Vec<Token>>>) {
    let tokens = Arc::<std::sync::Mutex<Vec<Token>>>::default();
    let recorded = tokens.clone();
    let log = Log::new();
    let seen = log.clone();
    let mut script = Script::new(move |job: Job<TestJob>, _| {
        recorded.lock().unwrap().push(Token { fence: job.fence(), due: job.due().into() });
        let record = RecordDrop(seen.clone());
        async move {
            let _record = record;
            std::future::pending().await
        }
    });
    script.log = log;
    (script, tokens)
}

/// Settles a job of this node without its knowledge, as a late copy of a request would.
async fn settle_behind_its_back(dq: &Harness, token: Token, change: Change) {
    let topic = TopicKey { app: AppName::new("test").unwrap(), topic: TopicName::new("work").unwrap() };
    let link = dq.store().link(&topic, &NodeId::new(dq.health().node));
    let outcome = Outcome { id: dq::job::JobId::new("a").unwrap(), token, change, metadata: None };
    let settled = link
        .step(Settle { last_seen: Sequence(0), lease: SECOND, bytes: USUAL_BYTES, outcomes: vec![outcome] })
        .await
        .unwrap();
    assert_eq!(settled.verdicts, [Verdict::Done]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_claims_a_job_it_still_holds_cancels_the_older_run_first() {
    let (script, tokens) = hangs_with_token();
    let dq = script.start(|topic| topic.timeout("0s")).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    let token = tokens.lock().unwrap()[0];
    settle_behind_its_back(&dq, token, Change::Rollback).await;
    dq.settle().await;
    let lines = script.log.take_without_times();
    assert_eq!(lines.iter().filter(|line| *line == "due a 0").count(), 2);
    assert!(lines.contains(&"dropped".to_owned()), "{lines:?}");
    let topic = &dq.health().topics[0];
    assert_eq!((topic.running, topic.held, topic.counters.stale_outcomes), (1, 1, 0));
    assert!(tokens.lock().unwrap()[1].fence > token.fence);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_number_of_rows_starts_a_reconcile_that_cancels_runs_no_longer_held() {
    let (script, tokens) = hangs_with_token();
    let dq = script.start(|topic| topic.timeout("0s")).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    let token = tokens.lock().unwrap()[0];
    settle_behind_its_back(&dq, token, Change::Ack).await;
    dq.advance(5 * SECOND).await; // the answer to the heartbeat has the number of rows
    assert_eq!(script.log.take_without_times(), ["due a 0", "dropped"]);
    let topic = &dq.health().topics[0];
    assert_eq!((topic.running, topic.held, topic.counters.lease_lost, topic.counters.reconciled), (0, 0, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_the_store_decides_what_is_due_and_that_of_the_node_does_not() {
    let clock = Arc::new(ManualClock::at(1_800_000_000_000_000));
    let store = store_under(clock.clone());
    let script = Script::acks();
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, default_settings)).await;
    dq.provider().add(test_job("a")).after(MINUTE).await.unwrap();
    dq.advance(10 * MINUTE).await;
    assert!(script.log.take().is_empty(), "no time has passed on the store's clock");
    clock.advance(MINUTE);
    dq.advance(15 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_longer_than_a_lease_no_node_reclaims_what_another_still_holds() {
    let (store, faults) = faulty_store();
    let (beside, faults_beside) = FaultyStore::over(faults.inner());
    let script = Script::takes(5 * SECOND);
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, default_settings)).await;
    let other = Harness::start_on(beside, 2, |factory| script.on(factory, default_settings)).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    faults.fail_all(Fault::Lost);
    faults_beside.fail_all(Fault::Lost);
    dq.advance(MINUTE).await; // the handler has finished, and no node could renew its lease
    faults_beside.clear();
    dq.advance(5 * SECOND).await;
    faults.clear();
    dq.advance(HOUR).await;
    assert_eq!(
        script.log.take_without_times(),
        ["due a 0"],
        "the first node back does not reclaim the jobs of the others"
    );
    assert_eq!(other.health().topics[0].counters.reclaimed, 0);
    assert!(dq.job::<TestJob>("a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_busy_watcher_leaves_its_role_to_another_node() {
    let script = Script::takes(MINUTE);
    let dq = script.start(|topic| topic.concurrency(1).timeout("0s")).await;
    dq.advance(SECOND).await; // the first node becomes the watcher
    let other = script.beside(&dq, 2, |topic| topic.concurrency(1).timeout("0s")).await;
    let clock = dq.counts::<TestJob>().await.clock;
    for id in ["a", "b"] {
        dq.provider().add(test_job(id)).at(clock.after(SECOND)).await.unwrap();
    }
    other.advance(SECOND + 20 * MS).await;
    let lines = script.log.take();
    assert_eq!(lines.len(), 2, "one on each node: {lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stopping_watcher_hands_its_role_over_without_delay() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    let other = script.beside(&dq, 2, default_settings).await;
    dq.provider().add(test_job("a")).after(7 * SECOND).await.unwrap();
    dq.advance(SECOND).await;
    dq.shutdown(SECOND).await;
    other.advance(6 * SECOND).await;
    assert_eq!(script.log.take(), ["7s due a 0"], "not a millisecond late");
}

#[tokio::test(start_paused = true)]
async fn the_standby_watcher_claims_what_the_watcher_misses() {
    let script = Script::acks();
    let (store, faults) = faulty_store();
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, default_settings)).await;
    let standby = Harness::start_on(faults.inner(), 2, |factory| script.on(factory, default_settings)).await;
    standby.provider().add(test_job("a")).after(MINUTE).await.unwrap();
    standby.advance(MINUTE - MS).await;
    faults.fail_all(Fault::Lost); // the watcher is cut off
    standby.advance(300 * MS).await;
    assert_eq!(script.log.take(), ["60.25s due a 0"], "a quarter of a second after the watcher should have");
    drop(dq);
}
