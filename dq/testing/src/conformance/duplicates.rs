//! Adds of a known id (rules 2, 13). `pending` and `fenced` have the adds that meet a pending command.

use super::events::{add_in_state, ending};
use super::producer::{delayed, job, replacing, retained, with_payload};
use super::topic::{MAX_CRASHES, Topic, ms, secs};
use dq::job::State;
use dq::store::step::Change;
use dq::store::{AddOutcome, CommandKind, NewJob, OnDuplicate};

/// `reject` and `keep` over a DELAYED, RUNNING, UNACKED or DEAD job return its state and leave it as it is (rule 2).
pub async fn reject_and_keep_leave_a_known_job(t: &Topic) {
    for state in [State::Delayed, State::Running, State::Unacked, State::Dead] {
        let name = state.as_str();
        add_in_state(t, name, state).await;
        let before = t.stored(name).await;
        for on_duplicate in [OnDuplicate::Reject, OnDuplicate::Keep] {
            let outcome = t.add_job(NewJob { on_duplicate, ..with_payload(name, "new") }).await;
            assert_eq!(outcome, AddOutcome::Exists(state));
            assert_eq!(t.stored(name).await, before);
        }
    }
}

/// `replace` over a DELAYED, UNACKED or DEAD job takes its place at once, with the new record and due time (rule 2).
pub async fn replace_takes_the_place_of_a_job_that_is_not_running(t: &Topic) {
    for state in [State::Delayed, State::Unacked, State::Dead] {
        let name = state.as_str();
        add_in_state(t, name, state).await;
        let new = NewJob { on_duplicate: OnDuplicate::Replace, ..delayed(name, secs(9)) };
        assert_eq!(t.add_job(new.clone()).await, AddOutcome::Replaced(state));
        assert_eq!(t.due(name).await, t.in_ms(9_000));
        assert_eq!(t.stored(name).await.record, new.record);
    }
}

/// A replacement is due at its own due time, whether that is earlier or later than the old one (rule 2).
pub async fn replacement_brings_its_own_due_time(t: &Topic) {
    t.add_later("a", secs(5)).await;
    t.add_job(replacing("a", "sooner")).await;
    t.add("b").await;
    t.add_job(NewJob { on_duplicate: OnDuplicate::Replace, ..delayed("b", secs(5)) }).await;
    let claim = t.claim("n", "a").await;
    t.end("n", &claim, Change::Ack).await;
    t.advance(secs(5)).await;
    t.claim("n", "b").await;
}

/// A DONE job does not count as existing, whatever the add says about duplicates (rule 2).
pub async fn done_job_does_not_count_as_existing(t: &Topic) {
    for (name, on_duplicate) in
        [("reject", OnDuplicate::Reject), ("keep", OnDuplicate::Keep), ("replace", OnDuplicate::Replace)]
    {
        add_in_state(t, name, State::Done).await;
        assert_eq!(t.add_job(NewJob { on_duplicate, ..with_payload(name, "new") }).await, AddOutcome::Added);
        assert_eq!((t.state(name).await, t.payload(name).await), (Some(State::Delayed), "new".into()));
        t.delete(name).await;
    }
}

/// An add over a DONE job takes the job out of DONE, so the end of the old retention does not prune it (rule 2).
pub async fn job_added_over_a_done_one_outlives_the_old_retention(t: &Topic) {
    add_in_state(t, "a", State::Done).await;
    t.add_later("a", secs(3_600)).await;
    t.advance(secs(120)).await;
    let swept = t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!(swept.pruned_done, 0);
    assert_eq!(t.state("a").await, Some(State::Delayed));
}

/// A replaced DEAD job is not pruned later, and a replaced UNACKED job is not claimed by age (rule 2).
pub async fn replaced_job_leaves_its_old_place(t: &Topic) {
    add_in_state(t, "dead", State::Dead).await;
    add_in_state(t, "unacked", State::Unacked).await;
    for name in ["dead", "unacked"] {
        t.add_job(NewJob { on_duplicate: OnDuplicate::Replace, ..delayed(name, secs(3_600)) }).await;
    }
    t.advance(secs(40 * 24 * 3_600)).await;
    let swept = t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!((swept.claims.len(), swept.pruned_dead), (0, 0));
    assert_eq!(t.counts().await.delayed, 2);
}

/// The due time and the expiry of a replacement are fixed when it is added, not when the run ends (rule 13).
pub async fn replacement_is_due_counted_from_its_add(t: &Topic) {
    let claim = t.running("n", "a").await;
    let (due, expires) = (t.in_ms(3_000), t.in_ms(7_000));
    let new = NewJob { on_duplicate: OnDuplicate::Replace, expires_after: Some(secs(4)), ..delayed("a", secs(3)) };
    t.add_job(new).await;
    t.advance(secs(10)).await;
    t.end("n", &claim, Change::Retry(secs(60))).await;
    assert_eq!(t.due("a").await, due);
    assert_eq!(t.metadata("a").await.expires_at, Some(expires));
}

/// A later replacement takes the place of an earlier one (rule 13).
pub async fn later_replacement_takes_the_place_of_an_earlier_one(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.add_job(replacing("a", "second")).await;
    t.advance(ms(10)).await;
    assert_eq!(t.add_job(replacing("a", "third")).await, AddOutcome::ReplacementWaits);
    let due = t.now();
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!((t.payload("a").await, t.due("a").await), ("third".into(), due));
}

/// `reject` and `keep` over a RUNNING job leave a waiting replacement as it is (rule 13).
pub async fn reject_and_keep_leave_a_waiting_replacement(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.add_job(replacing("a", "new")).await;
    for on_duplicate in [OnDuplicate::Reject, OnDuplicate::Keep] {
        let outcome = t.add_job(NewJob { on_duplicate, ..with_payload("a", "later") }).await;
        assert_eq!(outcome, AddOutcome::Exists(State::Running));
    }
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.payload("a").await, "new");
}

/// A replacement starts without the old job's attempts, crashes, parking fence and exhaustion (rules 13, 19).
pub async fn replacement_starts_afresh(t: &Topic) {
    for state in [State::Delayed, State::Unacked, State::Dead] {
        let name = state.as_str();
        t.running("n", name).await;
        t.crash("n").await;
        let claim = t.claim("n", name).await;
        t.end("n", &claim, ending(state)).await;
        t.add_job(replacing(name, "new")).await;
        let claim = t.claim("n", name).await;
        assert_eq!(claim.crashes, 0, "crashes of a replaced {state} job");
        assert_eq!(claim.record, with_payload(name, "new").record);
        t.end("n", &claim, Change::Ack).await;
    }
}

/// A replacement is not charged the crashes of the run that it waited for (rules 13, 19).
pub async fn replacement_is_not_charged_crashes_of_the_old_run(t: &Topic) {
    t.running("n", "a").await;
    t.add_job(replacing("a", "new")).await;
    for _ in 0..MAX_CRASHES {
        t.crash("n").await;
        assert_eq!(t.payload("a").await, "new");
        let claim = t.claim("n", "a").await;
        assert_eq!(claim.crashes, 0);
        t.add_job(replacing("a", "new")).await;
    }
}

/// An id can be added again once its job is acked, deleted or dropped (rule 2).
pub async fn id_is_free_after_its_end(t: &Topic) {
    t.add_and_run("n", "a", Change::Ack).await;
    t.add("a").await;
    t.command(CommandKind::Delete, "a", None).await;
    t.add_and_run("n", "a", Change::Drop).await;
    assert_eq!(t.add_job(job("a")).await, AddOutcome::Added);
}

/// The retention of the old job does not apply to its replacement (rule 13).
pub async fn replacement_has_its_own_retention(t: &Topic) {
    t.add_job(retained("a")).await;
    let claim = t.claim("n", "a").await;
    t.add_job(replacing("a", "new")).await;
    t.end("n", &claim, Change::Ack).await;
    t.run("n", "a", Change::Ack).await;
    assert_eq!(t.state("a").await, None);
}
