//! How many jobs of a topic are RUNNING on all nodes together (rule 29).

use super::producer::job;
use super::setting::{by_anna, limit_to};
use super::topic::{FALLBACK, LEASE, Topic, ms, secs};
use dq::store::step::{Change, RejoinDue};
use dq::store::{
    Limit, LimitKind, LinkOptions, MAX_CONCURRENCY, MAX_WAITING, Signal, StoreError, TopicChange, TopicLimit,
    TopicState,
};

async fn limit(t: &Topic, limit: usize) {
    t.set(limit_to(Limit::ClusterConcurrency(limit), "")).await;
}

async fn shut(t: &Topic) -> Option<usize> {
    t.store.overview(&t.key, 0).await.expect("overview is answered").shut
}

/// All nodes together claim no more than may run. What is due beyond that is not *more*, and nobody comes for it (rule 29).
pub async fn no_more_jobs_run_on_all_nodes_than_may(t: &Topic) {
    limit(t, 3).await;
    t.add_all(["a", "b", "c", "d", "e"].map(job).to_vec()).await;
    let first = t.transfer("n", 2).await;
    assert_eq!((first.claims.len(), first.more, shut(t).await), (2, true, None), "there is one slot left");
    let second = t.transfer("m", 10).await;
    assert_eq!((second.claims.len(), second.more, second.sleep), (1, false, FALLBACK));
    assert_eq!(shut(t).await, Some(3));
    for node in ["n", "m", "o"] {
        assert_eq!(t.claimed_ids(node).await, [""; 0]);
    }
    t.end("n", &first.claims[0], Change::Ack).await;
    t.end("n", &first.claims[1], Change::Ack).await;
    let third = t.transfer("o", 10).await;
    assert_eq!((third.claims.len(), third.more), (2, false), "the last jobs have the slots of the first");
    assert_eq!(shut(t).await, None, "nothing waits");
}

/// Every way out of RUNNING gives the slot back: outcomes, a rollback, a release and the end of a lease (rule 29).
pub async fn every_end_of_a_run_gives_its_slot_back(t: &Topic) {
    limit(t, 1).await;
    let hour = secs(3_600);
    let later = Change::Rejoin(RejoinDue::After(hour));
    let changes = [Change::Ack, Change::Retry(hour), later, Change::Park, Change::Dead, Change::Drop];
    for (n, change) in changes.into_iter().enumerate() {
        let text = format!("{change:?}");
        let claim = t.running("n", &format!("{n}")).await;
        t.add(&format!("next-{n}")).await;
        assert_eq!(t.claimed_ids("m").await, [""; 0], "{text}");
        t.end("n", &claim, change).await;
        t.run("m", &format!("next-{n}"), Change::Ack).await;
    }
    let claim = t.running("n", "back").await;
    t.end("n", &claim, Change::Rollback).await;
    t.claim("m", "back").await;
    t.crash("m").await;
    let claim = t.claim("n", "back").await;
    t.end("n", &claim, Change::Ack).await;
    t.running("left", "b").await;
    t.release("left").await;
    t.reclaim("n", "left", dq::time::Timestamp::EPOCH, 10).await;
    t.claim("n", "b").await;
}

/// Who ends a run while due jobs wait for a slot wakes the watcher, once, however many have ended (rules 23 and 29).
pub async fn free_slot_wakes_the_watcher_once(t: &Topic) {
    limit(t, 2).await;
    t.add_all(["a", "b", "c", "d"].map(job).to_vec()).await;
    let mut claims = t.transfer("n", 10).await.claims;
    claims.sort_by_key(|claim| claim.id.clone());
    let (mut n, mut m) = (t.subscribe("n").await, t.subscribe("m").await);
    t.transfer("m", 10).await;
    let woken = |signals: Vec<Signal>| signals.iter().filter(|signal| matches!(signal, Signal::Due(_))).count();
    assert_eq!((woken(n.received(t).await), woken(m.received(t).await)), (0, 0));
    for claim in &claims {
        t.end("n", claim, Change::Ack).await;
    }
    assert_eq!((woken(n.received(t).await), woken(m.received(t).await)), (1, 0), "the watcher, and nobody else");
    let next = t.transfer("n", 10).await.claims;
    assert_eq!((next.len(), shut(t).await), (2, None));
    for claim in &next {
        t.end("n", claim, Change::Ack).await;
    }
    assert_eq!(woken(n.received(t).await), 0, "nothing waits for a slot");
}

/// While due jobs wait for a slot, the watcher does not know what is due later. Another node whose claim finds that none of them waits any
/// more tells it (rules 23 and 29).
pub async fn watcher_is_told_of_the_later_head_when_no_due_job_waits(t: &Topic) {
    limit(t, 1).await;
    t.add_all(["a", "b"].map(job).to_vec()).await;
    t.add_later("later", secs(60)).await;
    let watches = t.transfer("n", 10).await;
    assert_eq!((watches.claims.len(), watches.sleep, shut(t).await), (1, FALLBACK, Some(1)));
    let mut n = t.subscribe("n").await;
    let waits = if watches.claims[0].id.as_str() == "a" { "b" } else { "a" };
    t.delete(waits).await;
    n.received(t).await;
    assert_eq!((t.claimed_ids("m").await, shut(t).await), (Vec::new(), None));
    let received = n.received(t).await;
    assert!(received.iter().any(|signal| matches!(signal, Signal::Due(_))), "{received:?}");
}

/// A reclaim wakes the watcher as well, and so does an end that is not only an ack (rules 23 and 29).
pub async fn slot_of_a_dead_node_wakes_the_watcher(t: &Topic) {
    limit(t, 1).await;
    t.transfer("w", 1).await;
    let mut w = t.subscribe("w").await;
    for (name, dies) in [("a", true), ("b", false)] {
        let claim = t.running("n", name).await;
        t.add(&format!("{name}-waits")).await;
        assert_eq!(t.claimed_ids("w").await, [""; 0]);
        w.received(t).await;
        if dies {
            t.advance(LEASE + ms(1)).await;
            t.transfer("w", 1).await;
            w.received(t).await;
            let seen = t.lease("n").await.expect("it has a row");
            t.reclaim("w", "n", seen, 10).await;
        } else {
            t.end("n", &claim, Change::Retry(secs(3_600))).await;
        }
        let received = w.received(t).await;
        assert!(received.iter().any(|signal| matches!(signal, Signal::Due(_))), "{name}: {received:?}");
        for claim in t.transfer("w", 10).await.claims {
            t.end("w", &claim, Change::Ack).await;
        }
        for claim in t.transfer("w", 10).await.claims {
            t.end("w", &claim, Change::Ack).await;
        }
    }
}

/// What was set outweighs what the code of a node says, is kept with its author, and told in answers (rule 29).
pub async fn limit_that_was_set_outweighs_the_code(t: &Topic) {
    let options = LinkOptions { concurrency: Some(1), ..LinkOptions::default() };
    t.linked("n", options);
    t.add_all(["a", "b", "c", "d"].map(job).to_vec()).await;
    assert_eq!(t.transfer("n", 10).await.claims.len(), 1);
    assert_eq!((t.claimed_ids("n").await.len(), shut(t).await), (0, Some(1)));
    let state = |limit| {
        let limit = Limit::ClusterConcurrency(limit);
        let set = TopicLimit { limit, reason: "the bank; asked".into(), by: "anna".into(), since: t.now() };
        TopicState { limits: vec![set], ..TopicState::default() }
    };
    let mut n = t.subscribe("n").await;
    let first = state(3);
    let answer = t.set(limit_to(Limit::ClusterConcurrency(3), "the bank; asked")).await;
    assert_eq!((answer.before, answer.now), (TopicState::default(), first.clone()));
    assert_eq!(n.received(t).await, [Signal::StateChanged], "there may be room now");
    let claims = t.transfer("n", 10).await;
    assert_eq!((claims.claims.len(), claims.state.as_deref()), (2, Some(&first)));
    assert_eq!((t.topic_state().await, t.scan().await.state.as_deref()), (first.clone(), Some(&first)));
    t.advance(secs(1)).await;
    assert_eq!(t.set(TopicChange::ClearLimit(LimitKind::ClusterConcurrency)).await.before, first);
    t.end("n", &claims.claims[0], Change::Ack).await;
    assert_eq!(t.claimed_ids("n").await, [""; 0], "two run, and the code says one");
    assert_eq!(t.claimed_ids("m").await.len(), 1, "a node whose code says nothing takes what is due");
}

/// Limits of different kinds are kept beside each other, in order, each until it is cleared (rule 29).
pub async fn limits_of_two_kinds_are_kept_beside_each_other(t: &Topic) {
    t.set(limit_to(Limit::MaxWaiting(9), "")).await;
    t.set(limit_to(Limit::ClusterConcurrency(2), "why")).await;
    t.set(limit_to(Limit::MaxWaiting(8), "")).await;
    let limits = async || t.topic_state().await.limits.iter().map(|set| set.limit).collect::<Vec<_>>();
    assert_eq!(limits().await, [Limit::ClusterConcurrency(2), Limit::MaxWaiting(8)]);
    let cleared = t.set(TopicChange::ClearLimit(LimitKind::ClusterConcurrency)).await.before.limits;
    assert_eq!((cleared[0].limit, cleared[0].reason.as_str()), (Limit::ClusterConcurrency(2), "why"));
    assert_eq!(limits().await, [Limit::MaxWaiting(8)]);
    assert_eq!(t.transfer("n", 1).await.state.expect("it is told").limits.len(), 1);
}

/// A sweep claims no more UNACKED jobs than there are slots (rules 25 and 29).
pub async fn sweep_takes_slots_too(t: &Topic) {
    for name in ["a", "b"] {
        t.add_and_run("n", name, Change::Park).await;
    }
    limit(t, 1).await;
    t.advance(secs(8 * 24 * 3_600)).await;
    let swept = t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!(swept.claims.len(), 1);
    let none = t.sweep("m", t.sweep_of("m", 10)).await;
    assert_eq!((none.claims.len(), none.more), (0, true), "there is more, once a slot is free");
    t.end("n", &swept.claims[0], Change::Ack).await;
    assert_eq!(t.sweep("m", t.sweep_of("m", 10)).await.claims.len(), 1);
}

/// A limit is at least one and has a bound; what is refused changes nothing (rule 29).
pub async fn limit_is_within_its_bounds(t: &Topic) {
    let bad = [Limit::ClusterConcurrency(0), Limit::ClusterConcurrency(MAX_CONCURRENCY + 1)];
    for bad in bad.into_iter().chain([Limit::MaxWaiting(0), Limit::MaxWaiting(MAX_WAITING + 1)]) {
        let set = by_anna(limit_to(bad, ""));
        let error = t.producer_named("q").set(1, set).await.expect_err("it is out of bounds");
        assert!(matches!(error, StoreError::OverLimit { .. }), "{error}");
    }
    assert_eq!(t.topic_state().await, TopicState::default());
    limit(t, MAX_CONCURRENCY).await;
    t.running("n", "a").await;
}
