//! Broadcasts, which wait apart from the queue and are published once (rule 24).

use super::producer::{delayed, job, replacing, retained, with_payload};
use super::topic::{FALLBACK, Topic, id, ms, secs};
use dq::job::{Delivery, JobState, State};
use dq::store::step::{self, Change, DEFAULT_BYTES, Published};
use dq::store::{AddOutcome, Due, NewJob, OnDuplicate, Signal};

pub(super) const HOUR_MS: u64 = 3_600_000;

fn broadcast(name: &str) -> NewJob {
    NewJob { deliver: Delivery::Broadcast, ..job(name) }
}

fn both(name: &str) -> NewJob {
    NewJob { deliver: Delivery::Both, ..job(name) }
}

pub(super) async fn publish(t: &Topic, node: &str, limit: usize) -> Published {
    let request = step::Publish { limit, bytes: DEFAULT_BYTES, fallback: FALLBACK, expires_after: ms(HOUR_MS) };
    let published = t.link(node).step(request).await.expect("publish is answered");
    t.audit().await;
    published
}

/// The signal of a broadcast with this number.
fn sent(number: u64, name: &str, job: &NewJob) -> Signal {
    Signal::Broadcast(dq::store::BroadcastMessage { number, id: id(name), record: job.record.as_bytes().clone() })
}

pub(super) fn published_ids(signals: &[Signal]) -> Vec<String> {
    let id = |signal: &Signal| match signal {
        Signal::Broadcast(message) => Some(message.id.to_string()),
        _ => None,
    };
    signals.iter().filter_map(id).collect()
}

/// A due broadcast is published once, with its record, to every subscriber, and then is gone (rule 24).
pub async fn due_broadcast_is_published_once(t: &Topic) {
    let (mut one, mut two) = (t.subscribe("one").await, t.subscribe("two").await);
    assert_eq!(t.add_job(broadcast("a")).await, AddOutcome::Added);
    assert_eq!(t.counts().await.broadcasts, 1);
    let published = publish(t, "n", 10).await;
    assert_eq!((published.published, published.dropped, published.more), (1, 0, false));
    assert_eq!(t.counts().await.broadcasts, 0);
    assert_eq!(publish(t, "m", 10).await.published, 0);
    let sent = sent(1, "a", &broadcast("a"));
    for subscriber in [&mut one, &mut two] {
        let signals = subscriber.received(t).await;
        assert_eq!(signals.iter().filter(|signal| **signal == sent).count(), 1, "{signals:?}");
    }
}

/// The broadcasts of a channel have numbers from 1 without a gap, whichever node publishes them, and the answer has the
/// last one. What is dropped has no number (rule 24).
pub async fn published_broadcasts_are_numbered(t: &Topic) {
    let mut subscriber = t.subscribe("s").await;
    assert_eq!(publish(t, "n", 10).await.last_number, 0);
    for (number, node) in [(1, "n"), (2, "m"), (3, "n")] {
        t.add_job(broadcast("a")).await;
        assert_eq!(publish(t, node, 10).await.last_number, number);
    }
    t.add_job(broadcast("late")).await;
    t.advance(ms(HOUR_MS + 1)).await;
    let published = publish(t, "n", 10).await;
    assert_eq!((published.dropped, published.last_number), (1, 3));
    let mut numbers = Vec::new();
    for signal in subscriber.received(t).await {
        if let Signal::Broadcast(message) = signal {
            numbers.push(message.number);
        }
    }
    assert_eq!(numbers, [1, 2, 3]);
}

/// A broadcast is not published before it is due (rules 4, 24).
pub async fn broadcast_is_not_published_before_it_is_due(t: &Topic) {
    t.add_job(NewJob { deliver: Delivery::Broadcast, ..delayed("a", ms(1_500)) }).await;
    t.advance(std::time::Duration::from_micros(1_499_999)).await;
    assert_eq!(publish(t, "n", 10).await.published, 0);
    t.advance(std::time::Duration::from_micros(1)).await;
    assert_eq!(publish(t, "n", 10).await.published, 1);
}

/// A broadcast is not a job of the queue, and no node claims it (rule 24).
pub async fn broadcast_is_not_claimed(t: &Topic) {
    t.add_job(broadcast("a")).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed, counts.ready, counts.head), (1, 0, 0, None));
    let scanned = t.scan().await;
    assert_eq!(scanned.records, scanned.places);
}

/// A broadcast is published until it expires. One that was not published before its own expiry, or before the one that the step
/// names, is dropped and counted (rule 24).
pub async fn expired_broadcast_is_dropped(t: &Topic) {
    t.add_job(NewJob { expires_after: Some(secs(5)), ..broadcast("own") }).await;
    t.add_job(broadcast("default")).await;
    t.advance(ms(2)).await;
    t.add_job(NewJob { expires_after: Some(secs(5)), ..broadcast("last") }).await;
    t.advance(ms(5_000)).await;
    t.add_job(NewJob { expires_after: Some(secs(5)), ..broadcast("fresh") }).await;
    let mut subscriber = t.subscribe("n").await;
    let published = publish(t, "n", 1_000).await;
    assert_eq!((published.published, published.dropped), (3, 1));
    let mut names = published_ids(&subscriber.received(t).await);
    names.sort();
    assert_eq!(names, ["default", "fresh", "last"]);
    t.add_job(broadcast("default")).await;
    t.advance(ms(HOUR_MS + 1)).await;
    let published = publish(t, "n", 10).await;
    assert_eq!((published.published, published.dropped), (0, 1));
    assert_eq!(t.counts().await.broadcasts, 0);
}

/// `deliver = both` adds one job and one broadcast (rule 24).
pub async fn both_adds_a_job_and_a_broadcast(t: &Topic) {
    assert_eq!(t.add_job(both("a")).await, AddOutcome::Added);
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (1, 1));
    let claim = t.claim("n", "a").await;
    assert_eq!(claim.record, both("a").record);
    assert_eq!(publish(t, "n", 10).await.published, 1);
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.find("a").await, None);
}

/// Retries, rejoins, rollbacks and reclaims of the job publish nothing (rule 24).
pub async fn retry_publishes_nothing(t: &Topic) {
    t.add_job(both("a")).await;
    assert_eq!(publish(t, "n", 10).await.published, 1);
    let again = Change::Rejoin(step::RejoinDue::After(ms(0)));
    for change in [Change::Retry(ms(0)), again, Change::Rollback] {
        let claim = t.claim("n", "a").await;
        t.end("n", &claim, change).await;
        assert_eq!((t.counts().await.broadcasts, publish(t, "n", 10).await.published), (0, 0));
    }
    t.claim("n", "a").await;
    t.crash("n").await;
    assert_eq!(publish(t, "n", 10).await.published, 0);
}

/// The job and the broadcast of `deliver = both` are replaced together (rule 24).
pub async fn job_and_broadcast_are_replaced_together(t: &Topic) {
    let mut subscriber = t.subscribe("n").await;
    t.add_job(both("a")).await;
    let new = NewJob { deliver: Delivery::Both, on_duplicate: OnDuplicate::Replace, ..with_payload("a", "new") };
    assert_eq!(t.add_job(new.clone()).await, AddOutcome::Replaced(State::Delayed));
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (1, 1));
    assert_eq!(t.payload("a").await, "new");
    assert_eq!(publish(t, "n", 10).await.published, 1);
    let sent = sent(1, "a", &new);
    assert!(subscriber.received(t).await.contains(&sent));
    t.add_job(NewJob { on_duplicate: OnDuplicate::Replace, ..both("a") }).await;
    t.add_job(NewJob { on_duplicate: OnDuplicate::Replace, ..broadcast("a") }).await;
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (1, 0), "a broadcast alone takes the place of both");
}

/// The job and the broadcast of `deliver = both` are deleted together (rule 24).
pub async fn job_and_broadcast_are_deleted_together(t: &Topic) {
    t.add_job(both("a")).await;
    let outcome = t.delete("a").await;
    assert_eq!((outcome.found, outcome.changed), (Some(State::Delayed), true));
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (0, 0));
    assert_eq!((publish(t, "n", 10).await.published, t.claims("n").await.len()), (0, 0));
}

/// A query by id shows a waiting broadcast as DELAYED, and as such it can be deleted (rule 24).
pub async fn waiting_broadcast_is_deleted(t: &Topic) {
    for verb in ["delete", "cancel"] {
        t.add_job(broadcast("a")).await;
        let found = t.stored("a").await;
        assert_eq!((found.place, found.record), (JobState::Delayed { due: t.now() }, broadcast("a").record));
        let outcome = if verb == "delete" { t.delete("a").await } else { t.cancel("a").await };
        assert_eq!((outcome.found, outcome.changed), (Some(State::Delayed), true), "{verb}");
        assert_eq!(outcome.removed, Some(broadcast("a").record), "{verb}");
        assert_eq!((t.counts().await.broadcasts, publish(t, "n", 10).await.published), (0, 0));
        assert_eq!(t.find("a").await, None);
    }
}

/// A waiting broadcast makes its id known to every add; once it is published, the id is free (rules 2, 24).
pub async fn waiting_broadcast_makes_its_id_known(t: &Topic) {
    t.add_job(broadcast("a")).await;
    for new in [broadcast("a"), both("a"), job("a")] {
        for on_duplicate in [OnDuplicate::Reject, OnDuplicate::Keep] {
            let new = NewJob { on_duplicate, ..new.clone() };
            assert_eq!(t.add_job(new).await, AddOutcome::Exists(State::Delayed));
        }
    }
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (1, 0));
    publish(t, "n", 10).await;
    assert_eq!(t.add_job(broadcast("a")).await, AddOutcome::Added);
    assert_eq!(t.add_job(replacing("a", "new")).await, AddOutcome::Replaced(State::Delayed));
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed, t.payload("a").await), (0, 1, "new".into()));
}

/// The broadcast of `deliver = both` waits on when its job has ended: its id stays known, as DELAYED, until a command or a publish ends
/// the broadcast too. An ack from outside ends both parts of a waiting job, but not the broadcast of a running one (rules 2, 13, 24).
pub async fn broadcast_outlives_the_job_beside_it(t: &Topic) {
    t.add_job(NewJob { deliver: Delivery::Both, ..retained("a") }).await;
    t.run("n", "a", Change::Ack).await;
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.done), (1, 1));
    assert_eq!(t.add_job(job("a")).await, AddOutcome::Exists(State::Delayed));
    let cancelled = t.cancel("a").await;
    assert_eq!((cancelled.found, cancelled.changed), (Some(State::Delayed), true));
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.done), (0, 0));
    t.add_job(both("b")).await;
    assert!(t.ack_outside("b").await.changed);
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (0, 0));
    t.add_job(both("b")).await;
    let claim = t.claim("n", "b").await;
    t.ack_outside("b").await;
    let kept = NewJob { on_duplicate: OnDuplicate::Keep, ..job("b") };
    assert_eq!(t.add_job(kept).await, AddOutcome::Exists(State::Delayed));
    t.end("n", &claim, Change::Rollback).await;
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (1, 0));
}

/// An add of a broadcast finds a DELAYED, RUNNING, UNACKED or DEAD job with its id (rules 2, 24).
pub async fn broadcast_of_a_known_id_finds_the_job(t: &Topic) {
    for state in [State::Delayed, State::Running, State::Unacked, State::Dead] {
        super::events::add_in_state(t, state.as_str(), state).await;
        for new in [broadcast(state.as_str()), both(state.as_str())] {
            assert_eq!(t.add_job(new).await, AddOutcome::Exists(state));
        }
    }
    assert_eq!(t.counts().await.broadcasts, 0);
}

/// A replaced broadcast is published with the new record, when the new one is due (rule 24).
pub async fn replaced_broadcast_is_published_as_the_new_one(t: &Topic) {
    let mut subscriber = t.subscribe("n").await;
    t.add_job(broadcast("a")).await;
    let new = NewJob {
        deliver: Delivery::Broadcast,
        on_duplicate: OnDuplicate::Replace,
        record: with_payload("a", "new").record,
        ..delayed("a", secs(3))
    };
    assert_eq!(t.add_job(new.clone()).await, AddOutcome::Replaced(State::Delayed));
    assert_eq!((t.counts().await.broadcasts, publish(t, "n", 10).await.published), (1, 0));
    t.advance(secs(3)).await;
    assert_eq!(publish(t, "n", 10).await.published, 1);
    let sent = sent(1, "a", &new);
    assert!(subscriber.received(t).await.contains(&sent));
}

/// A broadcast that takes the place of a job that is not running leaves nothing of that (rules 2, 24).
pub async fn broadcast_leaves_nothing_of_the_job_that_it_replaces(t: &Topic) {
    let near = NewJob { due: Due::After(secs(60)), ..job("near") };
    assert_eq!(t.add_job(near).await, AddOutcome::Added);
    for state in [State::Delayed, State::Unacked, State::Dead, State::Done] {
        super::events::add_in_state(t, state.as_str(), state).await;
    }
    let replaced = [State::Delayed, State::Delayed, State::Unacked, State::Dead].map(AddOutcome::Replaced);
    let names = ["near", "delayed", "unacked", "dead", "done"];
    for (name, expected) in names.into_iter().zip(replaced.into_iter().chain([AddOutcome::Added])) {
        let left = t.scan().await.records;
        let (deliver, on_duplicate) = (Delivery::Broadcast, OnDuplicate::Replace);
        let outcome = t.add_job(NewJob { deliver, on_duplicate, ..with_payload(name, "new") }).await;
        assert_eq!(outcome, expected, "{name}");
        let scanned = t.scan().await;
        assert_eq!((scanned.records, scanned.places), (left - 1, left - 1), "{name}");
        assert_eq!(publish(t, "n", 10).await.published, 1);
    }
}

/// A publish is bounded and reports whether more broadcasts are due (rules 5, 24).
pub async fn publishing_is_bounded(t: &Topic) {
    for n in 0..5 {
        t.add_job(NewJob { deliver: Delivery::Broadcast, ..delayed(&format!("c{n}"), ms(5 - n)) }).await;
    }
    t.advance(secs(1)).await;
    let mut subscriber = t.subscribe("n").await;
    for (count, more) in [(2, true), (2, true), (1, false)] {
        let published = publish(t, "n", 2).await;
        assert_eq!((published.published, published.more), (count, more));
    }
    assert_eq!(published_ids(&subscriber.received(t).await), ["c4", "c3", "c2", "c1", "c0"]);
}

/// The publisher is told when the next broadcast is due, and its role lapses like the watcher's (rule 24).
pub async fn publisher_sleeps_until_the_next_broadcast(t: &Topic) {
    t.add_job(NewJob { deliver: Delivery::Broadcast, ..delayed("a", secs(10)) }).await;
    assert_eq!(publish(t, "n", 10).await.sleep, secs(10));
    assert_eq!(publish(t, "m", 10).await.sleep, FALLBACK);
    t.advance(secs(4)).await;
    assert_eq!(publish(t, "n", 10).await.sleep, secs(6));
    t.advance(secs(6) + ms(201)).await;
    assert_eq!(publish(t, "m", 10).await.published, 1);
    t.add_job(NewJob { deliver: Delivery::Broadcast, ..delayed("b", secs(5)) }).await;
    assert_eq!(publish(t, "m", 10).await.sleep, secs(5), "m took over from n, which did not come in time");
}

/// An earlier broadcast is signalled, and does not count as a head of the queue (rules 23, 24).
pub async fn earlier_broadcast_is_signalled(t: &Topic) {
    let mut subscriber = t.subscribe("n").await;
    t.add_job(broadcast("a")).await;
    let signals = subscriber.received_all(t).await;
    assert!(signals.contains(&Signal::BroadcastDue), "{signals:?}");
    assert!(!signals.iter().any(|signal| matches!(signal, Signal::Due(_))), "{signals:?}");
}

/// An earlier broadcast is signalled to the publisher (rules 23, 24).
pub async fn earlier_broadcast_is_signalled_to_the_publisher(t: &Topic) {
    t.add_job(NewJob { deliver: Delivery::Broadcast, ..delayed("late", secs(10)) }).await;
    publish(t, "n", 10).await;
    let mut subscriber = t.subscribe("n").await;
    t.add_job(NewJob { deliver: Delivery::Broadcast, ..delayed("later", secs(11)) }).await;
    t.add_job(NewJob { deliver: Delivery::Broadcast, ..delayed("earlier", ms(0)) }).await;
    let signals = subscriber.received_all(t).await;
    assert_eq!(signals.iter().filter(|signal| **signal == Signal::BroadcastDue).count(), 1, "{signals:?}");
}

/// A replacement of a running job with `deliver = both` adds one job and one broadcast when the run ends (rules 13,
/// 24).
pub async fn replacement_for_both_adds_a_job_and_a_broadcast(t: &Topic) {
    let mut subscriber = t.subscribe("n").await;
    t.add_job(both("a")).await;
    let claim = t.claim("n", "a").await;
    let new = NewJob { deliver: Delivery::Both, on_duplicate: OnDuplicate::Replace, ..with_payload("a", "new") };
    assert_eq!(t.add_job(new.clone()).await, AddOutcome::ReplacementWaits);
    assert_eq!((publish(t, "n", 10).await.published, t.counts().await.broadcasts), (1, 0), "the old one only");
    t.end("n", &claim, Change::Ack).await;
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (1, 1));
    assert_eq!(publish(t, "n", 10).await.published, 1);
    let sent = sent(2, "a", &new);
    assert!(subscriber.received(t).await.contains(&sent));
    assert_eq!(t.payload("a").await, "new");
}

/// A delete of a running job removes its waiting broadcast (rule 24).
pub async fn delete_of_a_running_job_removes_its_broadcast(t: &Topic) {
    t.add_job(both("a")).await;
    let claim = t.claim("n", "a").await;
    assert!(t.delete("a").await.changed);
    t.end("n", &claim, Change::Retry(ms(0))).await;
    assert_eq!((t.counts().await.broadcasts, publish(t, "n", 10).await.published), (0, 0));
}
