//! Paused groups, whether a caller pauses one or a handler backs off (rules 4 and 29).

use std::time::Duration;

use super::groups::{add, limit, member};
use super::setting::drain;
use super::stopped::{group, groups, named, pass};
use super::topic::{Topic, ids, ms, secs};
use dq::job::State;
use dq::store::step::{Change, RejoinDue};
use dq::store::{ChangeKind, CommandKind, Due, Pause, Signal, TopicChange, TopicSet, TopicState};

/// Pauses the group `a`; `None`: until it is resumed.
async fn pause(t: &Topic, lasting: Option<Duration>) -> TopicSet {
    let (group, until) = (Some(named("a")), lasting.map(Due::After));
    t.set(TopicChange::Pause { group, reason: "why: 1; 2".into(), until }).await
}

async fn resume(t: &Topic) -> TopicSet {
    t.set(TopicChange::Resume { group: Some(named("a")) }).await
}

async fn pause_of(t: &Topic, name: &str) -> Option<Pause> {
    group(t, name).await?.pause
}

/// The jobs of a paused group wait, however their turn came, and those of others and without a group run; a run that began ends as usual (rules
/// 4, 29).
pub async fn jobs_of_a_paused_group_wait_and_the_others_run(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-1", "a-2", "b-1"]).await;
    let first = t.transfer("n", 1).await.claims;
    pause(t, None).await;
    t.advance(ms(1)).await;
    t.end("n", &first[0], Change::Ack).await;
    t.add("plain").await;
    let answer = t.transfer("n", 10).await;
    assert_eq!((ids(&answer.claims), answer.more), (vec!["b-1", "plain"], false));
    add(t, &["a-0"]).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0], "its next job is another one now");
    let seen = t.store.overview(&t.key, 0).await.expect("it is answered");
    assert_eq!((seen.due.iter().sum::<usize>(), seen.blocked), (2, 2));
    let mut watcher = t.subscribe("n").await;
    resume(t).await;
    assert!(watcher.received(t).await.contains(&Signal::StateChanged));
    t.claim("n", "a-2").await;
}

/// A pause without an end holds no node up, and one with an end wakes the node then, as for a head (rules 23, 29).
pub async fn pause_of_a_group_ends_by_itself(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-1", "b-1", "b-2"]).await;
    pause(t, None).await;
    let b = t.claim("n", "b-1").await;
    let idle = t.transfer("n", 10).await.sleep;
    pause(t, Some(secs(1))).await;
    assert_eq!((t.transfer("n", 10).await.sleep, idle > secs(1)), (secs(1), true));
    t.advance(ms(999)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.end("n", &b, Change::Ack).await;
    t.advance(ms(1)).await;
    assert_eq!(pause_of(t, "a").await, None);
    let claims = t.transfer("n", 10).await.claims;
    assert_eq!(ids(&claims), ["b-2", "a-1"], "it takes its turn");
    assert_eq!(claims[1].token.due.after(secs(1)), t.now(), "which is no due time");
}

/// A job that has a seat does not run again under a pause of its group: neither a retry nor one that went back (rules 4, 29).
pub async fn job_with_a_seat_waits_for_the_end_of_the_pause(t: &Topic) {
    limit(t, 2).await;
    add(t, &["a-1", "a-2", "a-3"]).await;
    let (first, second) = (t.claim("n", "a-1").await, t.claim("n", "a-2").await);
    pause(t, None).await;
    t.end("n", &first, Change::Retry(secs(5))).await;
    t.end("n", &second, Change::Rollback).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.advance(secs(5)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    let seen = group(t, "a").await.expect("it has jobs");
    assert_eq!((seen.waiting, seen.seats.len(), seen.is_full), (1, 2, true));
    resume(t).await;
    assert_eq!(t.claimed_ids("n").await, ["a-2", "a-1"]);
}

/// What a caller does to a job of a paused group works, and none runs by it (rules 4, 29).
pub async fn jobs_of_a_paused_group_change_like_others(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-1", "a-2", "a-3"]).await;
    t.run("n", "a-1", Change::Retry(ms(1))).await;
    t.advance(ms(1)).await;
    pause(t, None).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    assert!(pass(t, "a-1").await.changed);
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    t.delete("a-2").await;
    let run_now = t.change("a-3", ChangeKind::RunNow).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0], "{run_now:?}");
    assert_eq!(t.counts().await.delayed, 2);
    resume(t).await;
    let claim = t.claim("n", "a-3").await;
    t.end("n", &claim, Change::Ack).await;
    t.claim("n", "a-1").await;
    assert_eq!(t.command(CommandKind::Delete, "a-2", None).await.found, None);
}

/// The pause has author, reason, beginning and end, and a second one keeps the beginning; it is of one group, and needs no job (rule 29).
pub async fn pause_of_a_group_is_kept_with_its_author(t: &Topic) {
    assert_eq!(resume(t).await, TopicSet::default());
    let since = t.now();
    let first = pause(t, None).await;
    let wanted = Pause { reason: "why: 1; 2".into(), until: None, by: "anna".into(), since };
    assert_eq!((first.before.pause, first.now.pause.as_ref()), (None, Some(&wanted)));
    assert_eq!(pause_of(t, "a").await.as_ref(), Some(&wanted), "a group without jobs");
    assert_eq!(t.topic_state().await, TopicState::default(), "the topic is not paused");
    t.advance(ms(5)).await;
    let second = pause(t, Some(secs(2))).await;
    assert_eq!(second.before.pause.as_ref(), Some(&wanted));
    let longer = Pause { until: Some(t.in_ms(2_000)), ..wanted };
    assert_eq!((second.now.pause.as_ref(), pause_of(t, "a").await), (Some(&longer), Some(longer.clone())));
    add(t, &["a-1", "b-1"]).await;
    assert_eq!(t.claimed_ids("n").await, ["b-1"]);
    assert_eq!(groups(t, None, 10).await.groups.len(), 2);
    let resumed = resume(t).await;
    assert_eq!((resumed.before.pause, resumed.now.pause), (Some(longer), None));
    assert_eq!(pause_of(t, "a").await, None);
    t.claim("n", "a-1").await;
    pause(t, Some(ms(1))).await;
    t.advance(ms(1)).await;
    let third = pause(t, None).await;
    assert_eq!((third.before.pause, third.now.pause.expect("it is paused").since), (None, t.now()), "one has ended");
}

/// A draining topic still runs what was due when the drain began, once the pause of its group is over (rule 29).
pub async fn draining_topic_waits_for_a_paused_group(t: &Topic) {
    limit(t, 1).await;
    add(t, &["a-1"]).await;
    t.add_job(member("b-later", secs(1))).await;
    pause(t, Some(secs(2))).await;
    t.set(drain("why")).await;
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims.len(), answer.more, answer.left, answer.sleep), (0, false, 1, secs(2)));
    t.advance(secs(2)).await;
    t.claim("n", "a-1").await;
}

/// A handler that backs off pauses the group of its job, unless that is paused for longer; the topic continues (rule 29).
pub async fn back_off_pauses_only_the_group_of_the_job(t: &Topic) {
    let back_off = |millis| Change::Rejoin(RejoinDue::BackOff(ms(millis)));
    limit(t, 2).await;
    add(t, &["a-1", "a-2"]).await;
    let (first, second) = (t.claim("n:1 %;", "a-1").await, t.claim("n:1 %;", "a-2").await);
    add(t, &["a-3", "b-1"]).await;
    t.end("n:1 %;", &first, back_off(500)).await;
    t.end("n:1 %;", &second, back_off(100)).await;
    let reason = "the handler of job a-1 backed off".to_owned();
    let until = Some(t.in_ms(500));
    let wanted = Pause { reason, until, by: "n:1 %;".into(), since: t.now() };
    assert_eq!(pause_of(t, "a").await, Some(wanted));
    assert_eq!(t.topic_state().await.pause, None);
    assert_eq!(t.claimed_ids("n").await, ["b-1"]);
    t.advance(ms(100)).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0], "a-2 is due, and waits as well");
    assert_eq!(t.state("a-2").await, Some(State::Delayed));
    t.advance(ms(400)).await;
    t.claim("n", "a-3").await;
    t.claim("n", "a-2").await;
}
