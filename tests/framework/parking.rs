//! Park: the outcome comes from outside, or `on_park_timeout` decides if none came.

use std::sync::{Arc, Mutex};

use dq::job::{Fence, State};
use dq::prelude::*;

use crate::scripted_listener::{
    DAY, HOUR, MINUTE, SECOND, Script, TestJob, default_settings, start, stored_job, test_job,
};

/// A script that parks, and the fences of its runs.
fn parks() -> (Script, Arc<Mutex<Vec<Fence>>>) {
    let fences = Arc::<Mutex<Vec<Fence>>>::default();
    let recorded = fences.clone();
    let script = Script::new(move |job, channel| {
        recorded.lock().unwrap().push(job.fence());
        async { Ok(channel.park()) }
    });
    (script, fences)
}

#[tokio::test(start_paused = true)]
async fn the_oldest_job_of_each_state_is_shown_with_its_time() {
    let script = Script::parks();
    let dq = script.start(default_settings).await;
    for id in ["a", "b"] {
        dq.provider().add(test_job(id)).await.unwrap();
        dq.advance(MINUTE).await;
    }
    dq.provider().add(test_job("later")).after("2h").await.unwrap();
    dq.provider().add(test_job("soon")).after("1h").await.unwrap();
    let oldest = dq.provider().inspect().oldest("work").await.unwrap();
    let shown: Vec<_> = oldest.iter().map(|job| (job.id.as_str(), job.state)).collect();
    assert_eq!(shown, [("soon", State::Delayed), ("a", State::Unacked)]);
    assert_eq!(oldest[0].at.since(oldest[1].at), HOUR + 2 * MINUTE);
}

#[tokio::test(start_paused = true)]
async fn a_parked_job_is_listed_and_ends_with_an_ack_from_outside() {
    let (script, fences) = parks();
    let dq = script.lives(default_settings, HOUR).await;
    let listed = dq.provider().unacked::<TestJob>().next_page().await.unwrap().unwrap();
    assert_eq!(listed[0].id.as_str(), "a");
    let fence = fences.lock().unwrap()[0];
    let ended = dq.provider().ack::<TestJob>("a").fence(fence).await.unwrap();
    assert_eq!((ended.found, ended.changed), (Some(State::Unacked), true));
    dq.advance(HOUR).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    assert!(dq.job::<TestJob>("a").await.is_none());
}

stores!(a_requeued_parked_job_runs_again_and_its_old_fence_is_rejected: memory, file, redis);
async fn a_requeued_parked_job_runs_again_and_its_old_fence_is_rejected() {
    let (script, fences) = parks();
    let dq = script.runs(default_settings).await;
    assert!(dq.provider().requeue::<TestJob>("a").await.unwrap().changed);
    dq.settle().await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "due a 0"]);
    let first = fences.lock().unwrap()[0];
    assert!(!dq.provider().ack::<TestJob>("a").fence(first).await.unwrap().changed, "the fence is of an earlier run");
    assert_eq!(stored_job(&dq, "a").await.state, State::Unacked);
    let second = fences.lock().unwrap()[1];
    assert!(second > first);
    assert!(dq.provider().ack::<TestJob>("a").fence(second).await.unwrap().changed);
}

#[tokio::test(start_paused = true)]
async fn on_park_timeout_runs_once_after_seven_days_and_drops_the_job() {
    let script = Script::parks();
    let rarely = |factory: ContextFactory| script.on(factory, default_settings).poll_interval("1h");
    let dq = start(rarely).await;
    let other = dq.another(2, rarely).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(7 * DAY - SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    dq.advance(HOUR).await;
    assert_eq!(script.log.take_without_times(), ["aged a 0"], "on one node");
    assert!(dq.job::<TestJob>("a").await.is_none());
    let dropped = [&dq, &other].map(|node| node.health().topics[0].counters.dropped);
    assert_eq!(dropped.iter().sum::<u64>(), 1);
}

stores!(on_park_timeout_runs_again_a_period_after_it_keeps_a_job: memory, file, redis);
async fn on_park_timeout_runs_again_a_period_after_it_keeps_a_job() {
    let (script, fences) = parks();
    let script = script.on_park_timeout(|_| async { Ok(UnackedDecision::Keep) });
    let dq = script.lives(|topic| topic.park_timeout("1h"), 2 * HOUR + 20 * MINUTE).await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "aged a 0", "aged a 0"]);
    let fence = fences.lock().unwrap()[0];
    assert!(dq.provider().ack::<TestJob>("a").fence(fence).await.unwrap().changed, "the fence of its run still counts");
}

#[tokio::test(start_paused = true)]
async fn a_retry_by_on_park_timeout_spends_an_attempt_and_waits_its_backoff() {
    let script = Script::parks().on_park_timeout(|_| async { Ok(UnackedDecision::Retry) });
    let dq = script.lives(|topic| topic.park_timeout("2h").retry("1h"), 2 * HOUR + 30 * MINUTE).await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "aged a 0"]);
    let waits = stored_job(&dq, "a").await;
    assert_eq!((waits.state, waits.attempts), (State::Delayed, 1));
    dq.advance(HOUR).await;
    assert_eq!(script.log.take_without_times(), ["due a 1"]);
    dq.advance(3 * HOUR).await;
    assert_eq!(script.log.take_without_times(), ["aged a 1", "final a 2 error"], "no attempt is left");
    assert_eq!(stored_job(&dq, "a").await.state, State::Dead);
}

#[tokio::test(start_paused = true)]
async fn on_park_timeout_runs_even_for_an_expired_job() {
    let script = Script::parks();
    let dq = script.start(|topic| topic.park_timeout("2h")).await;
    dq.provider().add(test_job("a")).expires_after("1h").await.unwrap();
    dq.advance(3 * HOUR).await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "aged a 0"]);
}
