//! A store that fails for a while: nothing is lost, nothing runs twice without need, nothing spins.

use std::sync::Arc;
use std::time::Duration;

use dq::config::TopicOverrides;
use dq::context::Condition;
use dq::job::State;
use dq::testing::Harness;
use dq_tests::{Fault, Faults};

use crate::idle::watched_store;
use crate::worker::{HOUR, MINUTE, MS, SECOND, Script, Work, kept, usual, work};

async fn node(script: &Script, settings: impl FnOnce(TopicOverrides) -> TopicOverrides) -> (Harness, Arc<Faults>) {
    let (store, faults) = watched_store();
    (Harness::start_on(store, 1, |factory| script.on(factory, settings)).await, faults)
}

/// Everything fails like this for a while; what a job that was due meanwhile says afterwards.
async fn outage(fault: Fault, length: Duration) {
    let script = Script::acks();
    let (dq, faults) = node(&script, usual).await;
    dq.provider().add(work("a")).after(SECOND).await.unwrap();
    faults.all(fault);
    let before = faults.asked_in_all();
    dq.advance(length).await;
    let asked = faults.asked_in_all() - before;
    assert!(asked < 20 + 3 * length.as_secs() as usize, "{fault:?}: nothing spins: {asked} requests");
    let health = dq.health();
    assert!(!health.ready && matches!(health.topics[0].condition, Condition::Recovering(_)), "{fault:?} {health:?}");
    faults.none();
    dq.advance(10 * SECOND).await;
    assert!(dq.health().ready, "{fault:?}");
    dq.advance(HOUR).await;
    assert!(dq.job::<Work>("a").await.is_none());
    let mut ran = script.log.take_whats();
    ran.dedup();
    assert_eq!(ran, ["due a 0"], "{fault:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_reached_is_tried_until_it_can() {
    outage(Fault::Unavailable, 10 * MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_is_tried_until_it_does_not() {
    outage(Fault::Refused, 10 * MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_given_up_and_tried_again() {
    outage(Fault::Lost, 10 * MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hears_and_cannot_be_heard_keeps_nothing_of_what_it_gave_out() {
    outage(Fault::AnswerLost, 10 * MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_transfer_is_sent_again_soon_and_not_after_the_fallback() {
    let script = Script::acks();
    let (dq, faults) = node(&script, usual).await;
    dq.advance(SECOND).await;
    faults.next("transfer", Fault::Refused);
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(SECOND).await;
    assert_eq!(script.log.take_whats(), ["due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_transfer_gives_back_what_was_swallowed() {
    let script = Script::acks();
    let (dq, faults) = node(&script, usual).await;
    dq.advance(SECOND).await;
    faults.next("transfer", Fault::AnswerLost);
    dq.provider().add(work("a")).await.unwrap();
    dq.settle().await;
    assert_eq!(kept(&dq, "a").await.state, State::Running, "the store thinks this node has it");
    dq.advance(3 * SECOND).await;
    assert_eq!(script.log.take_whats(), ["due a 0"], "once, soon after the request was given up");
    let counters = dq.health().topics[0].counters;
    assert_eq!((counters.rolled_back, counters.acked, counters.reconciled), (1, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_an_outcome_ends_in_agreement_and_no_second_run() {
    let script = Script::acks();
    let (dq, faults) = node(&script, usual).await;
    faults.next("settle", Fault::AnswerLost);
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take_whats(), ["due a 0"]);
    let topic = &dq.health().topics[0];
    assert_eq!((topic.held, topic.counters.stale_outcomes), (0, 0), "the refusal of one's own success is not stale");
}

#[tokio::test(start_paused = true)]
async fn outcomes_are_sent_until_the_store_has_judged_them() {
    let script = Script::acks();
    let (dq, faults) = node(&script, |topic| topic.concurrency(3)).await;
    faults.only("settle", Fault::Unavailable);
    dq.provider().add_many((0..3).map(work)).await.unwrap();
    dq.advance(10 * SECOND).await;
    assert_eq!(dq.health().topics[0].settling, 3);
    assert_eq!(dq.counts::<Work>().await.running, 3);
    faults.none();
    dq.advance(10 * SECOND).await;
    assert_eq!(script.log.take().len(), 3, "each ran once");
    let counts = dq.counts::<Work>().await;
    assert_eq!((counts.running, counts.delayed), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn one_outcome_that_cannot_be_settled_holds_back_no_other() {
    let script = Script::acks();
    let (dq, faults) = node(&script, usual).await;
    faults.next("settle", Fault::Unsettled);
    dq.provider().add_many((0..5).map(work)).await.unwrap();
    dq.settle().await;
    assert_eq!(dq.counts::<Work>().await.running, 1, "the one that could not");
    dq.provider().add(work("later")).await.unwrap();
    dq.settle().await;
    assert_eq!(dq.health().topics[0].counters.acked, 5);
    dq.advance(5 * SECOND).await;
    assert_eq!((dq.health().topics[0].counters.acked, dq.counts::<Work>().await.running), (6, 0));
    assert_eq!(script.log.take().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn handlers_are_cancelled_when_the_lease_cannot_be_renewed_and_finished_ones_are_settled() {
    let script = Script::new(|job, channel| async move {
        if job.id().as_str() == "quick" {
            crate::worker::handler_takes(5 * SECOND).await;
            return Ok(channel.ack());
        }
        tokio::spawn(job.cancelled());
        std::future::pending().await
    });
    let (dq, faults) = node(&script, |topic| topic.timeout("0s")).await;
    dq.provider().add(work("quick")).await.unwrap();
    dq.provider().add(work("slow")).await.unwrap();
    dq.advance(SECOND).await;
    faults.all(Fault::Unavailable);
    dq.advance(12 * SECOND).await;
    assert_eq!(dq.health().topics[0].counters.lease_lost, 0, "the lease is still good");
    dq.advance(SECOND + SECOND / 2).await;
    let topic = &dq.health().topics[0];
    assert_eq!((topic.counters.lease_lost, topic.running), (1, 0), "before it runs out for others");
    assert_eq!(topic.settling, 2, "the ack of the quick one is kept");
    faults.none();
    dq.advance(10 * SECOND).await;
    let lines = script.log.take_whats();
    assert_eq!(lines, ["due quick 0", "due slow 0", "due slow 0"], "the slow one runs again, the quick one is done");
    assert!(dq.job::<Work>("quick").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn no_handler_starts_without_a_good_lease() {
    let script = Script::new(|job, channel| async move {
        if job.id().as_str() >= "50" {
            std::future::pending::<()>().await;
        }
        crate::worker::handler_takes(10 * MS).await;
        Ok(channel.ack())
    });
    let (dq, faults) = node(&script, |topic| topic.timeout("0s").concurrency(4)).await;
    dq.provider().add_many((10..99).map(work)).await.unwrap();
    dq.advance(SECOND).await; // the fast ones are done; four hang, and some wait in hand for their permits
    assert_eq!(script.log.take().len(), 44);
    let topic = &dq.health().topics[0];
    assert!(topic.running == 4 && topic.waiting > 0, "{topic:?}");
    faults.all(Fault::Lost);
    dq.advance(HOUR).await;
    let topic = &dq.health().topics[0];
    assert_eq!((topic.running, topic.counters.lease_lost), (0, 4), "the lease is lost, the permits are free");
    assert!(script.log.take().is_empty(), "and nobody may use them");
    faults.none();
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_vanished_cancels_its_handler() {
    let script = Script::new(|job, _| async move {
        job.cancelled().await;
        Err("cancelled".into())
    });
    let (dq, faults) = node(&script, |topic| topic.timeout("0s")).await;
    let heir_script = Script::acks();
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(SECOND).await;
    // For this node the store is gone; the other one sees a dead node and takes its job.
    let heir = Harness::start_on(faults.below(), 2, |factory| heir_script.on(factory, usual)).await;
    faults.all(Fault::Lost);
    heir.advance(MINUTE).await;
    assert_eq!(heir_script.log.take_whats(), ["due a 0"]);
    faults.none();
    dq.advance(MINUTE).await;
    let topic = &dq.health().topics[0];
    assert_eq!((topic.held, topic.running), (0, 0));
    assert_eq!(script.log.take_whats(), ["due a 0"]);
    assert!(dq.job::<Work>("a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn adds_that_were_not_answered_are_unknown_and_safe_to_repeat() {
    let script = Script::acks();
    let (dq, faults) = node(&script, usual).await;
    faults.only("add", Fault::AnswerLost);
    let error = dq.provider().add(work("a")).after(HOUR).await.unwrap_err();
    assert!(matches!(error, dq::provider::AddError::Unknown { .. }), "{error}");
    faults.none();
    let again = dq.provider().add(work("a")).after(HOUR).keep_existing().await.unwrap();
    assert_eq!(again.how, dq::provider::Addition::Kept(State::Delayed));
    dq.advance(2 * HOUR).await;
    assert_eq!(script.log.take().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_an_outage_ends_and_others_take_the_jobs() {
    let script = Script::hangs();
    let (dq, faults) = node(&script, |topic| topic.timeout("0s")).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.settle().await;
    let heir_script = Script::acks();
    let heir = Harness::start_on(faults.below(), 2, |factory| heir_script.on(factory, usual)).await;
    faults.all(Fault::Lost);
    let start = tokio::time::Instant::now();
    let stopped = dq.shutdown(SECOND).await;
    assert_eq!(stopped.left, 1);
    assert!(start.elapsed() < 10 * SECOND, "{:?}", start.elapsed());
    heir.advance(MINUTE).await;
    assert_eq!(heir_script.log.take_whats(), ["due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_refused_is_sent_again() {
    let script = Script::acks();
    let (dq, faults) = node(&script, usual).await;
    faults.next("release", Fault::Refused);
    dq.shutdown(SECOND).await;
    assert_eq!(faults.asked("release"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_without_an_answer_is_asked_for_again() {
    let (store, faults) = watched_store();
    faults.only("signals", Fault::Lost);
    let script = Script::acks();
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, usual)).await;
    dq.advance(MINUTE).await;
    let asked = faults.asked("signals");
    assert!((10..60).contains(&asked), "{asked}");
    faults.none();
    dq.advance(5 * SECOND).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(MS).await;
    assert_eq!(script.log.take_whats(), ["due a 0"], "it hears again");
}

#[tokio::test(start_paused = true)]
async fn jobs_that_fail_together_are_exhausted_without_a_round_trip_each() {
    let script = Script::new(|_, _| async { Err("no".into()) });
    let (dq, faults) = node(&script, |topic| topic.retry("none").concurrency(64)).await;
    faults.only("exhaust", Fault::Lost);
    for n in 0..40 {
        dq.provider().add(work(format!("job{n}"))).after(SECOND).await.unwrap();
    }
    dq.advance(2 * SECOND).await;
    assert_eq!(faults.asked("exhaust"), 32, "none is answered yet, and more are not under way at once");
    faults.none();
    dq.advance(MINUTE).await;
    let counts = dq.counts::<Work>().await;
    assert_eq!((counts.dead, counts.running), (40, 0));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_exhausted_jobs_is_not_asked_in_a_spin() {
    let script = Script::new(|_, _| async { Err("no".into()) });
    let (dq, faults) = node(&script, |topic| topic.retry("none").concurrency(64)).await;
    faults.only("exhaust", Fault::Refused);
    for n in 0..40 {
        dq.provider().add(work(format!("job{n}"))).after(SECOND).await.unwrap();
    }
    dq.advance(MINUTE).await;
    assert!(faults.asked("exhaust") < 32 * 150, "{}", faults.asked("exhaust"));
    faults.none();
    dq.advance(MINUTE).await;
    assert_eq!(dq.counts::<Work>().await.dead, 40);
}
