//! The watcher and the standby watcher: how long nodes sleep, and which are signalled (rule 23).

use std::time::Duration;

use super::broadcasts::publish;
use super::producer::{delayed, job, replacing};
use super::subscriber::Subscriber;
use super::topic::{FALLBACK, START, Topic, ms, secs};
use dq::job::{Delivery, State};
use dq::store::step::{Change, ROLE_SLACK, RejoinDue, Role, STANDBY_DELAY};
use dq::store::{NewJob, Signal};
use dq::time::Timestamp;

/// The role that a transfer gives a node, and how long the node is to sleep.
async fn role_and_sleep(t: &Topic, node: &str) -> (Option<Role>, Duration) {
    let answer = t.transfer(node, 1).await;
    (answer.role, answer.sleep)
}

/// The first node to transfer is the watcher and is told the head, the second is the standby watcher and is told a
/// quarter of a second later, and all others are told the fallback (rule 23).
pub async fn watcher_and_standby_sleep_until_the_head(t: &Topic) {
    t.add_later("a", secs(10)).await;
    assert_eq!(role_and_sleep(t, "w").await, (Some(Role::Watcher), secs(10)));
    assert_eq!(role_and_sleep(t, "s").await, (Some(Role::Standby), secs(10) + STANDBY_DELAY));
    assert_eq!(role_and_sleep(t, "o").await, (None, FALLBACK));
    t.advance(secs(1)).await;
    assert_eq!(role_and_sleep(t, "o").await, (None, FALLBACK));
    assert_eq!(role_and_sleep(t, "s").await, (Some(Role::Standby), secs(9) + STANDBY_DELAY));
    assert_eq!(role_and_sleep(t, "w").await, (Some(Role::Watcher), secs(9)));
}

/// No node is told to sleep longer than the fallback (rule 23).
pub async fn no_node_sleeps_longer_than_the_fallback(t: &Topic) {
    assert_eq!(role_and_sleep(t, "w").await, (Some(Role::Watcher), FALLBACK));
    t.add_later("a", FALLBACK + secs(60)).await;
    assert_eq!(role_and_sleep(t, "w").await, (Some(Role::Watcher), FALLBACK));
    assert_eq!(role_and_sleep(t, "s").await, (Some(Role::Standby), FALLBACK));
}

/// A watcher that leaves due jobs behind is told to come again at once (rule 23).
pub async fn watcher_that_leaves_due_jobs_comes_again_at_once(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    assert_eq!(role_and_sleep(t, "w").await, (Some(Role::Watcher), Duration::ZERO));
}

/// A job that the watcher has claimed is no longer the head (rule 23).
pub async fn claimed_job_is_not_the_head(t: &Topic) {
    t.add_all(vec![job("a"), delayed("b", secs(4))]).await;
    assert_eq!(role_and_sleep(t, "w").await, (Some(Role::Watcher), secs(4)));
}

/// The watcher's role lapses 200 ms after the time that the watcher was told, not earlier (rule 23).
pub async fn role_of_a_watcher_that_does_not_come_is_taken_over(t: &Topic) {
    t.add_later("a", secs(5)).await;
    t.add_later("b", secs(12)).await;
    role_and_sleep(t, "w").await;
    role_and_sleep(t, "s").await;
    t.set_clock(START + 5_199_000).await;
    assert_eq!(role_and_sleep(t, "o").await, (None, FALLBACK));
    t.set_clock(START + 5_201_000).await;
    assert_eq!(role_and_sleep(t, "o").await, (Some(Role::Watcher), ms(6_799)));
    assert_eq!(role_and_sleep(t, "w").await, (None, FALLBACK), "the standby watcher is still in time");
}

/// The standby watcher's role lapses 200 ms after the time that the standby was told, not earlier (rule 23).
pub async fn role_of_a_standby_that_does_not_come_is_taken_over(t: &Topic) {
    t.add_later("a", secs(5)).await;
    t.add_later("b", secs(12)).await;
    role_and_sleep(t, "w").await;
    role_and_sleep(t, "s").await;
    t.advance(secs(4)).await;
    role_and_sleep(t, "w").await;
    t.set_clock(START + 5_100_000).await;
    assert_eq!(role_and_sleep(t, "w").await, (Some(Role::Watcher), ms(6_900)));
    t.set_clock(START + 5_449_000).await;
    assert_eq!(role_and_sleep(t, "o").await, (None, FALLBACK));
    t.set_clock(START + 5_451_000).await;
    assert_eq!(role_and_sleep(t, "o").await, (Some(Role::Standby), ms(6_799)));
    assert_eq!(role_and_sleep(t, "s").await, (None, FALLBACK));
}

/// A standby watcher that becomes the watcher leaves its old role free (rule 23).
pub async fn standby_that_takes_over_leaves_its_role(t: &Topic) {
    t.add_later("a", secs(5)).await;
    t.add_later("b", secs(12)).await;
    role_and_sleep(t, "w").await;
    role_and_sleep(t, "s").await;
    t.set_clock(START + 5_250_000).await;
    assert_eq!(role_and_sleep(t, "s").await, (Some(Role::Watcher), ms(6_750)));
    assert_eq!(role_and_sleep(t, "o").await, (Some(Role::Standby), ms(7_000)));
    assert_eq!(role_and_sleep(t, "w").await, (None, FALLBACK));
}

async fn free_roles(t: &Topic, node: &str, way: &str) {
    if way == "wake" {
        t.wake(node).await;
    } else {
        t.release(node).await;
    }
}

/// `wake` and `release` free the roles of their own node at once, and of no other (rule 23).
pub async fn wake_and_release_free_the_roles(t: &Topic) {
    t.add_later("a", secs(10)).await;
    for way in ["wake", "release"] {
        role_and_sleep(t, "w").await;
        role_and_sleep(t, "s").await;
        free_roles(t, "o", way).await;
        assert_eq!(role_and_sleep(t, "o").await.0, None, "another node's {way} frees nothing");
        free_roles(t, "w", way).await;
        assert_eq!(role_and_sleep(t, "o").await.0, Some(Role::Watcher), "after {way}");
        assert_eq!(
            role_and_sleep(t, "w").await.0,
            None,
            "{way} of the watcher does not free the role of the standby watcher"
        );
        free_roles(t, "s", way).await;
        assert_eq!(role_and_sleep(t, "w").await.0, Some(Role::Standby), "after {way}");
        for node in ["w", "o"] {
            t.wake(node).await;
        }
    }
}

/// `wake` signals the other nodes, whether its node has a role or not (rule 23).
pub async fn wake_signals_the_other_nodes(t: &Topic) {
    t.add_all(vec![job("a"), job("b"), job("c")]).await;
    let (mut s, mut o) = (t.subscribe("s").await, t.subscribe("o").await);
    role_and_sleep(t, "w").await;
    role_and_sleep(t, "s").await;
    o.received(t).await;
    for caller in ["n", "w"] {
        s.received(t).await;
        t.wake(caller).await;
        assert!(s.received(t).await.contains(&Signal::Due(None)), "wake by {caller}");
        assert!(o.received(t).await.contains(&Signal::Due(None)), "wake by {caller}");
    }
}

/// The release of the watcher signals the other nodes if a job waits (rule 23).
pub async fn release_of_the_watcher_signals_the_other_nodes(t: &Topic) {
    t.add_later("a", secs(10)).await;
    role_and_sleep(t, "w").await;
    let mut o = t.subscribe("o").await;
    t.release("w").await;
    assert!(o.received(t).await.contains(&Signal::Due(None)));
}

/// An earlier head is signalled to the watcher only, with its due time; a later job is not signalled (rule 23).
pub async fn earlier_head_wakes_the_watcher(t: &Topic) {
    t.add_later("a", secs(10)).await;
    role_and_sleep(t, "w").await;
    role_and_sleep(t, "o").await;
    let (mut w, mut o) = (t.subscribe("w").await, t.subscribe("o").await);
    t.add_later("later", secs(11)).await;
    assert_eq!((w.received(t).await, o.received(t).await), (vec![], vec![]));
    t.add_later("earlier", secs(9)).await;
    let due = t.due("earlier").await;
    assert_eq!((w.received(t).await, o.received(t).await), (vec![Signal::Due(Some(due))], vec![]));
    t.add_all(vec![delayed("b", secs(8)), delayed("c", secs(6)), delayed("d", secs(7))]).await;
    let due = t.due("c").await;
    assert_eq!((w.received(t).await, o.received(t).await), (vec![Signal::Due(Some(due))], vec![]), "the new head");
}

/// A watcher that was told of an earlier head loses its role 200 ms after that is due, not earlier, unless it comes (rule 23).
pub async fn watcher_that_does_not_come_for_an_earlier_head_is_replaced(t: &Topic) {
    t.add_later("far", secs(14)).await;
    role_and_sleep(t, "w").await;
    let mut w = t.subscribe("w").await;
    t.add_later("a", secs(5)).await;
    assert_eq!(w.received(t).await, [Signal::Due(Some(t.due("a").await))]);
    role_and_sleep(t, "s").await;
    t.set_clock(START + 5_200_000).await;
    assert_eq!(role_and_sleep(t, "o").await, (None, FALLBACK), "the watcher is still in time");
    t.set_clock(START + 5_201_000).await;
    assert_eq!(role_and_sleep(t, "o").await, (Some(Role::Watcher), ms(8_799)));
}

/// A watcher that was told of an earlier head and comes for it keeps its role (rule 23).
pub async fn watcher_that_comes_for_an_earlier_head_keeps_its_role(t: &Topic) {
    t.add_later("far", secs(14)).await;
    role_and_sleep(t, "w").await;
    let _w = t.subscribe("w").await;
    t.add_later("a", secs(5)).await;
    t.set_clock(START + 5_100_000).await;
    assert_eq!(role_and_sleep(t, "w").await, (Some(Role::Watcher), ms(8_900)));
    t.set_clock(START + 5_300_000).await;
    assert_eq!(role_and_sleep(t, "o").await.0, Some(Role::Standby));
    assert_eq!(role_and_sleep(t, "x").await, (None, FALLBACK));
}

/// A head that is due later than the watcher would come anyway does not prolong its role (rule 23).
pub async fn signal_prolongs_no_role(t: &Topic) {
    role_and_sleep(t, "w").await;
    let _w = t.subscribe("w").await;
    t.add_later("a", FALLBACK + secs(60)).await;
    t.advance(FALLBACK + ms(200)).await;
    assert_eq!(role_and_sleep(t, "o").await.0, Some(Role::Standby), "the watcher is still in time");
    t.advance(ms(1)).await;
    assert_eq!(role_and_sleep(t, "o").await.0, Some(Role::Watcher));
}
/// An earlier head is signalled to every node when the signal to the watcher reaches no subscriber: the watcher has just
/// died, and nobody waits for its role to lapse (rule 23).
pub async fn earlier_head_wakes_all_nodes_when_the_watcher_does_not_listen(t: &Topic) {
    role_and_sleep(t, "w").await;
    let mut o = t.subscribe("o").await;
    t.add_later("a", secs(9)).await;
    assert_eq!(o.received(t).await, [Signal::Due(None)]);
}

/// A watcher that does not listen loses its role: the node that its signal wakes sleeps until the head is due, even if a
/// dead node has the role of standby watcher (rule 23).
pub async fn watcher_that_does_not_listen_loses_its_role(t: &Topic) {
    role_and_sleep(t, "w").await;
    assert_eq!(role_and_sleep(t, "s").await.0, Some(Role::Standby));
    assert_eq!(role_and_sleep(t, "o").await, (None, FALLBACK));
    let _o = t.subscribe("o").await;
    t.add_later("a", secs(9)).await;
    assert_eq!(role_and_sleep(t, "o").await, (Some(Role::Watcher), secs(9)));
}

/// An earlier head is signalled to every node once the watcher's role has lapsed, because the watcher may be dead (rule
/// 23).
pub async fn earlier_head_wakes_all_nodes_once_the_watcher_has_lapsed(t: &Topic) {
    role_and_sleep(t, "w").await;
    let (_w, mut o) = (t.subscribe("w").await, t.subscribe("o").await);
    t.advance(FALLBACK + ms(200)).await;
    t.add_later("a", secs(9)).await;
    assert_eq!(o.received(t).await, [], "the watcher is still in time");
    t.advance(ms(1)).await;
    t.add_later("b", secs(5)).await;
    assert_eq!(o.received(t).await, [Signal::Due(None)]);
}

/// An earlier head is signalled to every node if there is no watcher (rule 23).
pub async fn earlier_head_wakes_all_nodes_without_a_watcher(t: &Topic) {
    let (mut a, mut b) = (t.subscribe("a").await, t.subscribe("b").await);
    t.add_later("x", secs(10)).await;
    assert!(a.received(t).await.contains(&Signal::Due(None)));
    assert!(b.received(t).await.contains(&Signal::Due(None)));
}

async fn assert_wakes(t: &Topic, subscriber: &mut Subscriber, step: &str) {
    let (received, due) = (subscriber.received(t).await, t.due("a").await);
    let is_told = matches!(received[..], [Signal::Due(at)] if at.is_none_or(|at| at == due));
    assert!(is_told, "{step} makes an earlier head: {received:?}, due {due}");
}

/// Every step that makes an earlier head signals it: retry, rejoin, rollback, requeue, reclaim, and a replacement that
/// takes its place (rule 23).
pub async fn every_earlier_head_is_signalled(t: &Topic) {
    t.add_later("far", secs(3_600)).await;
    let mut subscriber = t.subscribe("n").await;
    let changes = [Change::Retry(ms(5)), Change::Rejoin(RejoinDue::After(ms(5))), Change::Rollback];
    for change in changes {
        let claim = t.running("n", "a").await;
        subscriber.received(t).await;
        t.end("n", &claim, change.clone()).await;
        assert_wakes(t, &mut subscriber, &format!("{change:?}")).await;
        t.delete("a").await;
    }
    for change in [Change::Park, Change::Dead] {
        t.add_and_run("n", "a", change.clone()).await;
        subscriber.received(t).await;
        t.requeue("a").await;
        assert_wakes(t, &mut subscriber, &format!("requeue after {change:?}")).await;
        t.delete("a").await;
    }
    let claim = t.running("n", "a").await;
    t.add_job(replacing("a", "new")).await;
    subscriber.received(t).await;
    t.end("n", &claim, Change::Ack).await;
    assert_wakes(t, &mut subscriber, "a replacement").await;
    t.claim("n", "a").await;
    subscriber.received(t).await;
    t.crash("n").await;
    assert_wakes(t, &mut subscriber, "reclaim").await;
    assert_eq!(t.state("a").await, Some(State::Delayed));
}

/// A clock that jumps back makes no node sleep longer than the fallback (rules 20, 23).
pub async fn clock_that_jumps_back_prolongs_no_sleep(t: &Topic) {
    t.add_later("a", secs(10)).await;
    role_and_sleep(t, "w").await;
    t.set_clock(START - 3_600_000_000).await;
    assert_eq!(role_and_sleep(t, "w").await, (Some(Role::Watcher), FALLBACK));
    assert_eq!(t.due("a").await, Timestamp::from_millis(START / 1_000 + 10_000));
}

/// After the clock jumped back, the roles of a dead node end far in the future. A step of another node cuts them to what a
/// holder could have asked for: the fallback before its jitter, which takes up to a fifth, and the slack (rules 20, 23).
pub async fn roles_of_a_dead_node_are_cut_after_the_clock_jumped_back(t: &Topic) {
    t.add_later("a", secs(3_600)).await;
    t.add_job(NewJob { deliver: Delivery::Broadcast, ..delayed("b", secs(3_600)) }).await;
    role_and_sleep(t, "w").await;
    role_and_sleep(t, "s").await;
    publish(t, "p", 1).await;
    t.set_clock(START - 7_200_000_000).await;
    assert_eq!(role_and_sleep(t, "o").await, (None, FALLBACK));
    assert_eq!(publish(t, "o", 1).await.sleep, FALLBACK);
    let longest = FALLBACK * 5 / 4 + ROLE_SLACK;
    t.advance(longest).await;
    assert_eq!(role_and_sleep(t, "o").await.0, None, "not yet");
    t.advance(ms(1)).await;
    assert_eq!(role_and_sleep(t, "o").await.0, Some(Role::Watcher));
    assert_eq!(role_and_sleep(t, "x").await.0, Some(Role::Standby));
    t.add_job(NewJob { deliver: Delivery::Broadcast, ..delayed("d", secs(5)) }).await;
    assert_eq!(publish(t, "o", 1).await.sleep, secs(5), "o is the publisher");
}
