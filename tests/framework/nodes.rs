//! Rules of the protocol that a store alone cannot show: how a node handles leases, rows, roles and clocks.

use std::sync::Arc;
use std::time::Duration;

use dq::context::ContextFactory;
use dq::job::{NodeId, Sequence, Token};
use dq::listener::Job;
use dq::store::step::{Change, DEFAULT_BYTES, Outcome, Settle, Verdict};
use dq::testing::{Harness, ManualClock};
use dq_tests::Fault;

use crate::backend::{seeds, store_under};
use crate::scripted_listener::{
    Log, MINUTE, MS, RecordDrop, SECOND, Script, TestJob, default_settings, faulty_store, test_job, work_key,
};

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
    let link = dq.store().link(&work_key(), &NodeId::new(dq.health().node));
    let outcome = Outcome { id: dq::job::JobId::new("a").unwrap(), token, change, metadata: None };
    let settled = link
        .step(Settle { last_seen: Sequence(0), lease: SECOND, bytes: DEFAULT_BYTES, outcomes: vec![outcome] })
        .await
        .unwrap();
    assert_eq!(settled.verdicts, [Verdict::Done]);
}

stores!(a_node_that_claims_a_job_it_still_holds_cancels_the_older_run_first: memory, file, redis);
async fn a_node_that_claims_a_job_it_still_holds_cancels_the_older_run_first() {
    let (script, tokens) = hangs_with_token();
    let dq = script.lives(|topic| topic.timeout("0s"), SECOND).await;
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

stores!(an_outcome_that_is_refused_when_it_is_sent_first_is_stale: memory, file, redis);
async fn an_outcome_that_is_refused_when_it_is_sent_first_is_stale() {
    let (script, tokens) = hangs_with_token();
    let dq = script.runs(|topic| topic.timeout("2s").retry("1h")).await;
    let token = tokens.lock().unwrap()[0];
    settle_behind_its_back(&dq, token, Change::Ack).await;
    dq.advance(3 * SECOND).await; // the handler times out, before a heartbeat shows the number of rows
    let topic = &dq.health().topics[0];
    assert_eq!((topic.held, topic.counters.stale_outcomes, topic.counters.timed_out), (0, 1, 1));
}

stores!(a_wrong_number_of_rows_starts_a_reconcile_that_cancels_runs_no_longer_held: memory, file, redis);
async fn a_wrong_number_of_rows_starts_a_reconcile_that_cancels_runs_no_longer_held() {
    let (script, tokens) = hangs_with_token();
    let dq = script.lives(|topic| topic.timeout("0s"), SECOND).await;
    let token = tokens.lock().unwrap()[0];
    settle_behind_its_back(&dq, token, Change::Ack).await;
    dq.advance(5 * SECOND).await; // the answer to the heartbeat has the number of rows
    assert_eq!(script.log.take_without_times(), ["due a 0", "dropped"]);
    let topic = &dq.health().topics[0];
    assert_eq!((topic.running, topic.held, topic.counters.lease_lost, topic.counters.reconciled), (0, 0, 1, 2));
}

stores!(the_clock_of_the_store_decides_what_is_due_and_that_of_the_node_does_not: memory, file, redis);
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

/// Settings of a node beside its lease.
type Settings = fn(ContextFactory) -> ContextFactory;

/// What happened over an outage that was longer than a lease, as [`over_an_outage`] observes it.
#[derive(Debug, PartialEq, Eq)]
struct OverOutage {
    runs: usize,
    reclaimed: u64,
    is_done: bool,
}

/// A job runs while an outage begins, so nobody learns of its end until the outage is over, for both nodes at once. By then
/// every lease has expired. `seed` decides when that is, and how long the nodes pause.
async fn over_an_outage(seed: u32, lease: Duration, settings: Settings) -> OverOutage {
    let (store, faults) = faulty_store();
    let script = Script::takes(20 * MS);
    let node = |number: u32| {
        let with = |factory: ContextFactory| script.on(settings(factory.lease(lease)), default_settings);
        Harness::start_on(store.clone(), u64::from(2 * seed + number), with)
    };
    let (dq, other) = (node(1).await, node(2).await);
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    faults.fail_all(Fault::Lost);
    dq.advance(4 * lease + (seed * 137 % 10_000) * MS).await;
    faults.clear();
    dq.advance(MINUTE).await;
    let reclaimed = [&dq, &other].map(|node| node.health().topics[0].counters.reclaimed).iter().sum();
    let is_done = dq.job::<TestJob>("a").await.is_none();
    dq.kill();
    other.kill();
    OverOutage { runs: script.log.take().len(), reclaimed, is_done }
}

stores!(after_an_outage_longer_than_a_lease_no_node_reclaims_what_another_still_holds: memory, file, redis);
async fn after_an_outage_longer_than_a_lease_no_node_reclaims_what_another_still_holds() {
    let nodes: [(Duration, Settings); 4] = [
        (15 * SECOND, |node| node),
        (15 * SECOND, |node| node.call_timeout("10s")),
        (3 * SECOND, |node| node.heartbeat_interval("1s")),
        (100 * MS, |node| node.heartbeat_interval("33ms").call_timeout("60ms")),
    ];
    for (number, (lease, settings)) in nodes.into_iter().enumerate() {
        for seed in 0..seeds() {
            assert_eq!(
                over_an_outage(seed, lease, settings).await,
                OverOutage { runs: 1, reclaimed: 0, is_done: true },
                "seed {seed} of node {number}: the first node back does not take the jobs of the others"
            );
        }
    }
}

stores!(a_busy_watcher_leaves_its_role_to_another_node: memory, file, redis);
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

stores!(a_stopping_watcher_hands_its_role_over_without_delay: memory, file, redis);
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

stores!(the_standby_watcher_claims_what_the_watcher_misses: memory, file, redis);
async fn the_standby_watcher_claims_what_the_watcher_misses() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    let standby = Harness::start_on(faults.inner(), 2, |factory| script.on(factory, default_settings)).await;
    let due = MINUTE + 5 * SECOND; // between two fallbacks, which every node has
    standby.provider().add(test_job("a")).after(due).await.unwrap();
    standby.advance(due - MS).await;
    faults.fail_all(Fault::Lost); // the watcher is cut off
    standby.advance(300 * MS).await;
    assert_eq!(script.log.take(), ["65.25s due a 0"], "a quarter of a second after the watcher should have");
    drop(dq);
}
