//! A batch that ends otherwise than by returning: a panic, a timeout, a shutdown, a lost lease.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use dq::job::{Cause, State};
use dq_tests::Fault;

use super::{BatchScript, add_all};
use crate::scripted_listener::{HOUR, MINUTE, SECOND, TestJob, faulty_store, handler_takes, stored_job};

/// Acks `a`, lets `b` fail, and goes on as `then` says.
fn decides_two(then: fn() -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>) -> BatchScript {
    BatchScript::new(move |batch| async move {
        for job in &batch {
            match job.id.as_str() {
                "a" => batch.ack(job),
                "b" => batch.fail(job, "early"),
                _ => {}
            }
        }
        then().await;
        Ok(batch.rest().ack())
    })
}

/// State, attempts and cause of `b`, `c` and `d`; `a` must be gone.
async fn found(dq: &dq::testing::Harness) -> Vec<(State, u16, Option<Cause>)> {
    assert!(dq.job::<TestJob>("a").await.is_none(), "the ack counted");
    let mut found = Vec::new();
    for id in ["b", "c", "d"] {
        let job = stored_job(dq, id).await;
        found.push((job.state, job.attempts, job.cause));
    }
    found
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_the_jobs_that_were_not_decided() {
    let script = decides_two(|| Box::pin(async { panic!("in the middle") }));
    let dq = script.start(|topic| topic.retry("1h")).await;
    add_all(&dq, ["a", "b", "c", "d"]).await;
    dq.settle().await;
    let panicked = (State::Delayed, 1, Some(Cause::Panic));
    assert_eq!(found(&dq).await, [(State::Delayed, 1, Some(Cause::Error)), panicked, panicked]);
    assert_eq!(dq.health().topics[0].running, 0);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_fails_the_jobs_that_were_not_decided_and_ends_the_handler() {
    let script = decides_two(|| Box::pin(pending()));
    let dq = script.start(|topic| topic.retry("1h").timeout("5s").concurrency(1)).await;
    add_all(&dq, ["a", "b", "c", "d"]).await;
    dq.advance(6 * SECOND).await;
    let timed_out = (State::Delayed, 1, Some(Cause::Timeout));
    assert_eq!(found(&dq).await, [(State::Delayed, 1, Some(Cause::Error)), timed_out, timed_out]);
    let health = dq.health().topics.remove(0);
    assert_eq!((health.running, health.held, health.counters.timed_out), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_jobs_are_all_decided_still_times_out() {
    let script = BatchScript::new(|batch| async move {
        batch.iter().for_each(|job| batch.ack(job));
        pending().await
    });
    let dq = script.start(|topic| topic.timeout("5s").concurrency(1)).await;
    add_all(&dq, ["a", "b"]).await;
    dq.advance(SECOND).await;
    let health = dq.health().topics.remove(0);
    assert_eq!((health.running, health.held, health.counters.acked), (1, 0, 2), "it keeps its permit");
    dq.advance(5 * SECOND).await;
    assert_eq!(dq.health().topics[0].running, 0);
    add_all(&dq, ["c"]).await;
    dq.settle().await;
    assert_eq!(script.batches().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_does_not_decode_fails_alone_and_the_batch_runs_without_it() {
    let script = BatchScript::acks();
    let dq = script.start(|topic| topic.retry("1h").concurrency(1)).await;
    let topic = dq.provider().topic("work").unwrap();
    add_all(&dq, ["busy"]).await;
    dq.settle().await;
    for (id, json) in [("a", r#"{"id": "a"}"#), ("bad", r#"{"what": 1}"#), ("c", r#"{"id": "c"}"#)] {
        topic.add_json(json).id(id).after("1s").await.unwrap();
    }
    dq.advance(2 * SECOND).await;
    assert_eq!(script.batches(), [vec!["busy"], vec!["a", "c"]]);
    let dead = dq.provider().dead::<TestJob>().next_page().await.unwrap().unwrap();
    assert_eq!((dead.len(), dead[0].id.as_str()), (1, "bad"));
    assert_eq!(dead[0].details.as_ref().unwrap().cause, Some(Cause::Decode));
    assert_eq!(dq.counts::<TestJob>().await.running, 0);
    topic.add_json(r#"{"what": 1}"#).id("bad alone").await.unwrap();
    dq.settle().await;
    assert_eq!(script.batches().len(), 0, "no call without a job");
    assert_eq!(dq.counts::<TestJob>().await.dead, 2);
}

stores!(a_shutdown_in_the_middle_keeps_what_was_decided_and_gives_the_rest_back: memory, file, redis);
async fn a_shutdown_in_the_middle_keeps_what_was_decided_and_gives_the_rest_back() {
    let script = decides_two(|| Box::pin(pending()));
    let dq = script.start(|topic| topic.retry("1h").timeout("0s")).await;
    let observer = dq.another(9, |factory| factory.without_listeners()).await;
    add_all(&dq, ["a", "b", "c", "d"]).await;
    dq.advance(SECOND).await;
    let stopped = dq.shutdown(10 * SECOND).await;
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
    let back = (State::Delayed, 0, None);
    assert_eq!(found(&observer).await, [(State::Delayed, 1, Some(Cause::Error)), back, back]);
}

stores!(a_node_that_loses_its_lease_cancels_the_batch_and_no_outcome_of_it_counts_twice: memory, file, redis);
async fn a_node_that_loses_its_lease_cancels_the_batch_and_no_outcome_of_it_counts_twice() {
    let calls = Arc::<AtomicUsize>::default();
    let counted = calls.clone();
    let script = BatchScript::new(move |batch| {
        let is_first = counted.fetch_add(1, Relaxed) == 0;
        async move {
            batch.ack(&batch[0]);
            if is_first {
                handler_takes(HOUR).await;
            }
            Ok(batch.rest().ack())
        }
    });
    let (store, faulty) = faulty_store();
    let dq = dq::testing::Harness::start_on(store, 1, |factory| script.on(factory, |topic| topic.timeout("0s"))).await;
    add_all(&dq, ["a", "b", "c"]).await;
    dq.advance(SECOND).await;
    faulty.fail_all(Fault::Lost);
    dq.advance(MINUTE).await;
    faulty.clear();
    dq.advance(2 * MINUTE).await;
    let counters = dq.health().topics[0].counters;
    assert_eq!((counters.lease_lost, counters.acked, calls.load(Relaxed)), (2, 3, 2));
    let counts = dq.counts::<TestJob>().await;
    assert_eq!((counts.delayed, counts.running, counts.dead), (0, 0, 0));
}
