//! Delete, cancel, ack and requeue of jobs that are not running (rules 13, 15).

use super::events::add_in_state;
use super::producer::{answered, command, detailed, job, with_metadata, with_payload};
use super::topic::{Topic, secs};
use dq::job::{Cause, Delivery, Metadata, State};
use dq::store::step::Change;
use dq::store::{ChangeKind, Command, CommandKind, CommandOutcome, Due, NewJob};

/// A delete or cancel of a job that is not running removes the job and returns its record (rule 13).
pub async fn deleted_job_is_returned(t: &Topic) {
    for verb in [CommandKind::Delete, CommandKind::Cancel] {
        for state in [State::Delayed, State::Unacked, State::Dead, State::Done] {
            add_in_state(t, "a", state).await;
            let record = t.stored("a").await.record;
            let outcome = t.command(verb, "a", None).await;
            assert_eq!(
                outcome,
                CommandOutcome { found: Some(state), changed: true, removed: Some(record), other_version: None }
            );
            assert_eq!(t.find("a").await, None);
        }
    }
}

/// A deleted job is never claimed, however soon it was due (step `command`).
pub async fn deleted_job_is_not_claimed(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    t.delete("a").await;
    t.advance(secs(1)).await;
    t.claim("n", "b").await;
    assert_eq!(t.delete("a").await.found, None);
}

/// An unfenced ack ends a DELAYED or UNACKED job: it is gone, or DONE for its retention (rule 13).
pub async fn ack_ends_a_waiting_or_parked_job(t: &Topic) {
    for state in [State::Delayed, State::Unacked] {
        add_in_state(t, "kept", state).await;
        assert!(t.ack_outside("kept").await.changed);
        let until = t.in_ms(60_000);
        assert_eq!(t.place("kept").await, dq::job::JobState::Done { until });
        t.add("gone").await;
        if state == State::Unacked {
            t.run("n", "gone", Change::Park).await;
        }
        assert!(t.ack_outside("gone").await.changed);
        assert_eq!(t.find("gone").await, None);
        assert_eq!(t.claimed_ids("n").await, [""; 0]);
    }
}

/// A requeued DEAD job is due now, without attempts, exhaustion and expiry; everything else is kept (rule 15).
pub async fn requeued_dead_job_starts_afresh(t: &Topic) {
    let metadata = detailed();
    t.add_job(NewJob { expires_after: Some(secs(1)), ..with_metadata("a", &metadata) }).await;
    let claim = t.claim("n", "a").await;
    let error = Some("no".to_owned());
    let last = Metadata {
        attempts: 6,
        exhausted: true,
        cause: Some(Cause::Error),
        error: error.clone(),
        ..t.metadata("a").await
    };
    t.end_with("n", &claim, Change::Dead, last).await;
    t.advance(secs(100)).await;
    let outcome = t.requeue("a").await;
    assert_eq!((outcome.found, outcome.changed), (Some(State::Dead), true));
    assert_eq!(t.due("a").await, t.now());
    let after = t.metadata("a").await;
    assert_eq!((after.attempts, after.exhausted, after.expires_at), (0, false, None));
    assert_eq!((after.cause, after.error), (Some(Cause::Error), error), "what it died of stays readable");
    assert_eq!((after.retry, after.headers, after.retain), (metadata.retry, metadata.headers, metadata.retain));
    assert_eq!((after.delay, t.payload("a").await), (metadata.delay, "a".into()));
    t.claim("n", "a").await;
}

/// A requeued UNACKED job is due now and keeps its attempts and its expiry, but loses its parking fence: a rollback makes it DELAYED
/// (rules 15, 25).
pub async fn requeued_unacked_job_keeps_its_attempts_and_expiry(t: &Topic) {
    let metadata = Metadata { attempts: 2, ..Metadata::default() };
    t.add_job(NewJob { expires_after: Some(secs(500)), ..with_metadata("a", &metadata) }).await;
    let before = t.metadata("a").await;
    t.run("n", "a", Change::Park).await;
    t.advance(secs(100)).await;
    let outcome = t.requeue("a").await;
    assert_eq!((outcome.found, outcome.changed), (Some(State::Unacked), true));
    assert_eq!((t.due("a").await, t.metadata("a").await), (t.now(), before.clone()));
    let claim = t.claim("n", "a").await;
    assert_eq!((claim.record.metadata(), before.parked_by), (Ok(before), None));
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!(t.state("a").await, Some(State::Delayed));
}

/// A requeue clears the crashes of a DEAD job (rules 15, 19).
pub async fn requeue_clears_crashes(t: &Topic) {
    let claim = t.running("n", "a").await;
    super::events::exhaust_by_crashes(t, "n", claim).await;
    t.crash("n").await;
    assert_eq!(t.state("a").await, Some(State::Dead));
    t.requeue("a").await;
    let claim = t.claim("n", "a").await;
    assert_eq!((claim.crashes, claim.record.metadata().map(|metadata| metadata.exhausted)), (0, Ok(false)));
}

/// The answer has one outcome for each command of the batch, in order (step `command`).
pub async fn commands_are_answered_one_by_one(t: &Topic) {
    t.add_all(vec![job("a"), job("b")]).await;
    let items = vec![
        command(CommandKind::Requeue, "a", None),
        command(CommandKind::Delete, "c", None),
        command(CommandKind::Delete, "b", None),
    ];
    let answer = t.producer().command(t.numbered(items)).await.expect("command is answered");
    let outcomes: Vec<_> = answered(answer).into_iter().map(|outcome| (outcome.found, outcome.changed)).collect();
    assert_eq!(outcomes, [(Some(State::Delayed), false), (None, false), (Some(State::Delayed), true)]);
    assert_eq!((t.state("a").await, t.state("b").await), (Some(State::Delayed), None));
}

/// A command that names another version does nothing and answers the version of the job, in whatever state it is. One for an unknown id
/// finds no job, whether it names a version or not (step `command`, rule 28).
pub async fn command_may_name_the_version(t: &Topic) {
    for verb in [CommandKind::Delete, CommandKind::Cancel, CommandKind::Ack, CommandKind::Requeue] {
        for state in [State::Delayed, State::Running, State::Unacked, State::Dead, State::Done] {
            let claim = add_in_state(t, "a", state).await;
            let before = t.stored("a").await;
            let outcome = t.command_of("a", verb, 3).await;
            let expected = CommandOutcome { found: Some(state), changed: false, removed: None, other_version: Some(0) };
            assert_eq!((outcome, t.stored("a").await), (expected, before), "{verb:?} {state}");
            let unnamed = match (verb, state) {
                (CommandKind::Delete | CommandKind::Cancel, _) => true,
                (CommandKind::Ack, _) => !matches!(state, State::Dead | State::Done),
                (CommandKind::Requeue | CommandKind::Pass, _) => matches!(state, State::Unacked | State::Dead),
            };
            let outcome = t.command_of("a", verb, 0).await;
            assert_eq!((outcome.changed, outcome.other_version), (unnamed, None), "{verb:?} {state}");
            if let Some(claim) = claim {
                t.end("driver", &claim, Change::Ack).await;
            }
            t.delete("a").await;
        }
        let unknown = CommandOutcome { found: None, changed: false, removed: None, other_version: None };
        assert_eq!(t.command_of("a", verb, 0).await, unknown);
        assert_eq!(t.command(verb, "a", None).await, unknown);
    }
    t.add("a").await;
}

/// The version of a command is that of the job as it is: after changes, of a large record, and of a waiting broadcast (rules 24, 28).
pub async fn version_of_a_command_is_that_of_the_changed_job(t: &Topic) {
    let large = with_payload("a", &"x".repeat(9_000));
    for new in [
        job("a"),
        large,
        NewJob { deliver: Delivery::Broadcast, ..job("a") },
        NewJob { deliver: Delivery::Both, ..job("a") },
    ] {
        t.add_job(NewJob { due: Due::After(secs(3_600)), ..new }).await;
        for version in 1..3 {
            t.changed("a", ChangeKind::ExtendBy(secs(1))).await;
            assert_eq!(t.command_of("a", CommandKind::Delete, version - 1).await.other_version, Some(version));
        }
        let batch =
            [1, 2, 2].map(|version| Command { if_version: Some(version), ..command(CommandKind::Ack, "a", None) });
        let answer = t.producer().command(t.numbered(batch.to_vec())).await.expect("command is answered");
        let outcomes =
            answered(answer).into_iter().map(|outcome| (outcome.changed, outcome.other_version, outcome.found));
        let (delayed, other) = (Some(State::Delayed), Some(2));
        assert_eq!(outcomes.collect::<Vec<_>>(), [(false, other, delayed), (true, None, delayed), (false, None, None)]);
    }
}
