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

#[tokio::test(start_paused = true)]
async fn a_rejoin_waits_for_its_own_delay_or_time_and_otherwise_as_the_job_was_added() {
    type Decide = fn(&Job<TestJob>, Channel) -> Decided;
    let rejoins: [(Decide, u64); 5] = [
        (|_, channel| channel.rejoin(), 120),
        (|_, channel| channel.rejoin_after("10s"), 70),
        (|_, channel| channel.rejoin_after(HOUR), 3660),
        (|job, channel| channel.rejoin_at(job.due() + 5 * SECOND), 65),
        (|_, channel| channel.rejoin_at(SystemTime::UNIX_EPOCH), 120),
    ];
    for (decide, again) in rejoins {
        let script = once(decide);
        let dq = script.start(default_settings).await;
        dq.provider().add(test_job("a")).after(MINUTE).await.unwrap();
        dq.advance(3 * HOUR).await;
        assert_eq!(script.log.take(), ["60s due a 0".to_owned(), format!("{again}s due a 0")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_that_is_too_far_away_counts_as_a_failure_of_the_handler() {
    let too_late = once(|job, channel| channel.rejoin_at(job.due() + 11 * 366 * 24 * HOUR));
    let too_long = once(|_, channel| channel.rejoin_after(11 * 366 * 24 * HOUR));
    for script in [too_late, too_long] {
        let dq = script.lives(|topic| topic.retry("none"), MINUTE).await;
        assert_eq!(dq.health().topics[0].counters.failed, 1);
        assert_eq!(script.log.take_without_times(), ["due a 0", "final a 1 error"]);
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

stores!(a_rejoin_of_a_job_without_a_delay_waits_for_a_second: memory, file, redis);
async fn a_rejoin_of_a_job_without_a_delay_waits_for_a_second() {
    let rejoins: [fn(Channel) -> Decided; 3] =
        [Channel::rejoin, |channel| channel.rejoin_after("0s"), |channel| channel.rejoin_at(SystemTime::UNIX_EPOCH)];
    for rejoin in rejoins {
        let script = Script::new(move |_, channel| async move { Ok(rejoin(channel)) });
        let _dq = script.lives(default_settings, 3 * SECOND).await;
        // The second begins when the store takes the rejoin, so a slow store fits in fewer.
        let runs = script.log.take().len();
        assert!((3..=4).contains(&runs), "{runs} runs in 3 s");
    }
}

stores!(a_rejoin_wakes_a_node_that_sleeps_until_later: memory, file, redis);
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
