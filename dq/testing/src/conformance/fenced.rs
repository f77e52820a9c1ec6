//! Acks and requeues from outside that name a run by its fence (rule 13).

use super::events::{WAYS_OUT, leave_running};
use super::producer::{job, replacing, with_payload};
use super::topic::{Topic, ms};
use dq::job::{Fence, State};
use dq::store::step::Change;
use dq::store::{AddOutcome, CommandKind, NewJob, OnDuplicate};

fn keeping(payload: &str) -> NewJob {
    NewJob { on_duplicate: OnDuplicate::Keep, ..with_payload("a", payload) }
}

/// An ack that names an older run does not end this one, and the end of this run drops it (rule 13).
pub async fn ack_of_an_older_run_is_dropped(t: &Topic) {
    let old = t.running("n", "a").await;
    t.end("n", &old, Change::Retry(ms(0))).await;
    let new = t.claim("n", "a").await;
    t.ack_run("a", old.token.fence).await;
    t.end("n", &new, Change::Retry(ms(0))).await;
    assert_eq!(t.state("a").await, Some(State::Delayed));
    t.run("n", "a", Change::Park).await;
    assert_eq!(t.state("a").await, Some(State::Unacked), "the end of the run before dropped the pending command");
}

/// A fenced ack does nothing to a DELAYED job: its fence is of an earlier run (rule 13).
pub async fn fenced_ack_leaves_a_waiting_job(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.end("n", &claim, Change::Retry(ms(0))).await;
    let outcome = t.ack_run("a", claim.token.fence).await;
    assert_eq!((outcome.found, outcome.changed), (Some(State::Delayed), false));
    t.claim("n", "a").await;
}

/// An ack or requeue of a parked job may name the run that parked it; with another fence it does nothing (rule 13).
pub async fn fence_of_a_parked_job_is_compared(t: &Topic) {
    for verb in [CommandKind::Ack, CommandKind::Requeue] {
        let claim = t.running("n", "a").await;
        t.end("n", &claim, Change::Park).await;
        let fence = claim.token.fence;
        for wrong in [Fence(fence.0 - 1), Fence(fence.0 + 1), Fence(0)] {
            let outcome = t.command(verb, "a", Some(wrong)).await;
            assert_eq!((outcome.found, outcome.changed), (Some(State::Unacked), false), "{verb:?} of {wrong}");
        }
        let outcome = t.command(verb, "a", Some(fence)).await;
        assert_eq!((outcome.found, outcome.changed), (Some(State::Unacked), true), "{verb:?}");
        assert_eq!(t.state("a").await, (verb == CommandKind::Requeue).then_some(State::Delayed));
        t.delete("a").await;
    }
}

/// A job that was requeued and parked again accepts only its new parking fence (rule 13).
pub async fn fence_of_an_earlier_park_is_void(t: &Topic) {
    let first = t.running("n", "a").await;
    t.end("n", &first, Change::Park).await;
    t.requeue("a").await;
    let second = t.claim("n", "a").await;
    t.end("n", &second, Change::Park).await;
    assert!(!t.ack_run("a", first.token.fence).await.changed);
    assert!(t.ack_run("a", second.token.fence).await.changed);
    assert_eq!(t.find("a").await, None);
}

/// A fenced end does not make the id absent: `reject` answers *exists* (rule 13).
pub async fn reject_under_a_fenced_end_finds_the_job(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.ack_run("a", claim.token.fence).await;
    assert_eq!(t.add_job(with_payload("a", "new")).await, AddOutcome::Exists(State::Running));
    t.end("n", &claim, Change::Retry(ms(0))).await;
    assert_eq!(t.find("a").await, None);
}

/// `keep` under a fenced end leaves a replacement that applies if the end applies (rule 13).
pub async fn keep_under_a_fenced_end_applies_if_the_end_does(t: &Topic) {
    for way in 0..WAYS_OUT {
        let claim = t.running("n", "a").await;
        t.ack_run("a", claim.token.fence).await;
        assert_eq!(t.add_job(keeping("new")).await, AddOutcome::ReplacementIfEnds);
        leave_running(t, "n", &claim, way).await;
        assert_eq!((t.state("a").await, t.payload("a").await), (Some(State::Delayed), "new".into()), "way {way}");
        t.delete("a").await;
    }
}

/// The replacement that `keep` left under a fenced end is dropped if the end is for another run (rule 13).
pub async fn keep_under_a_fenced_end_is_dropped_if_the_end_does_not_apply(t: &Topic) {
    let old = t.running("n", "a").await;
    t.end("n", &old, Change::Rollback).await;
    let claim = t.claim("n", "a").await;
    t.ack_run("a", old.token.fence).await;
    assert_eq!(t.add_job(keeping("new")).await, AddOutcome::ReplacementIfEnds);
    t.end("n", &claim, Change::Retry(ms(0))).await;
    assert_eq!((t.state("a").await, t.payload("a").await), (Some(State::Delayed), "a".into()));
    t.run("n", "a", Change::Ack).await;
    assert_eq!(t.find("a").await, None);
}

/// A `replace` applies whether a fenced end that came before or after it applies or not (rule 13).
pub async fn replacement_applies_whether_a_fenced_end_does_or_not(t: &Topic) {
    for (own, end_first) in [(true, true), (true, false), (false, true), (false, false)] {
        let claim = t.running("n", "a").await;
        let fence = if own { claim.token.fence } else { Fence(claim.token.fence.0 - 1) };
        if end_first {
            t.ack_run("a", fence).await;
        }
        assert_eq!(t.add_job(replacing("a", "new")).await, AddOutcome::ReplacementWaits);
        if !end_first {
            t.ack_run("a", fence).await;
        }
        t.end("n", &claim, if end_first { Change::Retry(ms(0)) } else { Change::Rollback }).await;
        assert_eq!(t.payload("a").await, "new");
        t.delete("a").await;
    }
}

/// Of a fenced and an unfenced end the unfenced one applies, in either order, because it is for any run (rule 13).
pub async fn of_a_fenced_and_an_unfenced_end_the_unfenced_one_applies(t: &Topic) {
    for verb in [CommandKind::Ack, CommandKind::Delete, CommandKind::Cancel] {
        for fenced_first in [true, false] {
            let claim = t.running("n", "a").await;
            let old = Fence(claim.token.fence.0 - 1);
            if fenced_first {
                t.ack_run("a", old).await;
            }
            assert!(t.command(verb, "a", None).await.changed);
            if !fenced_first {
                t.ack_run("a", old).await;
            }
            t.end("n", &claim, Change::Retry(ms(0))).await;
            assert_eq!(t.find("a").await, None, "{verb:?}");
        }
    }
}

/// An unfenced ack makes the replacement that `keep` left under a fenced end unconditional (rule 13).
pub async fn unfenced_ack_makes_a_conditional_replacement_unconditional(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.ack_run("a", Fence(claim.token.fence.0 - 1)).await;
    assert_eq!(t.add_job(keeping("new")).await, AddOutcome::ReplacementIfEnds);
    assert!(t.ack_outside("a").await.changed);
    assert!(!t.ack_run("a", claim.token.fence).await.changed, "it adds nothing to the unfenced one");
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!((t.state("a").await, t.payload("a").await), (Some(State::Delayed), "new".into()));
}

/// Of two fenced acks the one of the later run applies, in whichever order they come: only that one can be for this run
/// (rule 13).
pub async fn ack_of_the_later_run_applies(t: &Topic) {
    for late_first in [true, false] {
        let old = t.running("n", "a").await;
        t.end("n", &old, Change::Rollback).await;
        let claim = t.claim("n", "a").await;
        let mut fences = [old.token.fence, claim.token.fence];
        if late_first {
            fences.reverse();
        }
        for fence in fences {
            t.ack_run("a", fence).await;
        }
        t.end("n", &claim, Change::Retry(ms(0))).await;
        assert_eq!(t.find("a").await, None);
    }
}

/// A fenced requeue of a DEAD job does nothing, because no run parked the job (rule 13).
pub async fn fenced_requeue_leaves_a_dead_job(t: &Topic) {
    t.add_job(job("a")).await;
    let claim = t.claim("n", "a").await;
    t.end("n", &claim, Change::Dead).await;
    let outcome = t.command(CommandKind::Requeue, "a", Some(claim.token.fence)).await;
    assert_eq!((outcome.found, outcome.changed), (Some(State::Dead), false));
    assert!(t.requeue("a").await.changed);
}
