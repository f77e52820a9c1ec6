//! Delete, cancel, ack and requeue of a job that nobody runs.

use super::calls::{answered, command_for, job, with_metadata};
use super::drive::bring;
use super::topic::{Topic, secs};
use dq::job::{Cause, Metadata, State};
use dq::store::step::Change;
use dq::store::{CommandKind, CommandOutcome, NewJob, Numbered, StoreError};

/// A delete, or a cancel, of a job that nobody runs removes it and returns what was kept of it.
pub async fn deleted_job_is_returned(t: &Topic) {
    for verb in [CommandKind::Delete, CommandKind::Cancel] {
        for state in [State::Delayed, State::Unacked, State::Dead, State::Done] {
            bring(t, "a", state).await;
            let record = t.stored("a").await.record;
            let outcome = t.command(verb, "a", None).await;
            assert_eq!(outcome, CommandOutcome { found: Some(state), changed: true, removed: Some(record) });
            assert_eq!(t.find("a").await, None);
        }
    }
}

/// What is not there cannot be withdrawn, and the answer says so.
pub async fn unknown_job_is_not_found(t: &Topic) {
    for verb in [CommandKind::Delete, CommandKind::Cancel, CommandKind::Ack, CommandKind::Requeue] {
        let outcome = t.command(verb, "a", None).await;
        assert_eq!(outcome, CommandOutcome { found: None, changed: false, removed: None });
    }
    t.add("a").await;
}

/// A deleted job does not run, however near it was.
pub async fn deleted_job_is_not_claimed(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    t.delete("a").await;
    t.advance(secs(1)).await;
    t.claim("n", "b").await;
    assert_eq!(t.delete("a").await.found, None);
}

/// An ack without a fence ends a job that waits or is parked: gone, or DONE for its retention (rule 13).
pub async fn ack_ends_a_waiting_or_parked_job(t: &Topic) {
    for state in [State::Delayed, State::Unacked] {
        bring(t, "kept", state).await;
        assert!(t.ack_outside("kept").await.changed);
        let until = t.in_ms(60_000);
        assert_eq!(t.place("kept").await, dq::store::JobPlace::Done { until });
        t.add("gone").await;
        if state == State::Unacked {
            let claim = t.claim("n", "gone").await;
            t.end("n", &claim, Change::Park).await;
        }
        assert!(t.ack_outside("gone").await.changed);
        assert_eq!(t.find("gone").await, None);
        assert_eq!(t.claimed_ids("n").await, [""; 0]);
    }
}

/// A requeued DEAD job is due now with fresh attempts: attempts, exhaustion and expiry are cleared, all else is kept
/// (rule 15).
pub async fn requeued_dead_job_starts_afresh(t: &Topic) {
    let metadata = Metadata {
        retry: Some("none".into()),
        headers: vec![("k".into(), "v".into())],
        retain: secs(60),
        delay: secs(5),
        ..Metadata::default()
    };
    t.add_job(NewJob { expires_after: Some(secs(1)), ..with_metadata("a", &metadata) }).await;
    let claim = t.claim("n", "a").await;
    let last = Metadata { attempts: 6, exhausted: true, cause: Some(Cause::Error), ..t.metadata("a").await };
    t.end_with("n", &claim, Change::Dead, last).await;
    t.advance(secs(100)).await;
    let outcome = t.requeue("a").await;
    assert_eq!((outcome.found, outcome.changed), (Some(State::Dead), true));
    assert_eq!(t.due("a").await, t.now());
    let after = t.metadata("a").await;
    assert_eq!((after.attempts, after.exhausted, after.expires_at), (0, false, None));
    assert_eq!((after.retry, after.headers, after.retain), (metadata.retry, metadata.headers, metadata.retain));
    assert_eq!((after.delay, t.says("a").await), (metadata.delay, "a".into()));
    t.claim("n", "a").await;
}

/// A requeued UNACKED job is due now and keeps its attempts and its expiry; its parking fence goes (rules 15, 25).
pub async fn requeued_unacked_job_goes_on_as_it_was(t: &Topic) {
    let metadata = Metadata { attempts: 2, ..Metadata::default() };
    t.add_job(NewJob { expires_after: Some(secs(500)), ..with_metadata("a", &metadata) }).await;
    let before = t.metadata("a").await;
    let claim = t.claim("n", "a").await;
    t.end("n", &claim, Change::Park).await;
    t.advance(secs(100)).await;
    let outcome = t.requeue("a").await;
    assert_eq!((outcome.found, outcome.changed), (Some(State::Unacked), true));
    assert_eq!((t.due("a").await, t.metadata("a").await), (t.now(), before));
}

/// A requeued job that crashed before it died is not charged for that again (rules 15, 19).
pub async fn requeue_clears_crashes(t: &Topic) {
    let claim = t.running("n", "a").await;
    super::drive::exhaust_by_crashes(t, "n", claim).await;
    t.crash("n").await;
    assert_eq!(t.state("a").await, Some(State::Dead));
    t.requeue("a").await;
    let claim = t.claim("n", "a").await;
    assert_eq!((claim.crashes, claim.record.metadata().map(|metadata| metadata.exhausted)), (0, Ok(false)));
}

/// A batch of withdrawals is answered one by one, in order.
pub async fn commands_are_answered_one_by_one(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    let items = vec![
        command_for(CommandKind::Requeue, "a", None),
        command_for(CommandKind::Delete, "c", None),
        command_for(CommandKind::Delete, "b", None),
    ];
    let answer = t.producer().command(t.numbered(items)).await.expect("withdraw is answered");
    let told: Vec<_> = answered(answer).into_iter().map(|outcome| (outcome.found, outcome.changed)).collect();
    assert_eq!(told, [(Some(State::Delayed), false), (None, false), (Some(State::Delayed), true)]);
    assert_eq!((t.state("a").await, t.state("b").await), (Some(State::Delayed), None));
}

/// Withdrawals over the limit are refused whole (rule 5).
pub async fn command_over_the_limit_changes_nothing(t: &Topic) {
    t.add("j0").await;
    let items = (0..1_001).map(|n| command_for(CommandKind::Delete, &format!("j{n}"), None)).collect();
    let error = t.producer().command(Numbered { number: 2, items }).await.expect_err("1,001 are too many");
    assert!(matches!(error, StoreError::OverLimit { size: 1_001, limit: 1_000, .. }), "{error}");
    assert_eq!(t.state("j0").await, Some(State::Delayed));
}
