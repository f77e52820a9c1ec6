//! Handlers that fail: a failure affects its job, never the topic.

use dq::config::TopicOverrides;
use dq::job::{Cause, JobId, Record, State};
use dq::listener::RetryDelay;
use dq::testing::Harness;

use crate::scripted_listener::{
    HOUR, MS, SECOND, Script, TestJob, add_record, default_settings, handler_takes, stored_job, test_job,
};

fn no_retry(topic: TopicOverrides) -> TopicOverrides {
    topic.retry("none")
}

/// Returns whether a later job still runs.
async fn still_works(dq: &Harness, script: &Script) -> bool {
    script.log.take();
    dq.provider().add(test_job("later")).await.unwrap();
    dq.settle().await;
    script.log.take_without_times().contains(&"due later 0".to_owned()) && dq.health().ready
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_the_job_and_the_topic_keeps_working() {
    let script = Script::new(|job, channel| async move {
        assert!(job.id().as_str() != "a", "order {} is odd", job.id());
        Ok(channel.ack())
    });
    let dq = script.lives(|topic| topic.retry("1m"), HOUR).await;
    assert_eq!(script.log.take(), ["0ns due a 0", "60s due a 1", "60s final a 2 panic"]);
    let dead = stored_job(&dq, "a").await;
    assert_eq!((dead.state, dead.cause), (State::Dead, Some(Cause::Panic)));
    assert_eq!(dead.error, "the handler panicked: order a is odd");
    assert!(still_works(&dq, &script).await);
    assert_eq!(dq.health().topics[0].counters.restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_at_once_or_with_a_value_that_panics_again_fails_the_job_and_the_topic_keeps_working() {
    struct PanicsAgain;
    impl Drop for PanicsAgain {
        fn drop(&mut self) {
            std::panic::panic_any(Self);
        }
    }
    let at_once = Script::new(|job, channel| {
        assert!(job.id().as_str() != "a", "before the first await");
        async { Ok(channel.ack()) }
    });
    let again = Script::new(|job, channel| async move {
        if job.id().as_str() == "a" {
            std::panic::panic_any(PanicsAgain);
        }
        Ok(channel.ack())
    });
    for script in [at_once, again] {
        let dq = script.runs(no_retry).await;
        assert_eq!(stored_job(&dq, "a").await.cause, Some(Cause::Panic));
        assert!(still_works(&dq, &script).await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_ack_before_a_panic_has_no_effect_on_this_or_another_job() {
    let script = Script::new(|job, channel| async move {
        let decided = channel.ack();
        assert!(job.id().as_str() != "a", "after the ack");
        if job.id().as_str() == "b" { Err("no ack for this one".into()) } else { Ok(decided) }
    });
    let dq = script.start(no_retry).await;
    for id in ["a", "b", "c"] {
        dq.provider().add(test_job(id)).await.unwrap();
    }
    dq.settle().await;
    assert_eq!(stored_job(&dq, "a").await.cause, Some(Cause::Panic));
    assert_eq!(stored_job(&dq, "b").await.cause, Some(Cause::Error));
    assert!(dq.job::<TestJob>("c").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_on_exhausted_that_panics_leaves_the_job_dead_with_its_original_cause() {
    let script = Script::fails("no").on_exhausted(|_, _| async { panic!("in on_exhausted") });
    let dq = script.lives(no_retry, HOUR).await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "final a 1 error"]);
    let dead = stored_job(&dq, "a").await;
    assert_eq!((dead.state, dead.cause, dead.error.as_str()), (State::Dead, Some(Cause::Error), "no"));
    assert!(still_works(&dq, &script).await);
}

#[tokio::test(start_paused = true)]
async fn on_park_timeout_that_panics_or_fails_keeps_the_job_for_another_period() {
    let script = Script::parks().on_park_timeout(|job| async move {
        assert!(job.id().as_str() != "a", "in on_park_timeout");
        Err("not now".into())
    });
    let log = script.log.clone();
    let script = script.retry_delay(move |_, _| {
        log.record(format_args!("asked"));
        RetryDelay::BySettings
    });
    let dq = script.start(|topic| topic.park_timeout("1h")).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.provider().add(test_job("b")).await.unwrap();
    dq.advance(3 * HOUR + 30 * 60 * SECOND).await;
    let aged = script.log.take_without_times();
    let times = |what: &str| aged.iter().filter(|line| *line == what).count();
    assert_eq!((times("aged a 0"), times("aged b 0")), (3, 3), "{aged:?}");
    assert_eq!(times("asked"), 0, "no attempt was spent: {aged:?}");
    assert_eq!(dq.counts::<TestJob>().await.unacked, 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_ten_megabytes_is_cut_to_four_kibibytes() {
    let script = Script::new(|_, _| async { Err("long ".repeat(2 << 20).into()) });
    let dq = script.runs(no_retry).await;
    let dead = stored_job(&dq, "a").await;
    assert_eq!(dead.state, State::Dead);
    assert!(dead.error.len() <= 4096 && dead.error.len() > 4000, "{}", dead.error.len());
    assert!(dead.error.starts_with("long long") && dead.error.ends_with("(cut)"));
    assert!(still_works(&dq, &script).await);
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_with_an_invalid_delay_fails_and_names_it() {
    let script = Script::new(|_, channel| async { Ok(channel.rejoin_after("2x")) });
    let dq = script.runs(no_retry).await;
    let dead = stored_job(&dq, "a").await;
    assert_eq!(dead.cause, Some(Cause::Error));
    assert!(dead.error.contains("rejoin_after: `2x` is not a duration"), "{}", dead.error);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_does_not_decode_goes_to_dead_and_the_topic_keeps_working() {
    let script = Script::acks();
    let dq = script.start(|topic| topic.retry("1m")).await;
    let topic = dq.provider().topic("work").unwrap();
    topic.add_json(r#"{"what": 1}"#).id("a").await.unwrap();
    dq.settle().await;
    assert!(script.log.take().is_empty(), "neither `on_due` nor `on_exhausted`");
    let dead = dq.provider().dead::<TestJob>().next_page().await.unwrap().unwrap();
    let details = dead[0].details.as_ref().unwrap();
    assert_eq!((dead[0].id.as_str(), details.cause), ("a", Some(Cause::Decode)));
    assert!(details.error.as_ref().unwrap().contains("missing field `id`"), "{details:?}");
    assert_eq!(dead[0].raw_payload().unwrap().1, br#"{"what": 1}"#, "the payload is kept as it was");
    assert!(still_works(&dq, &script).await);
}

#[tokio::test(start_paused = true)]
async fn an_expired_job_goes_to_dead_and_no_handler_runs() {
    let script = Script::takes(25 * SECOND);
    let dq = script.start(|topic| topic.concurrency(1)).await;
    dq.provider().add(test_job("first")).after(SECOND).await.unwrap();
    dq.provider().add(test_job("late")).after(2 * SECOND).expires_after(10 * SECOND).await.unwrap();
    dq.provider().add(test_job("patient")).after(2 * SECOND).expires_after(30 * SECOND).await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(script.log.take(), ["1s due first 0", "26s due patient 0"]);
    let dead = stored_job(&dq, "late").await;
    assert_eq!((dead.state, dead.cause, dead.attempts), (State::Dead, Some(Cause::Expired), 0));
}

#[tokio::test(start_paused = true)]
async fn a_requeued_job_that_had_expired_runs() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    dq.provider().add(test_job("a")).after(SECOND).expires_after(MS).await.unwrap();
    let store = dq.store();
    dq.shutdown(SECOND).await;
    handler_takes(HOUR).await;
    let dq = Harness::start_on(store, 2, |factory| script.on(factory, default_settings)).await;
    assert_eq!(stored_job(&dq, "a").await.cause, Some(Cause::Expired));
    assert!(script.log.take().is_empty());
    assert!(dq.provider().requeue::<TestJob>("a").await.unwrap().changed);
    dq.settle().await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_with_an_unreadable_record_goes_to_dead_and_is_not_dropped() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    add_record(&dq, JobId::new("a").unwrap(), Record::from_bytes("what?".into())).await;
    dq.advance(SECOND).await;
    assert_eq!(stored_job(&dq, "a").await.cause, Some(Cause::Decode));
    assert!(still_works(&dq, &script).await);
}
