//! Who is told when to come, and who is woken (rule 23).

use std::time::Duration;

use super::calls::{job, replacing};
use super::subscriber::Subscriber;
use super::topic::{FALLBACK, START, Topic, ms, secs};
use dq::job::State;
use dq::store::Signal;
use dq::store::step::{Change, RejoinDue, Role, STANDBY_DELAY};
use dq::time::Timestamp;

async fn told(t: &Topic, node: &str) -> (Option<Role>, Duration) {
    let answer = t.transfer(node, 1).await;
    (answer.role, answer.sleep)
}

/// The first node that transfers is the watcher and told the head, the second the deputy and told a quarter of a second
/// after it, all others the fallback (rule 23).
pub async fn watcher_and_standby_are_told_the_head(t: &Topic) {
    t.add_later("a", secs(10)).await;
    assert_eq!(told(t, "w").await, (Some(Role::Watcher), secs(10)));
    assert_eq!(told(t, "d").await, (Some(Role::Standby), secs(10) + STANDBY_DELAY));
    assert_eq!(told(t, "o").await, (None, FALLBACK));
    t.advance(secs(1)).await;
    assert_eq!(told(t, "o").await, (None, FALLBACK));
    assert_eq!(told(t, "d").await, (Some(Role::Standby), secs(9) + STANDBY_DELAY));
    assert_eq!(told(t, "w").await, (Some(Role::Watcher), secs(9)));
}

/// Nobody is told to sleep longer than the fallback (rule 23).
pub async fn nobody_sleeps_longer_than_the_fallback(t: &Topic) {
    assert_eq!(told(t, "w").await, (Some(Role::Watcher), FALLBACK));
    t.add_later("a", FALLBACK + secs(60)).await;
    assert_eq!(told(t, "w").await, (Some(Role::Watcher), FALLBACK));
    assert_eq!(told(t, "d").await, (Some(Role::Standby), FALLBACK));
}

/// Who leaves due jobs behind as watcher is told to come at once (rule 23).
pub async fn watcher_that_leaves_due_jobs_is_told_to_come_at_once(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    assert_eq!(told(t, "w").await, (Some(Role::Watcher), Duration::ZERO));
}

/// A head that the watcher claimed is nobody's head any more (rule 23).
pub async fn claimed_head_is_not_told(t: &Topic) {
    t.add_all(vec![job("a"), super::calls::later("b", secs(4))]).await;
    assert_eq!(told(t, "w").await, (Some(Role::Watcher), secs(4)));
}

/// The watcher's role is free 200 ms past the time it was told, not before (rule 23).
pub async fn role_of_a_watcher_that_does_not_come_is_taken_over(t: &Topic) {
    t.add_later("a", secs(5)).await;
    t.add_later("b", secs(12)).await;
    told(t, "w").await;
    told(t, "d").await;
    t.set_clock(START + 5_199_000).await;
    assert_eq!(told(t, "o").await, (None, FALLBACK));
    t.set_clock(START + 5_201_000).await;
    assert_eq!(told(t, "o").await, (Some(Role::Watcher), ms(6_799)));
    assert_eq!(told(t, "w").await, (None, FALLBACK), "the deputy is still in time");
}

/// The deputy's role is free 200 ms past the time it was told, not before (rule 23).
pub async fn role_of_a_standby_that_does_not_come_is_taken_over(t: &Topic) {
    t.add_later("a", secs(5)).await;
    t.add_later("b", secs(12)).await;
    told(t, "w").await;
    told(t, "d").await;
    t.advance(secs(4)).await;
    told(t, "w").await;
    t.set_clock(START + 5_100_000).await;
    assert_eq!(told(t, "w").await, (Some(Role::Watcher), ms(6_900)));
    t.set_clock(START + 5_449_000).await;
    assert_eq!(told(t, "o").await, (None, FALLBACK));
    t.set_clock(START + 5_451_000).await;
    assert_eq!(told(t, "o").await, (Some(Role::Standby), ms(6_799)));
    assert_eq!(told(t, "d").await, (None, FALLBACK));
}

/// A deputy that takes over from the watcher leaves its own role free (rule 23).
pub async fn standby_that_takes_over_leaves_its_role(t: &Topic) {
    t.add_later("a", secs(5)).await;
    t.add_later("b", secs(12)).await;
    told(t, "w").await;
    told(t, "d").await;
    t.set_clock(START + 5_250_000).await;
    assert_eq!(told(t, "d").await, (Some(Role::Watcher), ms(6_750)));
    assert_eq!(told(t, "o").await, (Some(Role::Standby), ms(7_000)));
    assert_eq!(told(t, "w").await, (None, FALLBACK));
}

async fn give_up(t: &Topic, node: &str, way: &str) {
    if way == "wake" {
        t.wake(node).await;
    } else {
        t.release(node).await;
    }
}

/// `wake` and `release` free the roles of their node at once, and nobody else's (rule 23).
pub async fn roles_are_given_up(t: &Topic) {
    t.add_later("a", secs(10)).await;
    for way in ["wake", "release"] {
        told(t, "w").await;
        told(t, "d").await;
        give_up(t, "o", way).await;
        assert_eq!(told(t, "o").await.0, None, "another node's {way} frees nothing");
        give_up(t, "w", way).await;
        assert_eq!(told(t, "o").await.0, Some(Role::Watcher), "after {way}");
        assert_eq!(told(t, "w").await.0, None, "the deputy's role is not freed by {way} of the watcher");
        give_up(t, "d", way).await;
        assert_eq!(told(t, "w").await.0, Some(Role::Standby), "after {way}");
        for node in ["w", "o"] {
            t.wake(node).await;
        }
    }
}

/// `wake` calls the other nodes, whether its node has a role or not: somebody must take what it cannot (rule 23).
pub async fn wake_calls_the_others(t: &Topic) {
    t.add_all(vec![job("a"), job("b"), job("c")]).await;
    let (mut d, mut o) = (t.listen("d").await, t.listen("o").await);
    told(t, "w").await;
    told(t, "d").await;
    o.last_seen(t).await;
    for caller in ["n", "w"] {
        d.last_seen(t).await;
        t.wake(caller).await;
        assert!(d.last_seen(t).await.contains(&Signal::Due), "wake by {caller}");
        assert!(o.last_seen(t).await.contains(&Signal::Due), "wake by {caller}");
    }
}

/// The end of a watcher calls the others to what waits (rule 23).
pub async fn release_of_the_watcher_calls_the_others(t: &Topic) {
    t.add_later("a", secs(10)).await;
    told(t, "w").await;
    let mut o = t.listen("o").await;
    t.release("w").await;
    assert!(o.last_seen(t).await.contains(&Signal::Due));
}

/// An earlier head is signalled to the watcher alone; a later job to nobody (rule 23).
pub async fn earlier_head_wakes_the_watcher(t: &Topic) {
    t.add_later("a", secs(10)).await;
    told(t, "w").await;
    told(t, "o").await;
    let (mut w, mut o) = (t.listen("w").await, t.listen("o").await);
    t.add_later("later", secs(11)).await;
    assert_eq!((w.last_seen(t).await, o.last_seen(t).await), (vec![], vec![]));
    t.add_later("earlier", secs(9)).await;
    assert_eq!((w.last_seen(t).await, o.last_seen(t).await), (vec![Signal::Due], vec![]));
}

/// A watcher that did not come in time may be dead: an earlier head is signalled to everybody (rule 23).
pub async fn lapsed_watcher_is_not_the_only_one_told(t: &Topic) {
    told(t, "w").await;
    let mut o = t.listen("o").await;
    t.advance(FALLBACK + ms(200)).await;
    t.add_later("a", secs(9)).await;
    assert_eq!(o.last_seen(t).await, [], "the watcher is still in time");
    t.advance(ms(1)).await;
    t.add_later("b", secs(5)).await;
    assert_eq!(o.last_seen(t).await, [Signal::Due]);
}

/// Where there is no watcher, an earlier head is signalled to everybody (rule 23).
pub async fn earlier_head_wakes_all_where_nobody_watches(t: &Topic) {
    let (mut a, mut b) = (t.listen("a").await, t.listen("b").await);
    t.add_later("x", secs(10)).await;
    assert!(a.last_seen(t).await.contains(&Signal::Due));
    assert!(b.last_seen(t).await.contains(&Signal::Due));
}

async fn wakes(t: &Topic, subscriber: &mut Subscriber, step: &str) {
    assert_eq!(subscriber.last_seen(t).await, [Signal::Due], "{step} makes an earlier head");
}

/// Whatever makes an earlier head signals it: retry, rejoin, rollback, requeue, reclaim, a replacement that takes the place
/// (rule 23).
pub async fn every_earlier_head_is_signalled(t: &Topic) {
    t.add_later("far", secs(3_600)).await;
    let mut subscriber = t.listen("n").await;
    let changes = [Change::Retry(ms(5)), Change::Rejoin(RejoinDue::After(ms(5))), Change::Rollback];
    for change in changes {
        let claim = t.running("n", "a").await;
        subscriber.last_seen(t).await;
        t.end("n", &claim, change.clone()).await;
        wakes(t, &mut subscriber, &format!("{change:?}")).await;
        t.delete("a").await;
    }
    for change in [Change::Park, Change::Dead] {
        let claim = t.running("n", "a").await;
        t.end("n", &claim, change.clone()).await;
        subscriber.last_seen(t).await;
        t.requeue("a").await;
        wakes(t, &mut subscriber, &format!("requeue after {change:?}")).await;
        t.delete("a").await;
    }
    let claim = t.running("n", "a").await;
    t.add_job(replacing("a", "new")).await;
    subscriber.last_seen(t).await;
    t.end("n", &claim, Change::Ack).await;
    wakes(t, &mut subscriber, "a replacement").await;
    t.claim("n", "a").await;
    subscriber.last_seen(t).await;
    t.crash("n").await;
    wakes(t, &mut subscriber, "reclaim").await;
    assert_eq!(t.state("a").await, Some(State::Delayed));
}

/// What is told counts from the store's clock, and a clock that jumped back makes nobody sleep beyond the fallback
/// (rules 20, 23).
pub async fn clock_that_jumps_back_makes_nobody_sleep_long(t: &Topic) {
    t.add_later("a", secs(10)).await;
    told(t, "w").await;
    t.set_clock(START - 3_600_000_000).await;
    assert_eq!(told(t, "w").await, (Some(Role::Watcher), FALLBACK));
    assert_eq!(t.due("a").await, Timestamp::from_millis(START / 1_000 + 10_000));
}
