//! A topic that drains (rule 29): it takes no new jobs, what was due runs, and what waits for later stays.

use super::broadcasts::publish;
use super::changes::update;
use super::copies::{copy, import_of};
use super::producer::{job, replacing};
use super::setting::drain;
use super::topic::{FALLBACK, Topic, ms, secs};
use dq::job::{Delivery, State};
use dq::store::step::{Change, MAX_JOBS};
use dq::store::{ChangeKind, Drain, Due, NewJob, Numbered, OnDuplicate, Signal, StoreError, TopicChange, TopicState};
use dq::time::Timestamp;

fn draining(reason: &str, since: Timestamp) -> TopicState {
    TopicState { drain: Some(Drain { reason: reason.into(), by: "anna".into(), since }), ..TopicState::default() }
}

fn is_draining(error: &StoreError) -> bool {
    matches!(error, StoreError::Draining { reason, by } if reason == "why: 1; 2" && by == "anna")
}

/// Adds and imports are refused with reason and author, replacements too, and nothing is done. Commands go on (rule 29).
pub async fn draining_topic_refuses_new_jobs(t: &Topic) {
    t.add_later("a", secs(60)).await;
    t.set(drain("why: 1; 2")).await;
    let special = NewJob { deliver: Delivery::Both, expires_after: Some(secs(1)), ..job("both") };
    let generated = NewJob { generated: true, ..job("generated") };
    let far = NewJob { due: Due::After(secs(3_600)), ..job("far") };
    for new in [job("b"), replacing("a", "new"), special, generated, far] {
        let error = t.producer().add(t.numbered(vec![new])).await.expect_err("the topic drains");
        assert!(is_draining(&error) && error.nothing_done() && !error.is_outage(), "{error}");
    }
    let copies = vec![copy("c", State::Dead, t.now())];
    let import = t.try_import(import_of(copies, OnDuplicate::Keep)).await;
    assert!(is_draining(&import.expect_err("the topic drains")));
    let counts = t.store.counts(&t.key).await.expect("counts is answered");
    assert_eq!((counts.delayed, counts.dead, counts.broadcasts), (1, 0, 0));
    assert_eq!(t.state("a").await, Some(State::Delayed));
    assert!(t.delete("a").await.changed);
    t.set(TopicChange::Undrain).await;
    t.add("b").await;
    t.claim("n", "b").await;
}

/// Commands and changes go on. What they make due now was not due when the drain began, so it waits (rule 29).
pub async fn commands_of_a_draining_topic_go_on(t: &Topic) {
    super::events::add_in_state(t, "dead", State::Dead).await;
    for name in ["acked", "cancelled", "deleted", "moved", "updated"] {
        t.add_later(name, secs(60)).await;
    }
    t.set(drain("why")).await;
    t.advance(ms(1)).await;
    assert!(t.delete("deleted").await.changed && t.cancel("cancelled").await.changed);
    assert!(t.ack_outside("acked").await.changed && t.requeue("dead").await.changed);
    t.changed("moved", ChangeKind::Reschedule(Due::After(ms(0)))).await;
    t.changed("updated", update("new")).await;
    assert_eq!((t.claimed_ids("n").await, t.payload("updated").await), (vec![], "new".to_owned()));
    t.set(TopicChange::Undrain).await;
    assert_eq!(t.claimed_ids("n").await, ["dead", "moved"]);
}

/// A repeat of an add that was done before answers what it answered (rules 18 and 29).
pub async fn add_from_before_a_drain_is_answered_again(t: &Topic) {
    let p = t.producer_named("p");
    let batch = || Numbered { number: 1, items: vec![job("a")] };
    let first = p.add(batch()).await.expect("add is answered");
    t.set(drain("why")).await;
    assert_eq!(p.add(batch()).await.expect("add is answered"), first);
    assert!(matches!(p.add(Numbered { number: 2, items: vec![job("b")] }).await, Err(StoreError::Draining { .. })));
    t.delete("a").await;
    t.set(TopicChange::Undrain).await;
    let again = p.add(Numbered { number: 2, items: vec![job("b")] }).await.expect("add is answered");
    assert_eq!(super::producer::answered(again), [dq::store::AddOutcome::Added], "the refusal took no number");
    t.delete("b").await;
}

/// What was due when the drain began is claimed, and counted. What becomes due later stays, and wakes nobody (rule 29).
pub async fn draining_topic_runs_what_was_due(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    t.add_later("at", ms(50)).await;
    t.add_later("later", ms(51)).await;
    t.add_later("far", secs(600)).await;
    t.advance(ms(50)).await;
    let state = draining("why", t.now());
    t.set(drain("why")).await;
    t.advance(ms(1)).await;
    let answer = t.transfer("n", 1).await;
    assert_eq!((answer.claims.len(), answer.more, answer.left), (1, true, 2));
    assert_eq!(t.scan().await.left, 2);
    assert_eq!(answer.state.as_deref(), Some(&state));
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims.len(), answer.more, answer.left), (2, false, 0));
    assert_eq!(answer.sleep, FALLBACK, "there is nothing to come for");
    t.advance(secs(900)).await;
    let answer = t.transfer("n", 10).await;
    assert_eq!((answer.claims.len(), answer.more, answer.left, answer.sleep), (0, false, 0, FALLBACK));
    t.set(TopicChange::Undrain).await;
    assert_eq!(t.claimed_ids("n").await, ["later", "far"]);
}

/// Runs end as usual; what they put back with a new due time waits, and what goes back as it was runs again (rule 29).
pub async fn retries_of_a_draining_topic_wait(t: &Topic) {
    let changes = [("a", Change::Retry(ms(0))), ("b", Change::Rollback), ("c", Change::Ack)];
    t.add_all(changes.iter().map(|(name, _)| job(name)).collect()).await;
    let claims = t.claims("n").await;
    t.set(drain("why")).await;
    t.advance(ms(1)).await;
    for (claim, (_, change)) in claims.iter().zip(changes) {
        t.end("n", claim, change).await;
    }
    assert_eq!(t.claimed_ids("n").await, ["b"]);
    t.set(TopicChange::Undrain).await;
    assert_eq!(t.claimed_ids("n").await, ["a"]);
}

/// A sweep claims nothing, because `on_park_timeout` is no part of what was due (rule 29).
pub async fn sweep_of_a_draining_topic_claims_nothing(t: &Topic) {
    super::events::add_in_state(t, "parked", State::Unacked).await;
    t.advance(secs(8 * 24 * 3_600)).await;
    t.set(drain("why")).await;
    t.enter("n").await;
    let swept = t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!((swept.claims.len(), swept.more), (0, false));
    t.set(TopicChange::Undrain).await;
    t.claim_unacked("n", "parked").await;
}

/// Broadcasts that were due go out, later ones wait (rule 29).
pub async fn broadcasts_of_a_draining_topic_go_out_if_they_were_due(t: &Topic) {
    for (name, delay) in [("due", 0), ("later", 5)] {
        t.add_job(NewJob { deliver: Delivery::Broadcast, due: Due::After(secs(delay)), ..job(name) }).await;
    }
    t.set(drain("why")).await;
    t.advance(secs(6)).await;
    let answer = publish(t, "n", MAX_JOBS).await;
    assert_eq!((answer.published, answer.dropped, answer.more, answer.sleep), (1, 0, false, FALLBACK));
    t.set(TopicChange::Undrain).await;
    assert_eq!(publish(t, "n", MAX_JOBS).await.published, 1);
}

/// A second drain replaces the reason, not the beginning (rule 29).
pub async fn draining_again_changes_the_reason(t: &Topic) {
    let since = t.now();
    assert_eq!(t.set(drain("first")).await.now, draining("first", since));
    t.advance(secs(2)).await;
    let answer = t.set(drain("second")).await;
    assert_eq!((answer.before, answer.now), (draining("first", since), draining("second", since)));
    assert_eq!(t.topic_state().await, draining("second", since));
    let answer = t.set(TopicChange::Undrain).await;
    assert_eq!((answer.before, answer.now), (draining("second", since), TopicState::default()));
}

/// A pause and a drain are two settings: the pause ends, and the drain goes on (rule 29).
pub async fn topic_may_be_paused_and_drain(t: &Topic) {
    t.add("a").await;
    t.add_later("b", secs(1)).await;
    t.set(drain("why")).await;
    t.pause().await;
    t.advance(secs(2)).await;
    let answer = t.transfer("n", 10).await;
    let state = answer.state.expect("it has one");
    assert!(state.pause.is_some() && state.drain.is_some());
    assert_eq!((answer.claims.len(), answer.more, answer.left), (0, false, 0));
    t.resume().await;
    t.claim("n", "a").await;
    assert_eq!(t.state("b").await, Some(State::Delayed));
}

/// Each change of a drain is signalled to all nodes (rule 29).
pub async fn drain_and_its_end_are_signalled(t: &Topic) {
    let mut subscriber = t.subscribe("n").await;
    t.transfer("n", 10).await;
    t.set(drain("why")).await;
    t.set(TopicChange::Undrain).await;
    assert_eq!(subscriber.received(t).await, [Signal::StateChanged, Signal::StateChanged]);
}
