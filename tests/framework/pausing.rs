//! Pausing and draining a topic.

use dq::job::State;
use dq::listener::AckMode;
use dq::provider::{CallError, Invalid, Refusal};
use dq::schedule::OnMissed;
use dq::testing::Harness;
use dq_tests::Fault;

use crate::scripted_listener::{
    DAY, HOUR, MINUTE, MS, SECOND, Script, TestJob, default_settings, handler_takes, stored_job, test_job,
};

async fn pause(dq: &Harness) {
    dq.provider().pause::<TestJob>().reason("the bank is down").by("anna").await.unwrap();
}

async fn resume(dq: &Harness) {
    dq.provider().resume::<TestJob>().await.unwrap();
}

stores!(a_paused_topic_starts_no_job_and_goes_on_after_a_resume: memory, file, redis);
async fn a_paused_topic_starts_no_job_and_goes_on_after_a_resume() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    dq.advance(SECOND).await;
    pause(&dq).await;
    for id in ["a", "b"] {
        dq.provider().add(test_job(id)).await.unwrap();
    }
    dq.advance(HOUR).await;
    assert_eq!(script.log.take(), [""; 0]);
    let health = dq.health();
    let paused = health.topics[0].pause.as_ref().expect("health names the pause");
    assert_eq!((paused.reason.as_str(), paused.by.as_str(), paused.until), ("the bank is down", "anna", None));
    assert!(health.ready, "it works, and somebody paused it");
    assert_eq!(serde_json::to_value(&health).unwrap()["topics"][0]["pause"]["by"], "anna");
    resume(&dq).await;
    dq.advance(MS).await;
    assert_eq!(script.log.take_without_times().len(), 2);
    assert_eq!(dq.health().topics[0].pause, None);
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_of_a_paused_topic_asks_no_more_than_any_idle_node() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    pause(&dq).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    let before = faults.requests_for("transfer");
    dq.advance(10 * MINUTE).await;
    let transfers = faults.requests_for("transfer") - before;
    assert!((40..=50).contains(&transfers), "{transfers} in ten minutes: one a fallback scan of 15 s");
}

stores!(what_was_claimed_and_did_not_begin_goes_back_without_an_attempt: memory, file, redis);
async fn what_was_claimed_and_did_not_begin_goes_back_without_an_attempt() {
    let script = Script::takes(10 * MS);
    let dq = script.start(|topic| topic.concurrency(1)).await;
    let jobs = (0..60).map(|n| test_job(format!("{n:02}")));
    dq.provider().add_many(jobs).await.unwrap().all().unwrap();
    dq.advance(205 * MS).await;
    let held = dq.health().topics[0].held;
    assert!(held > 1, "it claims ahead, or the test shows nothing: {held}");
    pause(&dq).await;
    dq.advance(MINUTE).await;
    let topic = dq.health().topics.remove(0);
    assert_eq!((topic.held, topic.running), (0, 0));
    assert!(topic.counters.rolled_back > 0, "{:?}", topic.counters);
    let ran = script.log.take_without_times();
    assert_eq!(ran.len() as u64, topic.counters.acked, "the handler that ran was acked, and none began behind it");
    assert!((19..=22).contains(&ran.len()), "{}", ran.len());
    resume(&dq).await;
    dq.advance(MINUTE).await;
    let mut all = [ran, script.log.take_without_times()].concat();
    all.sort();
    assert_eq!(
        all,
        (0..60).map(|n| format!("due {n:02} 0")).collect::<Vec<_>>(),
        "each ran once, with all its attempts"
    );
}

stores!(an_old_answer_does_not_end_a_pause: memory, file, redis);
/// The answer to a transfer that left before the pause comes behind its signal, and says nothing of it.
async fn an_old_answer_does_not_end_a_pause() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    dq.advance(SECOND).await;
    faults.fail_when(|step| (step == "transfer").then_some(Fault::AnsweredAfter(50 * MS)));
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(10 * MS).await;
    pause(&dq).await;
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take(), [""; 0]);
    let topic = dq.health().topics.remove(0);
    assert_eq!((topic.counters.claimed, topic.counters.rolled_back), (1, 1), "it was claimed before the pause");
    resume(&dq).await;
    dq.advance(SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_running_handler_ends_as_usual_and_its_retry_waits() {
    let script = Script::new(|job, channel| async move {
        handler_takes(10 * SECOND).await;
        if job.attempt() == 0 && job.id().as_str() == "fails" { Err("no".into()) } else { Ok(channel.ack()) }
    });
    let dq = script.start(|topic| topic.retry("1s x 3")).await;
    for id in ["acks", "fails"] {
        dq.provider().add(test_job(id)).await.unwrap();
    }
    dq.advance(SECOND).await;
    pause(&dq).await;
    dq.advance(MINUTE).await;
    assert!(dq.job::<TestJob>("acks").await.is_none());
    let job = stored_job(&dq, "fails").await;
    assert_eq!((job.state, job.attempts), (State::Delayed, 1));
    script.log.take();
    resume(&dq).await;
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take_without_times(), ["due fails 1"]);
}

stores!(an_on_exhausted_stays_owed_over_a_pause: memory, file, redis);
async fn an_on_exhausted_stays_owed_over_a_pause() {
    let script = Script::new(|_, _| async {
        handler_takes(10 * SECOND).await;
        Err("no".into())
    });
    let dq = script.lives(|topic| topic.retry("none"), SECOND).await;
    pause(&dq).await;
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    assert_eq!(stored_job(&dq, "a").await.state, State::Delayed);
    resume(&dq).await;
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take_without_times(), ["final a 1 error"]);
    assert_eq!(stored_job(&dq, "a").await.state, State::Dead);
}

#[tokio::test(start_paused = true)]
async fn aged_parked_jobs_wait_for_the_end_of_a_pause() {
    let script = Script::parks();
    let dq = script.lives(|topic| topic.park_timeout("1d"), HOUR).await;
    pause(&dq).await;
    dq.advance(3 * DAY).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    assert_eq!(stored_job(&dq, "a").await.state, State::Unacked);
    assert_eq!(dq.health().topics[0].counters.claimed, 1, "no sweep claimed it to give it back");
    resume(&dq).await;
    dq.advance(HOUR).await;
    assert_eq!(script.log.take_without_times(), ["aged a 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_acked_on_claim_runs_in_spite_of_a_pause() {
    for offset in 0..12 {
        let script = Script::takes(10 * MS);
        let dq = script.start(|topic| topic.ack(AckMode::OnClaim).concurrency(2)).await;
        let jobs = (0..60).map(|n| test_job(format!("{n:02}")));
        dq.provider().add_many(jobs).await.unwrap().all().unwrap();
        dq.advance(100 * MS + offset * MS).await;
        pause(&dq).await;
        dq.advance(MINUTE).await;
        let (ran, waiting) = (script.log.take().len(), dq.counts::<TestJob>().await.delayed);
        assert!(ran >= 18 && waiting > 0, "{ran} ran, {waiting} wait");
        assert_eq!(ran + waiting, 60, "none is lost");
    }
}

stores!(ticks_that_a_pause_or_a_drain_held_up_follow_the_policy_of_their_schedule: memory, file, redis);
async fn ticks_that_a_pause_or_a_drain_held_up_follow_the_policy_of_their_schedule() {
    for (on_missed, expected) in [(OnMissed::Skip, 0), (OnMissed::Once, 1), (OnMissed::All, 5)] {
        for drains in [false, true] {
            let script = Script::acks();
            let dq = script.start(default_settings).await;
            let jobs = dq.provider();
            let set = jobs.add_schedule("s", test_job("a")).every("10m").on_missed(on_missed).await.unwrap();
            let now = jobs.counts::<TestJob>().await.unwrap().clock;
            dq.advance(set.first.since(now) + 5 * MINUTE).await;
            assert_eq!(script.log.take().len(), 1);
            if drains {
                jobs.drain::<TestJob>().reason("why").await.unwrap();
            } else {
                pause(&dq).await;
            }
            dq.advance(50 * MINUTE).await;
            assert_eq!(script.log.take(), [""; 0]);
            if drains {
                jobs.undrain::<TestJob>().await.unwrap();
            } else {
                resume(&dq).await;
            }
            dq.advance(MINUTE).await;
            assert_eq!(script.log.take().len(), expected, "{on_missed:?}, drains: {drains}");
        }
    }
}

stores!(a_pause_ends_by_itself_at_its_time_on_every_node: memory, file, redis);
async fn a_pause_ends_by_itself_at_its_time_on_every_node() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    let other = script.beside(&dq, 2, default_settings).await;
    dq.advance(SECOND).await;
    let set = dq.provider().pause::<TestJob>().reason("a deployment").for_duration("90s").await.unwrap();
    let now = set.now.unwrap();
    assert_eq!(now.until.unwrap().since(now.since), 90 * SECOND);
    assert!(!now.by.is_empty(), "the process is the author");
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(89 * SECOND).await;
    assert_eq!(script.log.take(), [""; 0]);
    assert!(dq.health().topics[0].pause.is_some() && other.health().topics[0].pause.is_some());
    dq.advance(SECOND + 5 * MS).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    assert_eq!((&dq.health().topics[0].pause, &other.health().topics[0].pause), (&None, &None));
}

stores!(a_lost_signal_is_repaired_within_the_fallback: memory, file, redis);
async fn a_lost_signal_is_repaired_within_the_fallback() {
    let script = Script::takes(HOUR);
    let (dq, faults) = script.on_faulty(|topic| topic.concurrency(1).timeout("0s")).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    faults.lose_signals();
    pause(&dq).await;
    dq.advance(20 * SECOND).await;
    dq.provider().add(test_job("b")).await.unwrap();
    dq.advance(2 * HOUR).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    resume(&dq).await;
    dq.advance(20 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due b 0"]);
}

stores!(a_full_node_that_missed_the_signal_gives_back_what_waits_within_the_fallback: memory, file, redis);
async fn a_full_node_that_missed_the_signal_gives_back_what_waits_within_the_fallback() {
    let script = Script::new(|job, channel| async move {
        handler_takes(if job.id().as_str() < "20" { 10 * MS } else { HOUR }).await;
        Ok(channel.ack())
    });
    let (dq, faults) = script.on_faulty(|topic| topic.concurrency(1).timeout("0s")).await;
    dq.provider().add_many((0..60).map(|n| test_job(format!("{n:02}")))).await.unwrap().all().unwrap();
    dq.advance(SECOND).await;
    assert!(dq.health().topics[0].held > 1, "jobs wait behind the long one, or the test shows nothing");
    faults.lose_signals();
    pause(&dq).await;
    dq.advance(MINUTE).await;
    assert_eq!(dq.health().topics[0].held, 1, "what did not begin went back");
    script.log.take();
    dq.advance(3 * HOUR).await;
    assert_eq!(script.log.take(), [""; 0], "nothing began when the long one had ended");
}

stores!(a_paused_topic_stops_cleanly_and_stays_paused: memory, file, redis);
async fn a_paused_topic_stops_cleanly_and_stays_paused() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    let other = script.beside(&dq, 2, default_settings).await;
    pause(&dq).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    let stopped = dq.shutdown(MINUTE).await;
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
    let third = script.beside(&other, 3, default_settings).await;
    third.advance(HOUR).await;
    assert_eq!(script.log.take(), [""; 0]);
    assert!(third.health().topics[0].pause.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_pause_needs_a_reason_and_texts_within_their_limits() {
    let dq = Script::acks().start(default_settings).await;
    let jobs = dq.provider();
    for error in [
        jobs.pause::<TestJob>().await.unwrap_err(),
        jobs.pause::<TestJob>().reason("  ").await.unwrap_err(),
        jobs.drain::<TestJob>().await.unwrap_err(),
    ] {
        assert!(matches!(error, CallError::Invalid(Invalid::NoReason { .. })), "{error}");
    }
    let long = jobs.pause::<TestJob>().reason("x".repeat(1_025)).await.unwrap_err();
    assert!(matches!(long, CallError::Invalid(Invalid::TooLarge { size: 1_025, limit: 1_024, .. })), "{long}");
    let author = jobs.drain::<TestJob>().reason("why").by("x".repeat(257)).await.unwrap_err();
    assert!(matches!(author, CallError::Invalid(Invalid::TooLarge { size: 257, limit: 256, .. })), "{author}");
    let lasting = jobs.pause::<TestJob>().reason("why").for_duration("soon").await.unwrap_err();
    assert!(matches!(lasting, CallError::Invalid(Invalid::BadDuration { field: "lasting", .. })), "{lasting}");
    assert_eq!(jobs.topic_state::<TestJob>().await.unwrap(), dq::provider::TopicState::default());
}

stores!(a_pause_without_an_answer_is_repeated_and_then_unknown: memory, file, redis);
async fn a_pause_without_an_answer_is_repeated_and_then_unknown() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    faults.fail_next("set", Fault::AnswerLost);
    let answer = dq.provider().pause::<TestJob>().reason("why").await.unwrap();
    assert_eq!((answer.before, answer.now.is_some()), (None, true), "the repeat says what the call found");
    faults.fail_only("set", Fault::Lost);
    let error = dq.provider().resume::<TestJob>().within("5s").await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    faults.fail_only("set", Fault::Refused);
    let error = dq.provider().resume::<TestJob>().within("5s").await.unwrap_err();
    assert!(matches!(error, CallError::NotDone { .. }), "{error}");
}

stores!(a_drain_keeps_its_place_among_the_adds_of_its_provider: memory, file, redis);
async fn a_drain_keeps_its_place_among_the_adds_of_its_provider() {
    let dq = Script::acks().start(default_settings).await;
    let jobs = dq.provider();
    for n in 0..9 {
        let drain = jobs.drain::<TestJob>().reason("why");
        let (before, drained, after) =
            tokio::join!(jobs.add(test_job(format!("before{n}"))), drain, jobs.add(test_job(format!("after{n}"))));
        assert!(before.is_ok() && drained.is_ok(), "{before:?}, {drained:?}");
        assert!(matches!(after, Err(CallError::Refused { refusal: Refusal::Draining { .. }, .. })), "{after:?}");
        jobs.undrain::<TestJob>().await.unwrap();
    }
}

stores!(a_draining_topic_refuses_adds_and_ends_what_was_due: memory, file, redis);
async fn a_draining_topic_refuses_adds_and_ends_what_was_due() {
    let script = Script::takes(10 * SECOND);
    let dq = script.start(|topic| topic.concurrency(1)).await;
    for n in 0..3 {
        dq.provider().add(test_job(n)).await.unwrap();
    }
    dq.provider().add(test_job("later")).after("30s").await.unwrap();
    dq.advance(SECOND).await;
    dq.provider().drain::<TestJob>().reason("the shop closes").by("anna").await.unwrap();
    let error = dq.provider().add(test_job("new")).await.unwrap_err();
    assert!(
        matches!(&error, CallError::Refused { refusal: Refusal::Draining { reason, by }, .. } if reason == "the shop closes" && by == "anna"),
        "{error}"
    );
    let replaced = dq.provider().add(test_job("later")).replace_existing().await.unwrap_err();
    assert!(matches!(replaced, CallError::Refused { refusal: Refusal::Draining { .. }, .. }), "{replaced}");
    dq.advance(SECOND).await;
    let topic = dq.health().topics.remove(0);
    assert_eq!((topic.drain.map(|drain| drain.by), topic.left), (Some("anna".to_owned()), 2));
    dq.advance(HOUR).await;
    assert_eq!(script.log.take_without_times(), ["due 0 0", "due 1 0", "due 2 0"]);
    assert_eq!(dq.health().topics[0].left, 0);
    assert_eq!(stored_job(&dq, "later").await.state, State::Delayed);
    dq.provider().undrain::<TestJob>().await.unwrap();
    dq.provider().add(test_job("new")).await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take_without_times(), ["due later 0", "due new 0"]);
}

#[tokio::test(start_paused = true)]
async fn health_shows_the_default_delay_of_a_topic_and_who_set_it() {
    let dq = Script::acks().start(default_settings).await;
    dq.provider().set_default_delay::<TestJob>("10m").by("anna").await.unwrap();
    dq.advance(MINUTE).await;
    let delay = dq.health().topics[0].default_delay.clone().unwrap();
    assert_eq!((delay.delay, delay.by.as_str()), (10 * MINUTE, "anna"));
}
