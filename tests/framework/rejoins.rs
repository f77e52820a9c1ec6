//! Rejoin: a job runs again as it was added, without spending an attempt.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::SystemTime;

use dq::prelude::*;

use crate::scripted_listener::{HOUR, MINUTE, SECOND, Script, TestJob, default_settings, handler_takes, test_job};

/// A script that calls `decide` in its first run and acks in the second.
fn once(decide: impl Fn(&Job<TestJob>, Channel) -> Decided + Send + Sync + 'static) -> Script {
    let runs = AtomicU32::new(0);
    Script::new(move |job, channel| {
        let decided = if runs.fetch_add(1, Relaxed) == 0 { decide(&job, channel) } else { channel.ack() };
        async { Ok(decided) }
    })
}

async fn life(script: &Script) -> Vec<String> {
    let dq = script.start(|topic| topic.retry("none")).await;
    dq.provider().add(test_job("a")).after(MINUTE).await.unwrap();
    dq.advance(3 * HOUR).await;
    script.log.take()
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_waits_for_the_delay_the_job_was_added_with() {
    assert_eq!(life(&once(|_, channel| channel.rejoin())).await, ["60s due a 0", "120s due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_may_name_its_own_delay() {
    assert_eq!(life(&once(|_, channel| channel.rejoin_after("10s"))).await, ["60s due a 0", "70s due a 0"]);
    assert_eq!(life(&once(|_, channel| channel.rejoin_after(HOUR))).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_may_name_a_time() {
    let script = once(|job, channel| channel.rejoin_at(job.due() + 5 * SECOND));
    assert_eq!(life(&script).await, ["60s due a 0", "65s due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_at_a_time_that_is_past_waits_for_the_original_delay() {
    let script = once(|_, channel| channel.rejoin_at(SystemTime::UNIX_EPOCH));
    assert_eq!(life(&script).await, ["60s due a 0", "120s due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_at_a_time_more_than_ten_years_away_is_a_failure() {
    let script = once(|job, channel| channel.rejoin_at(job.due() + 11 * 366 * 24 * HOUR));
    assert_eq!(life(&script).await, ["60s due a 0", "60s final a 1 error"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_that_is_too_far_away_counts_as_a_failure_of_the_handler() {
    let too_late = once(|job, channel| channel.rejoin_at(job.due() + 11 * 366 * 24 * HOUR));
    let too_long = once(|_, channel| channel.rejoin_after(11 * 366 * 24 * HOUR));
    for script in [too_late, too_long] {
        let dq = script.start(|topic| topic.retry("none")).await;
        dq.provider().add(test_job("a")).await.unwrap();
        dq.advance(MINUTE).await;
        assert_eq!(dq.health().topics[0].counters.failed, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejoined_job_keeps_payload_headers_and_attempts_whatever_its_handler_did() {
    let script = Script::new(|job, channel| async move {
        assert_eq!((job.header("trace"), job.attempt()), (Some("7"), 0));
        let mut payload = job.into_payload();
        assert_eq!(payload, test_job("a"));
        payload.id.push_str("changed");
        Ok(channel.rejoin_after("1m"))
    });
    let dq = script.start(default_settings).await;
    dq.provider().add(test_job("a")).header("trace", "7").await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(script.log.take().len(), 61);
    assert_eq!(dq.health().topics[0].counters.failed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_of_a_job_without_a_delay_waits_for_a_second() {
    let rejoins: [fn(Channel) -> Decided; 3] =
        [Channel::rejoin, |channel| channel.rejoin_after("0s"), |channel| channel.rejoin_at(SystemTime::UNIX_EPOCH)];
    for rejoin in rejoins {
        let script = Script::new(move |_, channel| async move { Ok(rejoin(channel)) });
        let dq = script.start(default_settings).await;
        dq.provider().add(test_job("a")).await.unwrap();
        dq.advance(3 * SECOND).await;
        // The second begins when the store takes the rejoin, so a slow store fits in fewer.
        let runs = script.log.take().len();
        assert!((3..=4).contains(&runs), "{runs} runs in 3 s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_lives_as_long_as_its_deadline_keeps_moving() {
    use std::sync::{Arc, Mutex};
    let seen_at = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH));
    let deadline = seen_at.clone();
    let script = Script::new(move |job, channel| {
        let expires = *deadline.lock().unwrap() + 30 * MINUTE;
        let decided = if expires > job.due() { channel.rejoin_at(expires) } else { channel.ack() };
        async { Ok(decided) }
    });
    let dq = script.start(default_settings).await;
    let now = || async { SystemTime::from(dq.counts::<TestJob>().await.clock) };
    *seen_at.lock().unwrap() = now().await;
    dq.provider().add(test_job("session")).after("30m").await.unwrap();
    for _ in 0..3 {
        dq.advance(20 * MINUTE).await;
        *seen_at.lock().unwrap() = now().await;
    }
    dq.advance(HOUR).await;
    assert_eq!(
        script.log.take(),
        ["1800s due session 0", "3000s due session 0", "4200s due session 0", "5400s due session 0"]
    );
}

/// Each heartbeat moves the deadline by replacing the job.
#[tokio::test(start_paused = true)]
async fn replacing_a_job_moves_its_deadline() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    for _ in 0..5 {
        dq.provider().add(test_job("connection")).after(MINUTE).replace_existing().await.unwrap();
        dq.advance(50 * SECOND).await;
    }
    assert!(script.log.take().is_empty(), "the heartbeats keep moving the deadline");
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take(), ["260s due connection 0"], "a minute after the last beat");
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_wakes_a_node_that_sleeps_until_later() {
    let script = Script::new(|job, channel| async move {
        if job.id().as_str() == "late" {
            return Ok(channel.ack());
        }
        handler_takes(SECOND).await;
        Ok(channel.rejoin_after("2s"))
    });
    let dq = script.start(default_settings).await;
    dq.provider().add(test_job("late")).after(10 * SECOND).await.unwrap();
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(7 * SECOND).await;
    assert_eq!(script.log.take(), ["0ns due a 0", "3s due a 0", "6s due a 0"]);
}
