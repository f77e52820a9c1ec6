//! Pending commands: deletes, cancels, acks and replacements of running jobs, which the step that ends the run obeys (rule
//! 13).

use super::events::{WAYS_OUT, leave_running};
use super::producer::{delayed, job, replacing, retained, with_payload};
use super::topic::{Topic, ms, secs};
use dq::job::State;
use dq::store::step::{Change, Verdict};
use dq::store::{AddOutcome, CommandKind, NewJob, OnDuplicate, Signal};

const ENDS: [CommandKind; 3] = [CommandKind::Delete, CommandKind::Cancel, CommandKind::Ack];

/// A delete, cancel or ack of a running job changes nothing at once and leaves a pending command. A second one changes nothing (rule 13).
pub async fn running_job_gets_a_pending_command(t: &Topic) {
    for verb in ENDS {
        let claim = t.running("n", "a").await;
        let before = t.stored("a").await;
        let outcome = t.command(verb, "a", None).await;
        assert_eq!((outcome.found, outcome.changed, outcome.removed), (Some(State::Running), true, None), "{verb:?}");
        assert!(!t.command(verb, "a", None).await.changed, "a second {verb:?} changes nothing");
        assert_eq!(t.stored("a").await, before);
        t.end("n", &claim, Change::Rollback).await;
    }
}

/// However the run of a deleted, cancelled or acked job ends, the job and the pending command are gone (rule 13).
pub async fn end_applies_on_every_way_out(t: &Topic) {
    for verb in ENDS {
        for way in 0..WAYS_OUT {
            let claim = t.running("n", "a").await;
            t.command(verb, "a", None).await;
            leave_running(t, "n", &claim, way).await;
            assert_eq!(t.find("a").await, None, "{verb:?}, way {way} out of RUNNING");
            t.add_and_run("n", "a", Change::Rollback).await;
            assert_eq!(t.state("a").await, Some(State::Delayed), "the pending {verb:?} is gone, way {way}");
            t.delete("a").await;
        }
    }
}

/// A running job with a retention that was acked from outside, by an ack that names the run or not, is DONE however its run ends; a
/// deleted one is gone (rule 13).
pub async fn acked_running_job_is_kept_as_done(t: &Topic) {
    for way in 0..WAYS_OUT {
        for fenced in [false, true] {
            t.add_job(retained("a")).await;
            let claim = t.claim("n", "a").await;
            let fence = fenced.then_some(claim.token.fence);
            assert!(t.command(CommandKind::Ack, "a", fence).await.changed);
            leave_running(t, "n", &claim, way).await;
            assert_eq!(t.state("a").await, Some(State::Done), "way {way} out of RUNNING, fenced: {fenced}");
        }
        assert_eq!(t.add_job(retained("a")).await, AddOutcome::Added);
        let claim = t.claim("n", "a").await;
        t.delete("a").await;
        leave_running(t, "n", &claim, way).await;
        assert_eq!(t.find("a").await, None, "way {way} out of RUNNING");
    }
}

/// A replacement waits for the end of the run, and until then the record belongs to the run. However that ends, the replacement takes
/// the job's place in the same step (rule 13).
pub async fn replacement_takes_the_place_on_every_way_out(t: &Topic) {
    for way in 0..WAYS_OUT {
        t.add_job(retained("a")).await;
        let claim = t.claim("n", "a").await;
        let new = NewJob { on_duplicate: OnDuplicate::Replace, ..delayed("a", secs(5)) };
        assert_eq!(t.add_job(new.clone()).await, AddOutcome::ReplacementWaits);
        let due = t.in_ms(5_000);
        assert_eq!((t.state("a").await, t.stored("a").await.record), (Some(State::Running), claim.record.clone()));
        assert_eq!(t.claimed_ids("m").await, [""; 0]);
        leave_running(t, "n", &claim, way).await;
        assert_eq!(t.due("a").await, due, "way {way} out of RUNNING");
        assert_eq!(t.stored("a").await.record, new.record);
        t.delete("a").await;
    }
}

/// An unfenced end makes the id absent: an add becomes the replacement, whatever it says about duplicates (rule 13).
pub async fn add_under_an_end_becomes_the_replacement(t: &Topic) {
    for verb in ENDS {
        for on_duplicate in [OnDuplicate::Reject, OnDuplicate::Keep, OnDuplicate::Replace] {
            let claim = t.running("n", "a").await;
            t.command(verb, "a", None).await;
            let outcome = t.add_job(NewJob { on_duplicate, ..with_payload("a", "new") }).await;
            assert_eq!(outcome, AddOutcome::ReplacementWaits, "{verb:?} then {on_duplicate:?}");
            t.end("n", &claim, Change::Retry(ms(1))).await;
            assert_eq!((t.state("a").await, t.payload("a").await), (Some(State::Delayed), "new".into()));
            t.delete("a").await;
        }
    }
}

/// Once a replacement waits under an end, the id is known again (rule 13).
pub async fn second_add_under_an_end_finds_the_first(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.delete("a").await;
    t.add_job(with_payload("a", "second")).await;
    assert_eq!(t.add_job(with_payload("a", "third")).await, AddOutcome::Exists(State::Running));
    assert_eq!(t.add_job(replacing("a", "fourth")).await, AddOutcome::ReplacementWaits);
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.payload("a").await, "fourth");
}

/// Delete and cancel drop a waiting replacement, and an ack from outside keeps it (rule 13).
pub async fn delete_drops_the_waiting_replacement_and_ack_keeps_it(t: &Topic) {
    let (again, waits) = (Change::Retry(ms(1)), Some(State::Delayed));
    for (verb, change, left) in [
        (CommandKind::Delete, again.clone(), None),
        (CommandKind::Cancel, again, None),
        (CommandKind::Ack, Change::Park, waits),
    ] {
        let claim = t.running("n", "a").await;
        t.add_job(replacing("a", "new")).await;
        t.command(verb, "a", None).await;
        t.end("n", &claim, change).await;
        assert_eq!(t.state("a").await, left, "{verb:?}");
    }
    assert_eq!(t.payload("a").await, "new");
}

/// After delete, add and delete, both the job and the replacement are gone when the run ends (rule 13).
pub async fn delete_after_delete_and_add_drops_the_new_job(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.delete("a").await;
    t.add_job(with_payload("a", "new")).await;
    assert!(t.delete("a").await.changed);
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!(t.find("a").await, None);
}

/// Of an ack from outside and a delete the delete applies, in either order: it leaves not even a DONE job (rule 13).
pub async fn of_an_ack_and_a_delete_the_delete_applies(t: &Topic) {
    for verbs in [[CommandKind::Ack, CommandKind::Delete], [CommandKind::Delete, CommandKind::Ack]] {
        t.add_job(retained("a")).await;
        let claim = t.claim("n", "a").await;
        for verb in verbs {
            t.command(verb, "a", None).await;
        }
        t.end("n", &claim, Change::Rollback).await;
        assert_eq!(t.find("a").await, None, "{verbs:?}");
    }
}

/// A stale outcome does not use up the pending command of a later run (rules 10, 13).
pub async fn stale_outcome_does_not_use_up_a_pending_command(t: &Topic) {
    let old = t.running("n", "a").await;
    t.crash("n").await;
    let new = t.claim("m", "a").await;
    t.delete("a").await;
    assert_eq!(t.settle("n", &old, Change::Ack).await, Verdict::Stale);
    assert_eq!(t.state("a").await, Some(State::Running));
    t.end("m", &new, Change::Retry(ms(0))).await;
    assert_eq!(t.find("a").await, None);
}

/// A pending command affects no other job that the same step takes from the node (rule 13).
pub async fn pending_command_affects_only_its_job(t: &Topic) {
    t.add_all(vec![job("a"), job("b"), job("c")]).await;
    t.claims("n").await;
    t.delete("b").await;
    t.add_job(replacing("c", "new")).await;
    t.crash("n").await;
    assert_eq!((t.payload("a").await, t.find("b").await, t.payload("c").await), ("a".into(), None, "new".into()));
    assert_eq!(t.claimed_ids("m").await, ["a", "c"]);
}

/// Every node is signalled when a running job is deleted, cancelled or acked, with the command and the id (rule 13).
pub async fn ends_of_running_jobs_are_signalled(t: &Topic) {
    let (mut n, mut m) = (t.subscribe("n").await, t.subscribe("m").await);
    t.running("n", "a").await;
    n.received(t).await;
    m.received(t).await;
    for verb in ENDS {
        t.command(verb, "a", None).await;
        let signal = Signal::Command(verb, super::topic::id("a"));
        assert!(n.received(t).await.contains(&signal), "{verb:?}");
        assert!(m.received(t).await.contains(&signal), "{verb:?}");
        t.crash("n").await;
        t.running("n", "a").await;
    }
}

/// A fenced ack is not signalled, because it may be for another run (rule 13).
pub async fn fenced_ack_is_not_signalled(t: &Topic) {
    let mut subscriber = t.subscribe("n").await;
    let claim = t.running("n", "a").await;
    subscriber.received(t).await;
    assert!(t.ack_run("a", claim.token.fence).await.changed);
    assert_eq!(subscriber.received(t).await, []);
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!(t.find("a").await, None);
}

/// A delete or cancel of a job that is not running leaves no pending command and signals none (rule 13).
pub async fn command_for_a_waiting_job_leaves_no_pending_command(t: &Topic) {
    let mut subscriber = t.subscribe("n").await;
    t.add_later("a", secs(9)).await;
    t.delete("a").await;
    t.cancel("a").await;
    let signals = subscriber.received(t).await;
    assert!(signals.iter().all(|signal| matches!(signal, Signal::Due(_))), "{signals:?}");
}
