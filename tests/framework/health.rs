//! `health()`: what it reports to readiness probes and people.

use dq::config::TopicOverrides;
use dq::context::{Condition, Counters};
use dq::testing::Harness;
use dq_tests::{Fault, FaultyStore};

use crate::isolation::crash_with;
use crate::scripted_listener::{HOUR, MINUTE, SECOND, Script, default_settings, handler_takes, start, test_job};

#[tokio::test(start_paused = true)]
async fn a_working_node_is_ready_and_reports_its_settings() {
    let dq = Script::acks().start(|topic| topic.concurrency(8)).await;
    let health = dq.health();
    assert!(health.ready);
    assert_eq!((health.app.as_str(), health.store.as_str()), ("test", dq.store().url().as_str()));
    assert!(health.settings.contains("lease = 15s"), "{}", health.settings);
    let topic = &health.topics[0];
    assert_eq!((topic.topic.as_str(), &topic.condition), ("work", &Condition::Working));
    assert!(
        topic.listener.starts_with("ScriptedListener (") && topic.listener.contains("scripted_listener.rs:"),
        "{}",
        topic.listener
    );
    assert!(
        topic.settings.contains("concurrency = 8") && topic.settings.contains("timeout = 30s"),
        "{}",
        topic.settings
    );
    let json = serde_json::to_value(&health).unwrap();
    assert_eq!(json["topics"][0]["condition"]["state"], "working");
}

#[tokio::test(start_paused = true)]
async fn health_reports_what_a_topic_holds_and_the_outcomes_of_its_jobs() {
    let script = Script::new(|job, channel| async move {
        match job.id().as_str() {
            "acks" => Ok(channel.ack()),
            "rejoins" => Ok(channel.rejoin_after("1h")),
            "parks" => Ok(channel.park()),
            "fails" => Err("no".into()),
            "panics" => panic!("no"),
            _ => std::future::pending().await,
        }
    });
    let dq = script.start(|topic| topic.retry("1h").timeout("1m")).await;
    for id in ["acks", "rejoins", "parks", "fails", "panics", "hangs"] {
        dq.provider().add(test_job(id)).await.unwrap();
    }
    dq.provider().add(test_job("dies")).retry("none").await.unwrap();
    dq.advance(SECOND).await;
    let topic = &dq.health().topics[0];
    assert_eq!((topic.held, topic.running, topic.waiting, topic.settling), (2, 2, 0, 0));
    dq.advance(MINUTE).await;
    let counters = dq.health().topics[0].counters;
    let mut expected = Counters::default();
    (expected.claimed, expected.acked, expected.rejoined, expected.parked) = (7, 1, 1, 1);
    (expected.failed, expected.retried, expected.timed_out, expected.dead) = (4, 3, 2, 1);
    expected.reconciled = 1;
    assert_eq!(counters, expected);
    assert_eq!(dq.health().topics[0].held, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stopping_node_is_not_ready_and_its_probe_reports_that() {
    let dq = Script::takes(MINUTE).runs(|topic| topic.timeout("0s")).await;
    let probe = dq.probe();
    assert!(probe.health().ready);
    let stop = tokio::spawn(dq.shutdown(HOUR));
    handler_takes(SECOND).await;
    let health = probe.health();
    assert_eq!((health.ready, &health.topics[0].condition), (false, &Condition::Stopping));
    assert_eq!(health.topics[0].running, 1, "its handler goes on");
    stop.await.unwrap();
    assert_eq!(probe.health().topics[0].counters.acked, 1, "the probe still reports the state at the end");
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_an_operator_must_mend_says_so_until_the_refused_step_works_again() {
    let harness = start(|factory| factory.without_listeners()).await;
    let (store, faults) = FaultyStore::over(harness.store());
    let script = Script::acks();
    let dq = Harness::start_on(store, 2, |factory| script.on(factory, default_settings)).await;
    faults.fail_only("sweep", Fault::WrongType);
    // The last one stays, so there is something to sweep.
    for (id, after) in [("a", "6m"), ("b", "8m"), ("c", "1h")] {
        dq.provider().add(test_job(id)).after(after).await.unwrap();
    }
    for acked in [1, 2] {
        dq.advance((if acked == 1 { 7 } else { 2 }) * MINUTE).await;
        let topic = dq.health().topics.remove(0);
        assert_eq!(topic.counters.acked, acked, "the other steps work");
        let Condition::Stopped(text) = &topic.condition else { panic!("{topic:?}") };
        assert!(text.contains("`a key of the test` has the wrong type"), "{text}");
    }
    faults.clear();
    dq.advance(10 * MINUTE).await;
    assert!(dq.health().ready);
}

/// A request that the store refused is not sent again once another node has its job, so no answer to one shows that the topic works.
#[tokio::test(start_paused = true)]
async fn a_topic_is_stopped_no_longer_than_it_has_a_reason_for_the_step_that_was_refused() {
    for step in ["exhaust", "isolate", "settle"] {
        let harness = start(|factory| factory.without_listeners()).await;
        crash_with(&harness.store(), ["a".to_owned()].into_iter()).await;
        let (store, faults) = FaultyStore::over(harness.store());
        faults.fail_only(step, Fault::WrongType);
        let script = if step == "exhaust" { Script::fails("no") } else { Script::acks() };
        let crashes = if step == "isolate" { 1 } else { 9 };
        let settings = |topic: TopicOverrides| topic.max_crashes(crashes).retry("none");
        let dq = Harness::start_on(store, 3, |factory| script.on(factory, settings)).await;
        dq.advance(30 * SECOND).await;
        let condition = dq.health().topics.remove(0).condition;
        assert!(matches!(&condition, Condition::Stopped(text) if text.contains("wrong type")), "{step}: {condition:?}");

        let other = Harness::start_on(harness.store(), 4, |factory| script.on(factory, settings)).await;
        faults.fail_all(Fault::Unavailable);
        other.advance(2 * MINUTE).await;
        let topic = &other.health().topics[0];
        assert_eq!(topic.counters.reclaimed, 1, "{step}: {topic:?}");
        other.shutdown(SECOND).await;
        faults.fail_only(step, Fault::WrongType);
        dq.advance(5 * MINUTE).await;
        assert_eq!(dq.health().topics[0].condition, Condition::Working, "{step}");
    }
}

stores!(a_topic_that_may_not_reclaim_works_again_once_another_node_has_done_that: memory, file, redis);
/// The other node does what this one may not.
async fn a_topic_that_may_not_reclaim_works_again_once_another_node_has_done_that() {
    let harness = start(|factory| factory.without_listeners()).await;
    let (store, faults) = FaultyStore::over(harness.store());
    let dead = Script::hangs().beside(&harness, 2, default_settings).await;
    dead.provider().add(test_job("a")).await.unwrap();
    dead.settle().await;
    dead.kill();
    faults.fail_only("reclaim", Fault::WrongType);
    let script = Script::acks();
    let dq = Harness::start_on(store, 3, |factory| script.on(factory, default_settings)).await;
    dq.advance(MINUTE).await;
    assert!(matches!(dq.health().topics[0].condition, Condition::Stopped(_)), "{:?}", dq.health());
    let other = script.beside(&harness, 4, default_settings).await;
    other.advance(2 * MINUTE).await;
    assert_eq!(other.health().topics[0].counters.reclaimed, 1);
    assert_eq!(dq.health().topics[0].condition, Condition::Working);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_misses_its_lateness_objective_is_degraded_and_ready_until_a_minute_later() {
    let dq = Script::takes(3 * SECOND).start(|topic| topic.concurrency(1).lateness_objective("2s")).await;
    assert!(!dq.health().degraded);
    dq.provider().add_many(["a", "b", "c"].map(test_job)).await.unwrap().all().unwrap();
    handler_takes(10 * SECOND).await;
    let health = dq.health();
    assert!(health.degraded && health.ready);
    let late = health.topics[0].late.as_deref().unwrap();
    assert!(late.starts_with("2 of the 3 jobs of the last minute started more than 2s late"), "{late}");
    handler_takes(2 * MINUTE).await;
    assert!(!dq.health().degraded && dq.health().topics[0].late.is_none());
}
