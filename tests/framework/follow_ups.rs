//! Follow-ups: a run adds, broadcasts and deletes other jobs with its end, each once.

use std::time::Duration;

use dq::inspect::FindingCode;
use dq::job::{State, TopicKey, TopicName};
use dq::listener::{FollowUpError, FollowUps};
use dq::prelude::*;
use dq::store::{MAX_AHEAD, OutboxPosition, Repair};
use dq::testing::Harness;
use dq_tests::Fault;
use serde::{Deserialize, Serialize};

use crate::scripted_listener::{
    HOUR, Log, MINUTE, SECOND, Script, TestJob, default_settings, faulty_store, handler_takes, start, stored_job,
    test_job, work_key,
};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "second")]
struct Second {
    #[job(id)]
    order: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "third", delay = "10s")]
struct Third {
    #[job(id)]
    order: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "large")]
struct Large(String);

#[delay_listener(register = false)]
async fn second(job: Job<Second>, channel: Channel, log: &Log) -> Result<Decided, JobError> {
    log.record(format_args!("second {}", job.order));
    Ok(channel.ack().then(|next| _ = next.add(Third { order: job.order.clone() }))?)
}

#[delay_listener(register = false)]
async fn third(job: Job<Third>, channel: Channel, log: &Log) -> Result<Decided, JobError> {
    log.record(format_args!("third {}", job.order));
    Ok(channel.ack())
}

/// Acks, and a job of the second topic with the same id follows.
fn first() -> Script {
    Script::new(|job, channel| async move {
        let order = job.id().to_string();
        Ok(channel.ack().then(|next| _ = next.add(Second { order }))?)
    })
}

fn chain(log: &Log, script: &Script) -> impl FnOnce(ContextFactory) -> ContextFactory {
    let (log, script) = (log.clone(), script.clone());
    move |factory| {
        let factory = script.on(factory, default_settings);
        factory.provide(log).listener::<second>().listener::<third>()
    }
}

async fn are_gone(dq: &Harness) -> bool {
    let counts = [dq.counts::<TestJob>().await, dq.counts::<Second>().await, dq.counts::<Third>().await];
    counts.iter().all(|counts| counts.delayed + counts.running + counts.dead == 0)
}

stores!(a_chain_runs_over_three_topics_each_job_once_and_at_once: memory, file, redis);
async fn a_chain_runs_over_three_topics_each_job_once_and_at_once() {
    let log = Log::new();
    let dq = start(chain(&log, &first())).await;
    dq.provider().add_many(["a", "b"].map(test_job)).after(SECOND).await.unwrap().all().unwrap();
    dq.advance(HOUR).await;
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, ["11s third a", "11s third b", "1s second a", "1s second b"]);
    assert!(are_gone(&dq).await);
    let health = dq.health();
    let relayed = |topic: &str| health.topics.iter().find(|of| of.topic == topic).unwrap().counters.relayed;
    assert_eq!((relayed("work"), relayed("second"), relayed("third")), (2, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn follow_ups_say_when_they_are_due_and_delete_and_replace_other_jobs() {
    let script = Script::new(|_, channel| async move {
        Ok(channel.ack().then(|next| {
            next.delete::<Third>("doomed");
            next.add(Third { order: "later".into() }).after("2h").header("by", "a");
            next.add(Third { order: "new".into() }).id("replaced").after("3h").replace_existing();
            next.add(Third { order: "kept".into() }).keep_existing();
            next.add(Third { order: "refused".into() });
        })?)
    });
    let dq = script.start(default_settings).await;
    for order in ["doomed", "replaced", "kept", "refused"] {
        dq.provider().add(Third { order: order.into() }).after(HOUR).await.unwrap();
    }
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    assert!(dq.job::<Third>("doomed").await.is_none());
    let later = dq.job::<Third>("later").await.unwrap().details.unwrap();
    assert_eq!(later.headers, [("by".to_owned(), "a".to_owned())]);
    let health = dq.health();
    assert_eq!(health.topics[0].counters.refused_follow_ups, 1);
    let refused = &health.topics[0].refused_follow_ups[0];
    assert_eq!((refused.topic.as_str(), refused.job.as_str()), ("third", "refused"));
    assert_eq!(refused.cause, "a job with this id exists, and is delayed");
    assert_eq!((health.topics[0].counters.relayed, health.topics[0].follow_ups), (2, 0));
    dq.advance(2 * HOUR + SECOND).await;
    let counts = dq.counts::<Third>().await;
    assert_eq!((counts.ready, counts.delayed), (3, 4), "`replaced` is due in an hour");
}

#[tokio::test(start_paused = true)]
async fn a_dead_job_has_follow_ups_in_place_of_its_on_exhausted() {
    let script = Script::new(|_, channel| async move {
        Ok(channel.dead("no stock").then(|next| _ = next.add(Third { order: "refund".into() }))?)
    });
    let log = script.log.clone();
    let dq = script.lives(default_settings, SECOND).await;
    assert_eq!(log.take(), ["0ns due a 0"]);
    let dead = stored_job(&dq, "a").await;
    assert_eq!((dead.state, &*dead.error), (State::Dead, "no stock"));
    assert!(dq.job::<Third>("refund").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_on_exhausted_has_follow_ups_and_no_other_handler_says_them_by_its_job() {
    let script = Script::new(|job, _| async move {
        let says = job.then(|next| _ = next.add(Third { order: "early".into() }));
        assert_eq!(says, Err(FollowUpError::NotEnded));
        Err("no".into())
    });
    let script = script.on_exhausted(|job, _| async move {
        job.then(|next| _ = next.add(Third { order: "wrong".into() })).unwrap();
        job.then(|next| _ = next.add(Third { order: "refund".into() })).unwrap();
    });
    let dq = script.lives(|topic| topic.retry("1s"), MINUTE).await;
    assert_eq!(stored_job(&dq, "a").await.state, State::Dead);
    assert!(dq.job::<Third>("refund").await.is_some());
    assert!(dq.job::<Third>("early").await.is_none() && dq.job::<Third>("wrong").await.is_none());
}

stores!(a_target_that_drains_holds_up_no_other_and_gets_its_follow_ups_later: memory, file, redis);
async fn a_target_that_drains_holds_up_no_other_and_gets_its_follow_ups_later() {
    let script = Script::new(|_, channel| async move {
        Ok(channel.ack().then(|next| {
            next.add(Second { order: "s".into() });
            next.add(Third { order: "t".into() });
        })?)
    });
    let dq = script.start(default_settings).await;
    dq.provider().drain::<Second>().reason("test").await.unwrap();
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(MINUTE).await;
    assert!(dq.job::<Second>("s").await.is_none() && dq.job::<Third>("t").await.is_some());
    assert_eq!(dq.health().topics[0].follow_ups, 1);
    dq.provider().undrain::<Second>().await.unwrap();
    dq.advance(MINUTE).await;
    assert!(dq.job::<Second>("s").await.is_some());
    assert_eq!(dq.health().topics[0].follow_ups, 0);
}

stores!(another_node_relays_what_a_dead_one_has_left: memory, file, redis);
async fn another_node_relays_what_a_dead_one_has_left() {
    let script =
        Script::new(
            |_, channel| async move { Ok(channel.ack().then(|next| _ = next.add(Third { order: "t".into() }))?) },
        );
    let (store, faults) = faulty_store();
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, default_settings)).await;
    faults.fail_only("relay", Fault::Unavailable);
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    assert!(dq.job::<TestJob>("a").await.is_none() && dq.job::<Third>("t").await.is_none());
    let next = script.beside(&dq, 2, default_settings).await;
    dq.kill();
    faults.clear();
    next.advance(MINUTE).await;
    assert!(next.job::<Third>("t").await.is_some());
}

stores!(an_answer_that_is_lost_brings_no_follow_up_twice: memory, file, redis);
/// The answer is lost, so the entry goes out again, when its job has long ended.
async fn an_answer_that_is_lost_brings_no_follow_up_twice() {
    let (log, script) = (Log::new(), first());
    let (store, faults) = faulty_store();
    let dq = Harness::start_on(store, 1, chain(&log, &script)).await;
    faults.fail_only("relay", Fault::AnswerLost);
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    assert_eq!(log.take(), ["0ns second a"]);
    faults.clear();
    dq.advance(HOUR).await;
    assert_eq!(log.take_without_times(), ["third a"]);
}

#[tokio::test(start_paused = true)]
async fn follow_ups_that_no_store_takes_are_refused_in_the_handler() {
    let third = |order: String| Third { order };
    let then = |next: &dyn Fn(&mut FollowUps)| {
        dq::testing::channel().ack().then(|all| next(all)).map(|decided| decided.follow_ups())
    };
    assert_eq!(then(&|next| (0..1_000).for_each(|n| _ = next.add(third(n.to_string())))), Ok(1_000));
    let many = then(&|next| (0..1_001).for_each(|n| _ = next.add(third(n.to_string()))));
    assert_eq!(many, Err(FollowUpError::TooMany { count: 1_001, limit: 1_000 }));
    let large = then(&|next| _ = next.add(third("x".into())).header("h", "x").id("y".repeat(200)));
    assert_eq!(large, Ok(1));
    let large = then(&|next| (0..5).for_each(|n| _ = next.add(Large(n.to_string() + &"x".repeat(250_000)))));
    assert!(matches!(large, Err(FollowUpError::TooLarge { limit, .. }) if limit == 1 << 20));
    let invalid = then(&|next| _ = next.add(third("a".into())).after("2x")).unwrap_err().to_string();
    assert!(invalid.contains("`third`") && invalid.contains("`2x` is not a duration"), "{invalid}");
    let long = then(&|next| next.delete::<Third>("x".repeat(300))).unwrap_err();
    assert!(matches!(long, FollowUpError::Invalid { topic, .. } if topic == "third"));
    let rejoins = dq::testing::channel().rejoin().then(|next| _ = next.add(third("a".into())));
    assert_eq!(rejoins.unwrap_err(), FollowUpError::NotEnded);
}

stores!(a_job_that_runs_again_has_its_follow_ups_once: memory, file, redis);
/// A second outcome of one run, and that of a run which has lost its job, write nothing.
async fn a_job_that_runs_again_has_its_follow_ups_once() {
    let script = Script::new(|job, channel| async move {
        let decided = channel.ack().then(|next| _ = next.add(Second { order: job.fence().to_string() }))?;
        handler_takes(SECOND).await;
        Ok(decided)
    });
    let (store, faults) = faulty_store();
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, default_settings)).await;
    faults.fail_next("settle", Fault::AnswerLost);
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(5 * MINUTE).await;
    assert!(dq.job::<TestJob>("a").await.is_none());
    assert_eq!(dq.counts::<Second>().await.delayed, 1);
}

/// The second topic has a position of the follow-ups that is ahead of the clock by this time, as an import leaves it.
async fn second_is_ahead(dq: &Harness, by: Duration) {
    let clock = dq.store().counts(&work_key()).await.unwrap().clock;
    second_has(dq, clock.after(by).as_millis() * 1_000).await;
}

async fn second_has(dq: &Harness, position: u64) {
    let (key, source) = (TopicKey { topic: TopicName::new("second").unwrap(), ..work_key() }, work_key().topic);
    let from = dq.store().arrived(&key, &source).await.unwrap();
    assert!(
        dq.store().repair(&key, &Repair::SetBack { source, from, to: OutboxPosition::clock(position) }).await.unwrap()
    );
}

async fn arrived(dq: &Harness, orders: std::ops::Range<u32>) -> bool {
    for order in orders {
        if dq.job::<Second>(&order.to_string()).await.is_none() {
            return false;
        }
    }
    true
}

stores!(a_topic_that_was_away_gets_all_follow_ups_within_two_seconds: memory, file, redis);
async fn a_topic_that_was_away_gets_all_follow_ups_within_two_seconds() {
    let dq = first().start(default_settings).await;
    dq.provider().drain::<Second>().reason("test").await.unwrap();
    dq.provider().add_many((0..300).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(5 * MINUTE).await;
    assert_eq!(dq.health().topics[0].follow_ups, 300);
    dq.provider().undrain::<Second>().await.unwrap();
    dq.advance(2 * SECOND).await;
    assert!(arrived(&dq, 0..300).await);
    assert_eq!((dq.health().topics[0].follow_ups, dq.health().topics[0].counters.relayed), (0, 300));
}

stores!(no_follow_up_is_lost_to_a_topic_whose_position_is_ahead: memory, file, redis);
async fn no_follow_up_is_lost_to_a_topic_whose_position_is_ahead() {
    let dq = first().start(default_settings).await;
    dq.provider().add(test_job(0)).await.unwrap();
    dq.settle().await;
    assert!(arrived(&dq, 0..1).await);
    for n in 1..3 {
        second_is_ahead(&dq, HOUR).await;
        dq.provider().add_many([n * 10, n * 10 + 1].map(test_job)).await.unwrap().all().unwrap();
        dq.advance(SECOND).await;
        assert!(arrived(&dq, n * 10..n * 10 + 2).await, "{n}");
    }
    assert_eq!(dq.health().topics[0].follow_ups, 0);
}

stores!(no_follow_up_is_lost_to_a_topic_whose_position_lies_between_those_that_wait: memory, file, redis);
/// By the time that the relay looks, the positions of the source have passed the position of the target.
async fn no_follow_up_is_lost_to_a_topic_whose_position_lies_between_those_that_wait() {
    let dq = first().start(default_settings).await;
    dq.provider().drain::<Second>().reason("test").await.unwrap();
    dq.provider().add(test_job(0)).await.unwrap();
    dq.advance(MINUTE).await;
    dq.provider().add(test_job(1)).await.unwrap();
    dq.advance(SECOND).await;
    dq.provider().undrain::<Second>().await.unwrap();
    let clock = dq.store().counts(&work_key()).await.unwrap().clock;
    second_has(&dq, clock.as_millis() * 1_000 - 1).await;
    dq.provider().add(test_job(2)).await.unwrap();
    dq.advance(MINUTE).await;
    assert!(arrived(&dq, 0..3).await);
}

stores!(a_position_that_no_clock_explains_is_left_to_the_doctor_whose_repair_lets_the_follow_ups_go: memory, file, redis);
async fn a_position_that_no_clock_explains_is_left_to_the_doctor_whose_repair_lets_the_follow_ups_go() {
    let dq = first().start(default_settings).await;
    second_is_ahead(&dq, Duration::from_micros(MAX_AHEAD) + HOUR).await;
    dq.provider().add(test_job(0)).await.unwrap();
    dq.advance(SECOND).await;
    assert!(!arrived(&dq, 0..1).await);
    assert_eq!(dq.health().topics[0].follow_ups, 1);
    let mut doctor = dq.provider().inspect().doctor(None).unwrap();
    while doctor.step().await.unwrap().is_some() {}
    let is_one = |finding: &&dq::inspect::Finding| finding.code == FindingCode::TargetAhead;
    let finding = doctor.findings().iter().find(is_one).unwrap();
    assert_eq!(finding.topic.as_ref().unwrap().as_str(), "second");
    assert_eq!(finding.id.as_deref(), Some("work"));
    while doctor.repair().await.unwrap().is_some() {}
    dq.advance(2 * SECOND).await;
    assert!(arrived(&dq, 0..1).await);
}
