//! Each job of a batch has its own outcome.

use std::sync::{Arc, Mutex};

use dq::job::{Cause, State};
use dq::listener::RetryDelay;
use dq::prelude::*;

use super::{BatchScript, add_all};
use crate::scripted_listener::{HOUR, MINUTE, MS, SECOND, TestJob, handler_takes, stored_job};

const EACH: [&str; 7] = ["acks", "fails", "rejoins", "rejoins-at", "rejoins-wrong", "parks", "undecided"];

fn each_differs() -> BatchScript {
    BatchScript::new(|batch| async move {
        for job in &batch {
            match job.id.as_str() {
                "acks" => batch.ack(job),
                "fails" => batch.fail(job, "no"),
                "rejoins" => batch.rejoin_after(job, "2m"),
                "rejoins-at" => batch.rejoin_at(job, std::time::SystemTime::now() + HOUR * 24 * 366 * 11),
                "rejoins-wrong" => batch.rejoin_after(job, "2x"),
                "parks" => batch.park(job),
                _ => {}
            }
        }
        Ok(batch.rest().rejoin_after("3m"))
    })
}

#[tokio::test(start_paused = true)]
async fn each_job_of_a_batch_goes_where_the_batch_decides_and_the_rest_where_its_channel_does() {
    let script = each_differs();
    let dq = script.start(|topic| topic.retry("1h")).await;
    let clock = dq.counts::<TestJob>().await.clock;
    add_all(&dq, EACH).await;
    dq.settle().await;
    let mut batches = script.batches();
    batches.iter_mut().for_each(|ids| ids.sort_by_key(|id| EACH.iter().position(|each| each == id)));
    assert_eq!(batches, [EACH], "one call");
    assert!(dq.job::<TestJob>("acks").await.is_none());
    let mut found = Vec::new();
    for id in &EACH[1..] {
        let job = stored_job(&dq, id).await;
        found.push((*id, job.state, job.attempts, job.cause));
    }
    let error = Some(Cause::Error);
    assert_eq!(
        found,
        [
            ("fails", State::Delayed, 1, error),
            ("rejoins", State::Delayed, 0, None),
            ("rejoins-at", State::Delayed, 1, error),
            ("rejoins-wrong", State::Delayed, 1, error),
            ("parks", State::Unacked, 0, None),
            ("undecided", State::Delayed, 0, None),
        ]
    );
    let due = |id: &'static str| {
        let dq = &dq;
        async move {
            match dq.job::<TestJob>(id).await.unwrap().place {
                dq::job::JobState::Delayed { due } => due.since(clock),
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!([due("rejoins").await, due("undecided").await, due("fails").await], [2 * MINUTE, 3 * MINUTE, HOUR]);
    assert!(dq.provider().ack::<TestJob>("parks").await.is_ok(), "a webhook can end it");
    let counters = dq.health().topics[0].counters;
    assert_eq!((counters.acked, counters.failed, counters.parked), (1, 3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_decision_counts_at_once_and_not_only_when_the_handler_returns() {
    let script = BatchScript::new(|batch| async move {
        batch.ack(&batch[0]);
        batch.rejoin_after(&batch[1], "1h");
        handler_takes(10 * SECOND).await;
        Ok(batch.rest().ack())
    });
    let dq = script.start(|topic| topic).await;
    add_all(&dq, ["a", "b", "c"]).await;
    dq.advance(SECOND).await;
    assert!(dq.job::<TestJob>("a").await.is_none(), "acked while the handler runs");
    assert_eq!(stored_job(&dq, "b").await.state, State::Delayed);
    assert_eq!(stored_job(&dq, "c").await.state, State::Running);
    let health = dq.health().topics.remove(0);
    assert_eq!((health.held, health.running), (1, 1));
    dq.advance(10 * SECOND).await;
    assert!(dq.job::<TestJob>("c").await.is_none());
    assert_eq!(dq.health().topics[0].running, 0);
}

#[tokio::test(start_paused = true)]
async fn the_first_decision_of_a_job_counts_and_a_batch_that_is_over_decides_nothing() {
    let kept = Arc::<Mutex<Option<Batch<TestJob>>>>::default();
    let keeps = kept.clone();
    let script = BatchScript::new(move |batch| {
        batch.rejoin_after(&batch[0], "1h");
        batch.ack(&batch[0]);
        *keeps.lock().unwrap() = Some(batch);
        async { Err("later".into()) }
    });
    let dq = script.start(|topic| topic.retry("1h")).await;
    add_all(&dq, ["a", "b"]).await;
    dq.settle().await;
    let batch = kept.lock().unwrap().take().unwrap();
    batch.iter().for_each(|job| batch.ack(job));
    dq.advance(SECOND).await;
    assert_eq!((stored_job(&dq, "a").await.attempts, stored_job(&dq, "b").await.attempts), (0, 1));
    assert_eq!(dq.health().topics[0].counters.acked, 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_batch_is_a_panic_that_fails_the_undecided() {
    let kept = Arc::<Mutex<Option<Batch<TestJob>>>>::default();
    let keeps = kept.clone();
    let script = BatchScript::new(move |batch| {
        let mut other = keeps.lock().unwrap();
        match other.take() {
            Some(other) => batch.ack(&other[0]),
            None => *other = Some(batch),
        }
        async { Ok(dq::testing::channel().park()) }
    });
    let dq = script.start(|topic| topic.retry("1h")).await;
    for id in ["a", "b"] {
        add_all(&dq, [id]).await;
        dq.settle().await;
    }
    let failed = stored_job(&dq, "b").await;
    assert_eq!((failed.state, failed.cause), (State::Delayed, Some(Cause::Panic)));
    assert!(failed.error.contains("the job `a` is not of this batch"), "{}", failed.error);
}

#[tokio::test(start_paused = true)]
async fn retry_delay_is_asked_for_each_job_with_its_own_number_of_failures() {
    let script = BatchScript::new(|batch| async move {
        if let Some(first) = batch.iter().find(|job| job.id == "early") {
            batch.fail(first, "early");
        }
        Err("late".into())
    });
    let script = script.retry_delay(|failed, failure| match (failed, failure.message.as_str()) {
        (1, "early") => RetryDelay::After(2 * HOUR),
        (1, _) => RetryDelay::After(MINUTE),
        _ => RetryDelay::Exhausted,
    });
    let dq = script.start(|topic| topic).await;
    add_all(&dq, ["early", "late"]).await;
    dq.provider().add(TestJob { id: "own".into() }).retry("10m").await.unwrap();
    dq.settle().await;
    dq.advance(2 * MINUTE).await;
    let mut attempts = Vec::new();
    for id in ["early", "late", "own"] {
        let job = stored_job(&dq, id).await;
        attempts.push((job.state, job.attempts));
    }
    assert_eq!(attempts, [(State::Delayed, 1), (State::Dead, 2), (State::Delayed, 1)]);
    assert!(script.log.take_without_times().contains(&"final late error".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn no_attempt_left_is_an_on_exhausted_for_each_job_alone() {
    let script = BatchScript::new(|_| async { Err("no".into()) });
    let dq = script.start(|topic| topic.retry("none").concurrency(1)).await;
    add_all(&dq, 0..10).await;
    dq.advance(SECOND).await;
    let mut lines = script.log.take_without_times();
    assert_eq!(lines.remove(0), "batch 0 1 2 3 4 5 6 7 8 9");
    lines.sort();
    assert_eq!(lines, (0..10).map(|id| format!("final {id} error")).collect::<Vec<_>>());
    assert_eq!(dq.counts::<TestJob>().await.dead, 10);
    assert_eq!(dq.health().topics[0].running, 0, "the permit is free again");
}

#[tokio::test(start_paused = true)]
async fn a_parked_job_that_nobody_ends_is_processed_alone() {
    let script = BatchScript::new(|batch| async { Ok(batch.rest().park()) });
    let dq = script.start(|topic| topic.park_timeout("1m")).await;
    add_all(&dq, ["a", "b"]).await;
    dq.advance(HOUR).await;
    let mut lines = script.log.take_without_times();
    lines.sort();
    assert_eq!(lines, ["aged a", "aged b", "batch a b"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_concerns_its_job_alone() {
    let script = BatchScript::new(|batch| async move {
        batch[1].cancelled().await;
        assert!(!batch[0].is_cancelled() && !batch[2].is_cancelled());
        handler_takes(MS).await;
        Ok(batch.rest().rejoin_after("1h"))
    });
    let dq = script.start(|topic| topic).await;
    add_all(&dq, ["a", "b", "c"]).await;
    dq.settle().await;
    let _ = dq.provider().cancel::<TestJob>("b").await.unwrap();
    dq.advance(SECOND).await;
    assert!(dq.job::<TestJob>("b").await.is_none());
    assert_eq!(dq.counts::<TestJob>().await.delayed, 2);
}
