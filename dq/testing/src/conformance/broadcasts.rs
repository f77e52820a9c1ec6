//! Broadcasts: they wait apart from the queue and are published once (rule 24).

use super::calls::{job, later, saying};
use super::topic::{FALLBACK, Topic, id, ms, secs};
use dq::job::{Deliver, State};
use dq::store::step::{self, Change, Published};
use dq::store::{AddOutcome, JobPlace, NewJob, OnDuplicate, Signal, StoreError};

const HOUR_MS: u64 = 3_600_000;

fn broadcast(name: &str) -> NewJob {
    NewJob { deliver: Deliver::Broadcast, ..job(name) }
}

fn both(name: &str) -> NewJob {
    NewJob { deliver: Deliver::Both, ..job(name) }
}

async fn publish(t: &Topic, node: &str, limit: usize) -> Published {
    let request = step::Publish { limit, fallback: FALLBACK, expires_after: ms(HOUR_MS) };
    let published = t.link(node).publish(request).await.expect("publish is answered");
    t.audit().await;
    published
}

fn published_ids(signals: &[Signal]) -> Vec<String> {
    let publish = |signal: &Signal| match signal {
        Signal::Broadcast(publish) => Some(publish.id.to_string()),
        _ => None,
    };
    signals.iter().filter_map(publish).collect()
}

/// A due broadcast is published once, with its record, to every subscriber, and is gone (rule 24).
pub async fn due_broadcast_is_published_once(t: &Topic) {
    let (mut one, mut two) = (t.listen("one").await, t.listen("two").await);
    assert_eq!(t.add_job(broadcast("a")).await, AddOutcome::Added);
    assert_eq!(t.counts().await.broadcasts, 1);
    let published = publish(t, "n", 10).await;
    assert_eq!((published.published, published.dropped, published.more), (1, 0, false));
    assert_eq!(t.counts().await.broadcasts, 0);
    assert_eq!(publish(t, "m", 10).await.published, 0);
    let sent = Signal::Broadcast(dq::store::BroadcastMessage {
        id: id("a"),
        record: broadcast("a").record.as_bytes().clone(),
    });
    for subscriber in [&mut one, &mut two] {
        let last_seen = subscriber.last_seen(t).await;
        assert_eq!(last_seen.iter().filter(|signal| **signal == sent).count(), 1, "{last_seen:?}");
    }
}

/// A broadcast is not published before it is due (rules 4, 24).
pub async fn broadcast_is_not_published_before_it_is_due(t: &Topic) {
    t.add_job(NewJob { deliver: Deliver::Broadcast, ..later("a", ms(1_500)) }).await;
    t.advance(std::time::Duration::from_micros(1_499_999)).await;
    assert_eq!(publish(t, "n", 10).await.published, 0);
    t.advance(std::time::Duration::from_micros(1)).await;
    assert_eq!(publish(t, "n", 10).await.published, 1);
}

/// A broadcast is no job of the queue: no node claims it (rule 24).
pub async fn broadcast_is_not_claimed(t: &Topic) {
    t.add_job(broadcast("a")).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0]);
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed, counts.ready, counts.head), (1, 0, 0, None));
    let scanned = t.scan().await;
    assert_eq!(scanned.records, scanned.places);
}

/// A broadcast that nobody served in time is dropped and counted: after its own expiry, or after the one the step names
/// (rule 24).
pub async fn broadcast_nobody_served_is_dropped(t: &Topic) {
    t.add_job(NewJob { expires_after: Some(secs(5)), ..broadcast("own") }).await;
    t.add_job(broadcast("default")).await;
    t.advance(ms(5_001)).await;
    t.add_job(NewJob { expires_after: Some(secs(5)), ..broadcast("fresh") }).await;
    let mut subscriber = t.listen("n").await;
    let published = publish(t, "n", 1_000).await;
    assert_eq!((published.published, published.dropped), (2, 1));
    let mut names = published_ids(&subscriber.last_seen(t).await);
    names.sort();
    assert_eq!(names, ["default", "fresh"]);
    t.add_job(broadcast("default")).await;
    t.advance(ms(HOUR_MS + 1)).await;
    let published = publish(t, "n", 10).await;
    assert_eq!((published.published, published.dropped), (0, 1));
    assert_eq!(t.counts().await.broadcasts, 0);
}

/// A broadcast that is served within its expiry is published (rule 24).
pub async fn broadcast_is_published_until_it_expires(t: &Topic) {
    t.add_job(NewJob { expires_after: Some(secs(5)), ..broadcast("a") }).await;
    t.advance(ms(4_999)).await;
    let published = publish(t, "n", 10).await;
    assert_eq!((published.published, published.dropped), (1, 0));
}

/// `deliver = both` is one of each (rule 24).
pub async fn both_is_one_of_each(t: &Topic) {
    assert_eq!(t.add_job(both("a")).await, AddOutcome::Added);
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (1, 1));
    let claim = t.claim("n", "a").await;
    assert_eq!(claim.record, both("a").record);
    assert_eq!(publish(t, "n", 10).await.published, 1);
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.find("a").await, None);
}

/// Retries, rejoins, rollbacks and reclaims of the queue's job publish nothing (rule 24).
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

/// Both are replaced together (rule 24).
pub async fn both_are_replaced_together(t: &Topic) {
    let mut subscriber = t.listen("n").await;
    t.add_job(both("a")).await;
    let new = NewJob { deliver: Deliver::Both, on_duplicate: OnDuplicate::Replace, ..saying("a", "new") };
    assert_eq!(t.add_job(new.clone()).await, AddOutcome::Replaced(State::Delayed));
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (1, 1));
    assert_eq!(t.says("a").await, "new");
    assert_eq!(publish(t, "n", 10).await.published, 1);
    let sent = Signal::Broadcast(dq::store::BroadcastMessage { id: id("a"), record: new.record.as_bytes().clone() });
    assert!(subscriber.last_seen(t).await.contains(&sent));
}

/// Both are deleted together (rule 24).
pub async fn both_are_deleted_together(t: &Topic) {
    t.add_job(both("a")).await;
    let outcome = t.delete("a").await;
    assert_eq!((outcome.found, outcome.changed), (Some(State::Delayed), true));
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (0, 0));
    assert_eq!((publish(t, "n", 10).await.published, t.claims("n").await.len()), (0, 0));
}

/// A waiting broadcast can be deleted, and counts as DELAYED (rule 24).
pub async fn waiting_broadcast_is_deleted(t: &Topic) {
    for verb in ["delete", "cancel"] {
        t.add_job(broadcast("a")).await;
        let outcome = if verb == "delete" { t.delete("a").await } else { t.cancel("a").await };
        assert_eq!((outcome.found, outcome.changed), (Some(State::Delayed), true), "{verb}");
        assert_eq!(outcome.removed, Some(broadcast("a").record), "{verb}");
        assert_eq!((t.counts().await.broadcasts, publish(t, "n", 10).await.published), (0, 0));
    }
}

/// A waiting broadcast's id is known to every add; a published one's is free (rules 2, 24).
pub async fn waiting_broadcast_is_known(t: &Topic) {
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
}

/// A look by id finds a waiting broadcast as DELAYED (rule 24).
pub async fn query_finds_a_waiting_broadcast(t: &Topic) {
    let waiting = NewJob { deliver: Deliver::Broadcast, ..later("a", secs(60)) };
    t.add_job(waiting.clone()).await;
    let found = t.stored("a").await;
    assert_eq!((found.place, found.record), (JobPlace::Delayed { due: t.in_ms(60_000) }, waiting.record));
    t.delete("a").await;
    assert_eq!(t.find("a").await, None);
}

/// A broadcast of the id of a queued, running, parked or dead job finds that job (rules 2, 24).
pub async fn queued_job_is_known_to_a_broadcast(t: &Topic) {
    for state in [State::Delayed, State::Running, State::Unacked, State::Dead] {
        super::drive::bring(t, state.word(), state).await;
        for new in [broadcast(state.word()), both(state.word())] {
            assert_eq!(t.add_job(new).await, AddOutcome::Exists(state));
        }
    }
    assert_eq!(t.counts().await.broadcasts, 0);
}

/// A replaced broadcast is published as the new one, when that is due (rule 24).
pub async fn replaced_broadcast_is_the_new_one(t: &Topic) {
    let mut subscriber = t.listen("n").await;
    t.add_job(broadcast("a")).await;
    let new = NewJob {
        deliver: Deliver::Broadcast,
        on_duplicate: OnDuplicate::Replace,
        record: saying("a", "new").record,
        ..later("a", secs(3))
    };
    assert_eq!(t.add_job(new.clone()).await, AddOutcome::Replaced(State::Delayed));
    assert_eq!((t.counts().await.broadcasts, publish(t, "n", 10).await.published), (1, 0));
    t.advance(secs(3)).await;
    assert_eq!(publish(t, "n", 10).await.published, 1);
    let sent = Signal::Broadcast(dq::store::BroadcastMessage { id: id("a"), record: new.record.as_bytes().clone() });
    assert!(subscriber.last_seen(t).await.contains(&sent));
}

/// Publishing is bounded and says that more is due; the earliest go first (rule 5).
pub async fn publishing_is_bounded(t: &Topic) {
    for n in 0..5 {
        t.add_job(NewJob { deliver: Deliver::Broadcast, ..later(&format!("c{n}"), ms(5 - n)) }).await;
    }
    t.advance(secs(1)).await;
    let mut subscriber = t.listen("n").await;
    for (count, more) in [(2, true), (2, true), (1, false)] {
        let published = publish(t, "n", 2).await;
        assert_eq!((published.published, published.more), (count, more));
    }
    assert_eq!(published_ids(&subscriber.last_seen(t).await), ["c4", "c3", "c2", "c1", "c0"]);
}

/// The caster is told the head of the broadcasts, the others the fallback (rule 23).
pub async fn publisher_is_told_the_head(t: &Topic) {
    t.add_job(NewJob { deliver: Deliver::Broadcast, ..later("a", secs(10)) }).await;
    assert_eq!(publish(t, "n", 10).await.sleep, secs(10));
    assert_eq!(publish(t, "m", 10).await.sleep, FALLBACK);
    t.advance(secs(4)).await;
    assert_eq!(publish(t, "n", 10).await.sleep, secs(6));
    t.advance(secs(6) + ms(201)).await;
    assert_eq!(publish(t, "m", 10).await.published, 1);
    t.add_job(NewJob { deliver: Deliver::Broadcast, ..later("b", secs(5)) }).await;
    assert_eq!(publish(t, "m", 10).await.sleep, secs(5), "m took over from n, which did not come");
}

/// An earlier head of the broadcasts is signalled, and is no head of the queue (rules 23, 24).
pub async fn earlier_broadcast_is_signalled(t: &Topic) {
    let mut subscriber = t.listen("n").await;
    t.add_job(broadcast("a")).await;
    let last_seen = subscriber.received_all(t).await;
    assert!(last_seen.contains(&Signal::BroadcastDue), "{last_seen:?}");
    assert!(!last_seen.contains(&Signal::Due), "{last_seen:?}");
}

/// Once somebody looks after the broadcasts, that node hears of an earlier one (rules 23, 24).
pub async fn publisher_learns_of_an_earlier_broadcast(t: &Topic) {
    t.add_job(NewJob { deliver: Deliver::Broadcast, ..later("late", secs(10)) }).await;
    publish(t, "n", 10).await;
    let mut subscriber = t.listen("n").await;
    t.add_job(NewJob { deliver: Deliver::Broadcast, ..later("later", secs(11)) }).await;
    t.add_job(NewJob { deliver: Deliver::Broadcast, ..later("earlier", ms(0)) }).await;
    let last_seen = subscriber.received_all(t).await;
    assert_eq!(last_seen.iter().filter(|signal| **signal == Signal::BroadcastDue).count(), 1, "{last_seen:?}");
}

/// A replacement of a running job that is for both comes as both when the run ends, and is one broadcast (rules 12, 24).
pub async fn replacement_for_both_comes_as_both(t: &Topic) {
    let mut subscriber = t.listen("n").await;
    t.add_job(both("a")).await;
    let claim = t.claim("n", "a").await;
    let new = NewJob { deliver: Deliver::Both, on_duplicate: OnDuplicate::Replace, ..saying("a", "new") };
    assert_eq!(t.add_job(new.clone()).await, AddOutcome::ReplacementWaits);
    t.end("n", &claim, Change::Ack).await;
    let counts = t.counts().await;
    assert_eq!((counts.broadcasts, counts.delayed), (1, 1));
    assert_eq!(publish(t, "n", 10).await.published, 1);
    let sent = Signal::Broadcast(dq::store::BroadcastMessage { id: id("a"), record: new.record.as_bytes().clone() });
    assert!(subscriber.last_seen(t).await.contains(&sent));
    assert_eq!(t.says("a").await, "new");
}

/// A delete of a running job takes the broadcast that was added with it and waits still (rule 24).
pub async fn delete_of_a_running_job_takes_its_broadcast(t: &Topic) {
    t.add_job(both("a")).await;
    let claim = t.claim("n", "a").await;
    assert!(t.delete("a").await.changed);
    t.end("n", &claim, Change::Retry(ms(0))).await;
    assert_eq!((t.counts().await.broadcasts, publish(t, "n", 10).await.published), (0, 0));
}

/// Publishing over the limit is refused (rule 5).
pub async fn publish_over_the_limit_changes_nothing(t: &Topic) {
    t.add_job(broadcast("a")).await;
    let request = step::Publish { limit: 1_001, fallback: FALLBACK, expires_after: ms(HOUR_MS) };
    let error = t.link("n").publish(request).await.expect_err("1,001 are too many");
    assert!(matches!(error, StoreError::OverLimit { size: 1_001, limit: 1_000, .. }), "{error}");
    assert_eq!(t.counts().await.broadcasts, 1);
}
