//! Groups: how many jobs of one customer run at a time.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use dq::config::TopicOverrides;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

use crate::scripted_listener::{MS, SECOND, Script, TestJob, test_job};

async fn add(provider: &Provider, id: &str) {
    let group = id.split('-').next().unwrap_or_default();
    provider.add(test_job(id)).group(group).after(10 * SECOND).await.unwrap();
}

stores!(the_jobs_of_a_group_run_one_at_a_time_beside_those_of_others: memory, file, redis);
async fn the_jobs_of_a_group_run_one_at_a_time_beside_those_of_others() {
    let script = Script::takes(SECOND);
    let dq = script.start(|topic| topic.concurrency(8).group_concurrency(1)).await;
    for id in ["a-1", "a-2", "b-1", "a-3"] {
        add(dq.provider(), id).await;
    }
    dq.advance(10_500 * MS).await;
    let why = dq.provider().inspect().why("work", "a-3").await.unwrap().to_string();
    assert!(why.contains("the group a has no free seat: job a-1 runs on "), "{why}");
    dq.advance(10 * SECOND).await;
    assert_eq!(script.log.take(), ["10s due a-1 0", "10s due b-1 0", "11s due a-2 0", "12s due a-3 0"]);
}

stores!(a_group_waits_for_a_retry_or_lets_it_pass: memory, file, redis);
async fn a_group_waits_for_a_retry_or_lets_it_pass() {
    for (group_on_blocked, wanted) in
        [("retry: wait", ["a-1 0", "a-1 1", "a-2 0"]), ("retry: pass", ["a-1 0", "a-2 0", "a-1 1"])]
    {
        let script = Script::new(|job: Job<TestJob>, channel: Channel| async move {
            if job.attempt() == 0 && job.id == "a-1" {
                return Err("not yet".into());
            }
            Ok(channel.ack())
        });
        let set = |topic: TopicOverrides| topic.retry("5s x 1").group_concurrency(1).group_on_blocked(group_on_blocked);
        let dq = script.start(set).await;
        for id in ["a-1", "a-2"] {
            add(dq.provider(), id).await;
        }
        dq.advance(30 * SECOND).await;
        let wanted = wanted.map(|run| format!("due {run}"));
        assert_eq!(script.log.take_without_times(), wanted, "{group_on_blocked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_group_is_seen_and_resumed() {
    let script = Script::new(|job: Job<TestJob>, channel: Channel| async move {
        if job.id == "a-1" { Err("it is broken".into()) } else { Ok(channel.ack()) }
    });
    let set = |topic: TopicOverrides| topic.retry("none").group_concurrency(1).group_on_blocked("dead: wait");
    let dq = script.start(set).await;
    for id in ["a-1", "a-2", "b-1"] {
        add(dq.provider(), id).await;
    }
    dq.advance(11 * SECOND).await;
    let inspector = dq.provider().inspect();
    let seen = inspector.groups("work", None).await.unwrap();
    let [group] = seen.groups.as_slice() else { panic!("{seen:?}") };
    let stopped_by = group.stopped_by.as_ref().map(dq::job::JobId::as_str);
    assert_eq!((group.group.as_str(), group.waiting, stopped_by), ("a", 1, Some("a-1")));
    assert_eq!((group.seats[0].state, &group.seats[0].node), (dq::job::State::Dead, &None));
    let why = inspector.why("work", "a-2").await.unwrap().to_string();
    assert!(why.starts_with("the group a is stopped by job a-1, which does not run by itself: requeue it"), "{why}");
    let topic = dq.provider().topic("work").unwrap();
    assert_eq!(topic.resume_group("a").await.unwrap().passed, [dq::job::JobId::new("a-1").unwrap()]);
    assert_eq!(topic.resume_group("b").await.unwrap(), dq::provider::ResumedGroup::default());
    dq.advance(SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a-1 0", "due b-1 0", "final a-1 1 error", "due a-2 0"]);
    assert_eq!(inspector.groups("work", None).await.unwrap().groups, []);
    assert!(inspector.groups("work", Some("\n")).await.is_err());
}

stores!(each_group_has_a_rate_of_its_own: memory, file, redis);
async fn each_group_has_a_rate_of_its_own() {
    let script = Script::acks();
    let dq = script.start(|topic| topic.group_concurrency(1).group_rate("6/m")).await;
    for id in ["a-1", "a-2", "b-1"] {
        add(dq.provider(), id).await;
    }
    dq.advance(15 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a-1 0", "due b-1 0"]);
    let why = dq.provider().inspect().why("work", "a-2").await.unwrap().to_string();
    assert!(why.contains("the group a has spent its rate, which lets the next job start in "), "{why}");
    dq.advance(6 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a-2 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_group_borrows_permits_while_nothing_else_is_due() {
    let script = Script::takes(SECOND);
    let dq = script.start(|topic| topic.concurrency(4).group_concurrency(2).group_burst(1)).await;
    for id in ["a-1", "a-2", "a-3", "a-4", "a-5"] {
        add(dq.provider(), id).await;
    }
    dq.provider().add(test_job("plain")).after(11 * SECOND).await.unwrap();
    dq.advance(10_500 * MS).await;
    let why = dq.provider().inspect().why("work", "a-4").await.unwrap().to_string();
    assert!(why.contains("the group a has no free seat: job a-1 runs on "), "{why}");
    dq.advance(10 * SECOND).await;
    let ran = ["10s due a-1 0", "10s due a-2 0", "10s due a-3 0", "11s due a-4 0", "11s due a-5 0", "11s due plain 0"];
    let mut log = script.log.take();
    log.sort_unstable();
    assert_eq!(log, ran);
}

#[tokio::test(start_paused = true)]
async fn a_paused_group_is_seen_and_resumed() {
    let script = Script::acks();
    let dq = script.start(|topic| topic.group_concurrency(1)).await;
    let topic = dq.provider().topic("work").unwrap();
    assert!(topic.pause_group("a").unwrap().await.is_err(), "it needs a reason");
    assert!(topic.pause_group("\n").is_err());
    let paused = topic.pause_group("a").unwrap().reason("audit").by("anna").await.unwrap();
    for id in ["a-1", "b-1"] {
        add(dq.provider(), id).await;
    }
    dq.advance(11 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due b-1 0"]);
    let inspector = dq.provider().inspect();
    assert_eq!(inspector.groups("work", None).await.unwrap().groups[0].pause, paused.now);
    let why = inspector.why("work", "a-1").await.unwrap().to_string();
    let wanted = format!("the group a has been paused since {} by anna: audit; resume it", paused.now.unwrap().since);
    assert_eq!(why, wanted);
    assert_eq!(topic.resume_group("a").await.unwrap().pause.unwrap().reason, "audit");
    dq.advance(100 * MS).await;
    assert_eq!(script.log.take_without_times(), ["due a-1 0"]);
}

stores!(a_handler_that_backs_off_holds_back_only_its_group: memory, file, redis);
async fn a_handler_that_backs_off_holds_back_only_its_group() {
    let runs = Arc::new(AtomicUsize::new(0));
    let script = Script::new(move |job: Job<TestJob>, channel: Channel| {
        let backs_off = job.id == "a-1" && runs.fetch_add(1, Relaxed) == 0;
        async move { Ok(if backs_off { channel.back_off("30s") } else { channel.ack() }) }
    });
    let dq = script.start(|topic| topic.group_concurrency(1)).await;
    for id in ["a-1", "a-2", "b-1"] {
        add(dq.provider(), id).await;
    }
    dq.advance(12 * SECOND).await;
    let why = dq.provider().inspect().why("work", "a-2").await.unwrap().to_string();
    assert!(
        why.contains("the group a has been paused since ") && why.contains("the handler of job a-1 backed off"),
        "{why}"
    );
    dq.advance(40 * SECOND).await;
    assert_eq!(script.log.take(), ["10s due a-1 0", "10s due b-1 0", "40s due a-2 0", "40s due a-1 0"]);
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work", group = "customer-{customer}")]
struct Sync {
    #[job(id)]
    id: String,
    customer: u64,
}

#[tokio::test(start_paused = true)]
async fn a_payload_and_an_add_say_the_group() {
    let dq = Script::acks().start(|topic| topic).await;
    let provider = dq.provider();
    let sync = |id: &str| Sync { id: id.into(), customer: 42 };
    provider.add(sync("by type")).after("1h").await.unwrap();
    provider.add(sync("by add")).group("night").after("1h").await.unwrap();
    provider.add(test_job("none")).after("1h").await.unwrap();
    let inspector = provider.inspect();
    for (id, group) in [("by type", Some("customer-42")), ("by add", Some("night")), ("none", None)] {
        let job = inspector.job("work", id).await.unwrap().unwrap();
        assert_eq!(job.group.as_ref().map(dq::job::GroupName::as_str), group, "{id}");
    }
    let refused = provider.add(test_job("long")).group("x".repeat(129)).await.unwrap_err().to_string();
    assert!(refused.contains("write 1 to 128 bytes without control characters"), "{refused}");
}
