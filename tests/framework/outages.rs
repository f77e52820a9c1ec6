//! Outages of the store: no job is lost, none runs twice without need, and no request is retried in a tight loop.

use std::sync::Mutex;
use std::time::Duration;

use dq::config::TopicOverrides;
use dq::context::Condition;
use dq::job::State;
use dq::listener::AckMode;
use dq::testing::Harness;
use dq_tests::Fault;

use crate::scripted_listener::{
    HOUR, MINUTE, MS, SECOND, Script, TestJob, default_settings, faulty_store, stored_job, test_job,
};

/// Lets every request fail for `length`, and checks that a job that is due meanwhile runs afterwards.
async fn outage(fault: Fault, length: Duration) {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    dq.provider().add(test_job("a")).after(SECOND).await.unwrap();
    faults.fail_all(fault);
    let before = faults.requests();
    dq.advance(length).await;
    let asked = faults.requests() - before;
    let most = 20 + 3 * length.as_secs() as usize;
    assert!((1..most).contains(&asked), "{fault:?}: too many retries, or none: {asked} requests");
    let health = dq.health();
    let Condition::Recovering(text) = &health.topics[0].condition else { panic!("{fault:?} {health:?}") };
    let told = !matches!(fault, Fault::Unavailable) || text.contains("a fault of the test");
    assert!(!health.ready && told, "{fault:?} {health:?}");
    faults.clear();
    dq.advance(10 * SECOND).await;
    assert!(dq.health().ready, "{fault:?}");
    dq.advance(HOUR).await;
    assert!(dq.job::<TestJob>("a").await.is_none());
    let mut ran = script.log.take_without_times();
    ran.dedup();
    assert_eq!(ran, ["due a 0"], "{fault:?}");
}

stores!(a_store_that_fails_is_asked_again_until_it_works_and_the_node_reports_it: memory, file, redis);
async fn a_store_that_fails_is_asked_again_until_it_works_and_the_node_reports_it() {
    for fault in [Fault::Unavailable, Fault::Refused, Fault::Lost, Fault::AnswerLost] {
        outage(fault, 10 * MINUTE).await;
    }
}

stores!(a_refused_transfer_is_retried_before_the_fallback: memory, file, redis);
async fn a_refused_transfer_is_retried_before_the_fallback() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    dq.advance(SECOND).await;
    faults.fail_next("transfer", Fault::Refused);
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
}

stores!(a_job_in_a_lost_transfer_answer_is_rolled_back_and_runs_once: memory, file, redis);
async fn a_job_in_a_lost_transfer_answer_is_rolled_back_and_runs_once() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    dq.advance(SECOND).await;
    faults.fail_next("transfer", Fault::AnswerLost);
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    assert_eq!(stored_job(&dq, "a").await.state, State::Running, "the store counts the job as claimed by this node");
    dq.advance(3 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"], "once, soon after the request timed out");
    let counters = dq.health().topics[0].counters;
    assert_eq!((counters.rolled_back, counters.acked, counters.reconciled), (1, 1, 2));
}

stores!(a_lost_answer_to_a_settle_causes_no_second_run: memory, file, redis);
async fn a_lost_answer_to_a_settle_causes_no_second_run() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    faults.fail_next("settle", Fault::AnswerLost);
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    let topic = &dq.health().topics[0];
    assert_eq!(
        (topic.held, topic.counters.stale_outcomes),
        (0, 0),
        "a repeat of a settled outcome does not count as stale"
    );
}

/// Lets the first outcome take effect without an answer. Its repeat arrives before the node has learned that its row is gone.
async fn an_outcome_is_repeated(settings: impl FnOnce(TopicOverrides) -> TopicOverrides) -> (Script, Harness) {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(settings).await;
    let settled = Mutex::new(0);
    faults.fail_when(move |step| {
        let mut settled = settled.lock().unwrap();
        *settled += usize::from(step == "settle");
        match (step, *settled) {
            ("settle", 1) => Some(Fault::AnswerLost),
            ("reconcile", 1) => Some(Fault::Refused),
            _ => None,
        }
    });
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(faults.requests_for("settle"), 2);
    assert!(dq.job::<TestJob>("a").await.is_none());
    (script, dq)
}

stores!(a_repeated_outcome_that_is_refused_is_unknown_and_not_stale: memory, file, redis);
async fn a_repeated_outcome_that_is_refused_is_unknown_and_not_stale() {
    let (script, dq) = an_outcome_is_repeated(default_settings).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    let topic = &dq.health().topics[0];
    assert_eq!((topic.held, topic.counters.stale_outcomes), (0, 0), "the refusal of the node's own success");
}

stores!(a_handler_does_not_start_if_it_is_unknown_whether_its_ack_on_claim_counted: memory, file, redis);
async fn a_handler_does_not_start_if_it_is_unknown_whether_its_ack_on_claim_counted() {
    let (script, dq) = an_outcome_is_repeated(|topic| topic.ack(AckMode::OnClaim)).await;
    assert!(script.log.take().is_empty());
    let topic = &dq.health().topics[0];
    assert_eq!((topic.held, topic.counters.stale_outcomes), (0, 0));
}

stores!(outcomes_are_resent_until_the_store_answers: memory, file, redis);
async fn outcomes_are_resent_until_the_store_answers() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(|topic| topic.concurrency(3)).await;
    faults.fail_only("settle", Fault::Unavailable);
    dq.provider().add_many((0..3).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(10 * SECOND).await;
    assert_eq!(dq.health().topics[0].settling, 3);
    assert_eq!(dq.counts::<TestJob>().await.running, 3);
    faults.clear();
    dq.advance(10 * SECOND).await;
    assert_eq!(script.log.take().len(), 3, "each ran once");
    let counts = dq.counts::<TestJob>().await;
    assert_eq!((counts.running, counts.delayed), (0, 0));
}

stores!(one_outcome_that_cannot_be_settled_delays_no_other: memory, file, redis);
async fn one_outcome_that_cannot_be_settled_delays_no_other() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    faults.fail_next("settle", Fault::Unsettled);
    dq.provider().add_many((0..5).map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    assert_eq!(dq.counts::<TestJob>().await.running, 1, "the one that could not be settled");
    dq.provider().add(test_job("later")).await.unwrap();
    dq.settle().await;
    assert_eq!(dq.health().topics[0].counters.acked, 5);
    dq.advance(5 * SECOND).await;
    assert_eq!((dq.health().topics[0].counters.acked, dq.counts::<TestJob>().await.running), (6, 0));
    assert_eq!(script.log.take().len(), 6);
}

stores!(handlers_are_cancelled_when_the_lease_cannot_be_renewed_and_finished_ones_are_settled: memory, file, redis);
async fn handlers_are_cancelled_when_the_lease_cannot_be_renewed_and_finished_ones_are_settled() {
    let script = Script::new(|job, channel| async move {
        if job.id().as_str() == "quick" {
            crate::scripted_listener::handler_takes(5 * SECOND).await;
            return Ok(channel.ack());
        }
        tokio::spawn(job.cancelled());
        std::future::pending().await
    });
    let (dq, faults) = script.on_faulty(|topic| topic.timeout("0s")).await;
    dq.provider().add(test_job("quick")).await.unwrap();
    dq.provider().add(test_job("slow")).await.unwrap();
    dq.advance(SECOND).await;
    faults.fail_all(Fault::Unavailable);
    dq.advance(12 * SECOND).await;
    assert_eq!(dq.health().topics[0].counters.lease_lost, 0, "the lease is still valid");
    dq.advance(SECOND + SECOND / 2).await;
    let topic = &dq.health().topics[0];
    assert_eq!((topic.counters.lease_lost, topic.running), (1, 0), "before the lease expires for other nodes");
    assert_eq!(topic.settling, 2, "the ack of the quick one is kept");
    faults.clear();
    dq.advance(10 * SECOND).await;
    let lines = script.log.take_without_times();
    assert_eq!(lines, ["due quick 0", "due slow 0", "due slow 0"], "the slow one runs again, the quick one is done");
    assert!(dq.job::<TestJob>("quick").await.is_none());
}

stores!(no_handler_starts_without_a_valid_lease: memory, file, redis);
async fn no_handler_starts_without_a_valid_lease() {
    let script = Script::new(|job, channel| async move {
        if job.id().as_str() >= "50" {
            std::future::pending::<()>().await;
        }
        crate::scripted_listener::handler_takes(10 * MS).await;
        Ok(channel.ack())
    });
    let (dq, faults) = script.on_faulty(|topic| topic.timeout("0s").concurrency(4)).await;
    dq.provider().add_many((10..99).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(SECOND).await; // the fast jobs are done; four hang, and some wait for a permit
    assert_eq!(script.log.take().len(), 44);
    let topic = &dq.health().topics[0];
    assert!(topic.running == 4 && topic.waiting > 0, "{topic:?}");
    faults.fail_all(Fault::Lost);
    dq.advance(HOUR).await;
    let topic = &dq.health().topics[0];
    assert_eq!((topic.running, topic.counters.lease_lost), (0, 4), "the lease is lost, the permits are free");
    assert!(script.log.take().is_empty(), "without a lease no handler may start");
    faults.clear();
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take().len(), 4);
}

stores!(a_handler_is_cancelled_when_its_row_is_gone: memory, file, redis);
async fn a_handler_is_cancelled_when_its_row_is_gone() {
    let script = Script::new(|job, _| async move {
        job.cancelled().await;
        Err("cancelled".into())
    });
    let (dq, faults) = script.on_faulty(|topic| topic.timeout("0s")).await;
    let successor_script = Script::acks();
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    // This node cannot reach the store. The other node sees its lease expire and reclaims its job.
    let successor =
        Harness::start_on(faults.inner(), 2, |factory| successor_script.on(factory, default_settings)).await;
    faults.fail_all(Fault::Lost);
    successor.advance(MINUTE).await;
    assert_eq!(successor_script.log.take_without_times(), ["due a 0"]);
    faults.clear();
    dq.advance(MINUTE).await;
    let topic = &dq.health().topics[0];
    assert_eq!((topic.held, topic.running), (0, 0));
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    assert!(dq.job::<TestJob>("a").await.is_none());
}

stores!(unanswered_adds_are_unknown_and_safe_to_repeat: memory, file, redis);
async fn unanswered_adds_are_unknown_and_safe_to_repeat() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    faults.fail_only("add", Fault::AnswerLost);
    let error = dq.provider().add(test_job("a")).after(HOUR).await.unwrap_err();
    assert!(matches!(error, dq::provider::CallError::Unknown { .. }), "{error}");
    faults.clear();
    let again = dq.provider().add(test_job("a")).after(HOUR).keep_existing().await.unwrap();
    assert_eq!(again.how, dq::provider::AddedHow::Kept(State::Delayed));
    dq.advance(2 * HOUR).await;
    assert_eq!(script.log.take().len(), 1);
}

stores!(a_shutdown_during_an_outage_ends_and_another_node_reclaims_the_jobs: memory, file, redis);
async fn a_shutdown_during_an_outage_ends_and_another_node_reclaims_the_jobs() {
    let script = Script::hangs();
    let (dq, faults) = script.on_faulty(|topic| topic.timeout("0s")).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    let successor_script = Script::acks();
    let successor =
        Harness::start_on(faults.inner(), 2, |factory| successor_script.on(factory, default_settings)).await;
    faults.fail_all(Fault::Lost);
    let start = tokio::time::Instant::now();
    let stopped = dq.shutdown(SECOND).await;
    assert_eq!(stopped.left, 1);
    assert!((SECOND..10 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());
    successor.advance(MINUTE).await;
    assert_eq!(successor_script.log.take_without_times(), ["due a 0"]);
}

stores!(a_release_that_is_refused_is_sent_again: memory, file, redis);
async fn a_release_that_is_refused_is_sent_again() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    faults.fail_next("release", Fault::Refused);
    dq.shutdown(SECOND).await;
    assert_eq!(faults.requests_for("release"), 2);
}

stores!(an_unanswered_subscription_is_requested_again: memory, file, redis);
async fn an_unanswered_subscription_is_requested_again() {
    let (store, faults) = faulty_store();
    faults.fail_only("signals", Fault::Lost);
    let script = Script::acks();
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, default_settings)).await;
    dq.advance(MINUTE).await;
    let asked = faults.requests_for("signals");
    assert!((10..60).contains(&asked), "{asked}");
    faults.clear();
    dq.advance(5 * SECOND).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(MS).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"], "the node receives signals again");
}

stores!(jobs_that_fail_together_are_exhausted_by_few_requests_at_once_and_in_no_tight_loop: memory, file, redis);
async fn jobs_that_fail_together_are_exhausted_by_few_requests_at_once_and_in_no_tight_loop() {
    // No more than 32 may be in flight at once, and a lost one is not answered yet.
    for (fault, time, requests) in [(Fault::Lost, 2 * SECOND, 32..33), (Fault::Refused, MINUTE, 40..32 * 150)] {
        let (dq, faults) = Script::fails("no").on_faulty(|topic| topic.retry("none").concurrency(64)).await;
        faults.fail_only("exhaust", fault);
        for n in 0..40 {
            dq.provider().add(test_job(format!("job{n}"))).after(SECOND).await.unwrap();
        }
        dq.advance(time).await;
        let asked = faults.requests_for("exhaust");
        assert!(requests.contains(&asked), "{fault:?}: {asked}");
        faults.clear();
        dq.advance(MINUTE).await;
        let counts = dq.counts::<TestJob>().await;
        assert_eq!((counts.dead, counts.running), (40, 0), "{fault:?}");
    }
}

stores!(jobs_pass_a_link_that_carries_only_one_of_them_in_time: memory, file, redis);
async fn jobs_pass_a_link_that_carries_only_one_of_them_in_time() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    for n in 0..40 {
        dq.provider().add(TestJob { id: "x".repeat(10_000) }).id(n).after(SECOND).await.unwrap();
    }
    faults.carry_at_most(15_000);
    dq.advance(2 * MINUTE).await;
    let mut ran = script.log.take_without_times();
    ran.sort();
    let mut wanted: Vec<_> = (0..40).map(|n| format!("due {n} 0")).collect();
    wanted.sort();
    assert_eq!(ran, wanted, "each once");
    let reconciles = faults.requests_for("reconcile");
    assert!((2..30).contains(&reconciles), "it does not go on asking for too much: {faults:?}");
}
