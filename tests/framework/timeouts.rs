//! Timeouts of handlers, of `on_exhausted` and of `on_park_timeout`.

use std::future::pending;
use std::time::Duration;

use dq::config::TopicOverrides;
use dq::job::{Cause, State};
use dq::listener::OnTimeout;
use dq_tests::Fault;

use crate::scripted_listener::{HOUR, Log, MS, RecordDrop, SECOND, Script, stored_job, test_job};

#[tokio::test(start_paused = true)]
async fn a_handler_that_times_out_is_retried_by_the_policy() {
    let script = Script::hangs();
    let dq = script.lives(|topic| topic.timeout("5s").retry("1m"), HOUR).await;
    assert_eq!(script.log.take(), ["0ns due a 0", "65s due a 1", "70s final a 2 timeout"]);
    let dead = stored_job(&dq, "a").await;
    assert_eq!((dead.state, dead.cause), (State::Dead, Some(Cause::Timeout)));
    assert_eq!(dead.error, "the handler did not return within 5s");
    assert_eq!(dq.health().topics[0].counters.timed_out, 2);
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_the_time_that_its_settings_give_it() {
    type Settings = fn(TopicOverrides) -> TopicOverrides;
    let cases: [(Duration, Settings, &[&str]); 5] = [
        (300 * MS, |topic| topic.timeout("250ms").retry("none"), &["0ns due a 0", "250ms final a 1 timeout"]),
        (200 * MS, |topic| topic.timeout("250ms").retry("none"), &["0ns due a 0"]),
        (5 * HOUR, |topic| topic.timeout("0s"), &["0ns due a 0"]),
        (HOUR, |topic| topic.retry("none"), &["0ns due a 0", "30s final a 1 timeout"]),
        (
            HOUR,
            |topic| topic.timeout("5s").retry("1m").on_timeout(OnTimeout::Immediate),
            &["0ns due a 0", "5s due a 1", "10s final a 2 timeout"],
        ),
    ];
    for (time, settings, expected) in cases {
        let script = Script::takes(time);
        let dq = script.lives(settings, 6 * HOUR).await;
        assert_eq!(script.log.take(), expected, "{time:?}");
        assert_eq!(dq.health().topics[0].counters.acked, u64::from(expected.len() == 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_timed_out_handler_is_gone_before_its_retry_starts() {
    let log = Log::new();
    let recorded = log.clone();
    let script = Script::new(move |job, _| {
        let log = recorded.clone();
        async move {
            log.record(format_args!("starts {}", job.attempt()));
            let _record = RecordDrop(log);
            pending().await
        }
    });
    let _dq = script.lives(|topic| topic.timeout("5s").retry("immediate x 1"), HOUR).await;
    assert_eq!(log.take(), ["0ns starts 0", "5s dropped", "5s starts 1", "10s dropped"]);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_cancels_tasks_that_the_handler_spawned() {
    let log = Log::new();
    let recorded = log.clone();
    let script = Script::new(move |job, _| {
        let (log, cancelled) = (recorded.clone(), job.cancelled());
        tokio::spawn(async move {
            cancelled.await;
            log.record("stopped");
        });
        pending()
    });
    let _dq = script.lives(|topic| topic.timeout("5s").retry("none"), HOUR).await;
    assert_eq!(log.take(), ["5s stopped"]);
}

#[tokio::test(start_paused = true)]
async fn on_exhausted_runs_under_the_timeout_too() {
    let script = Script::fails("no").on_exhausted(|_, _| pending());
    let dq = script.lives(|topic| topic.timeout("5s").retry("none"), 4 * SECOND).await;
    assert_eq!(stored_job(&dq, "a").await.state, State::Running);
    dq.advance(SECOND).await;
    let dead = stored_job(&dq, "a").await;
    assert_eq!((dead.state, dead.cause, dead.error.as_str()), (State::Dead, Some(Cause::Error), "no"));
}

#[tokio::test(start_paused = true)]
async fn on_park_timeout_runs_under_the_timeout_too_and_then_the_job_is_kept() {
    let script = Script::parks().on_park_timeout(|_| pending());
    let dq = script.lives(|topic| topic.timeout("5s").park_timeout("1h"), HOUR + 10 * 60 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "aged a 0"]);
    assert_eq!(stored_job(&dq, "a").await.state, State::Unacked);
}

stores!(a_handler_that_returned_in_time_is_not_timed_out_by_a_slow_store: memory, file, redis);
async fn a_handler_that_returned_in_time_is_not_timed_out_by_a_slow_store() {
    let script = Script::takes(4 * SECOND);
    let (dq, faults) = script.on_faulty(|topic| topic.timeout("5s")).await;
    faults.fail_only("settle", Fault::AnsweredAfter(1_900 * MS));
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(10 * SECOND).await;
    let counters = dq.health().topics[0].counters;
    assert_eq!((counters.acked, counters.timed_out, counters.late_outcomes), (1, 0, 0));
}
