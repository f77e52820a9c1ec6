//! The notes about a running job: how a quarantined job is about to run, and that no attempt is left (rules 13, 15, 19).

use super::producer::{job, replacing, with_payload};
use super::topic::{Topic, isolate_of, ms};
use dq::job::{Cause, Fence, Isolation, Metadata, Sequence, State, Token};
use dq::store::step::{Change, Claim, Isolate, NoteVerdict};
use dq::store::{NewJob, OnDuplicate};

pub(super) fn exhausted() -> Metadata {
    Metadata {
        attempts: 3,
        exhausted: true,
        cause: Some(Cause::Error),
        error: Some("no".into()),
        ..Metadata::default()
    }
}

/// `isolate` and `exhaust` leave the job RUNNING under its token (rules 15, 19).
pub async fn noted_job_stays_running(t: &Topic) {
    let claim = t.running("n", "a").await;
    assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Done);
    assert_eq!(t.exhaust("n", &claim, exhausted()).await, NoteVerdict::Done);
    assert_eq!(t.state("a").await, Some(State::Running));
    assert_eq!((t.metadata("a").await, t.payload("a").await), (exhausted(), "a".into()));
    t.end("n", &claim, Change::Dead).await;
    assert_eq!((t.state("a").await, t.metadata("a").await), (Some(State::Dead), exhausted()));
}

/// `isolate` and `exhaust` note nothing under a stale token or from another node (rule 10).
pub async fn stale_token_notes_nothing(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.enter("m").await;
    let older = Claim { token: Token { fence: Fence(claim.token.fence.0 - 1), ..claim.token }, ..claim.clone() };
    for (node, stale) in [("n", &older), ("m", &claim)] {
        assert_eq!(t.isolate(node, stale).await, NoteVerdict::Stale);
        assert_eq!(t.exhaust(node, stale, exhausted()).await, NoteVerdict::Stale);
    }
    assert_eq!(t.metadata("a").await, Metadata::default());
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Stale);
    assert_eq!(t.exhaust("n", &claim, exhausted()).await, NoteVerdict::Stale);
}

/// One `isolate` notes many runs, and answers for each (rules 10, 13, 19).
pub async fn isolate_answers_for_each_run(t: &Topic) {
    t.add_all(vec![job("a"), job("b"), job("c"), job("d")]).await;
    let claims = t.claims("n").await;
    t.end("n", &claims[1], Change::Ack).await;
    t.delete("c").await;
    let all: Vec<_> = claims.iter().collect();
    let notes = t.isolate_all("n", Isolation::Grouped, &all).await;
    assert_eq!(notes, [NoteVerdict::Done, NoteVerdict::Stale, NoteVerdict::Ended, NoteVerdict::Done]);
}

/// `isolate` without an isolation notes nothing, and says under which unfenced end each run is: a node reads that before it stops a
/// handler (rule 13).
pub async fn ends_of_runs_are_read(t: &Topic) {
    t.add_all(["a", "b", "c", "d", "e", "f"].map(job).into()).await;
    let claims = t.claims("n").await;
    t.delete("b").await;
    t.cancel("c").await;
    t.ack_outside("d").await;
    t.ack_run("e", claims[4].token.fence).await;
    t.end("n", &claims[5], Change::Ack).await;
    let all: Vec<_> = claims.iter().collect();
    let read = Isolate { isolation: None, ..isolate_of(t.last_seen("n"), Isolation::Alone, &all) };
    let late = Isolate { last_seen: Sequence(read.last_seen.0 + 1), ..read.clone() };
    assert_eq!(t.link("n").step(late).await.expect("isolate is answered").notes, None);
    let isolated = t.link("n").step(read).await.expect("isolate is answered");
    use NoteVerdict as V;
    assert_eq!(isolated.notes, Some(vec![V::Done, V::Ended, V::Cancelled, V::Ended, V::Done, V::Stale]));
    for _ in 0..4 {
        t.crash("n").await;
        assert_eq!(t.state("a").await, Some(State::Delayed), "no run was noted as alone, so no crash convicts the job");
        t.claim("n", "a").await;
    }
}

/// `isolate` notes nothing under another sequence number: it may be late, and others may run beside the job by now (rules
/// 6, 19).
pub async fn late_isolate_notes_nothing(t: &Topic) {
    let claim = t.running("n", "a").await;
    let late = isolate_of(t.last_seen("n"), Isolation::Alone, &[&claim]);
    t.reconcile("n").await;
    let isolated = t.link("n").step(late).await.expect("isolate is answered");
    assert_eq!((isolated.notes, isolated.lease_status.rows), (None, 1));
    t.crash("n").await;
    assert!(!t.metadata("a").await.exhausted, "a crash of its node does not convict it");
    assert_eq!(t.claim("n", "a").await.crashes, 1);
}

/// No handler starts under an unfenced end (rule 13).
pub async fn nothing_starts_under_an_unfenced_end(t: &Topic) {
    for verb in ["delete", "cancel", "ack"] {
        let claim = t.running("n", verb).await;
        match verb {
            "delete" => t.delete(verb).await,
            "cancel" => t.cancel(verb).await,
            _ => t.ack_outside(verb).await,
        };
        assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Ended);
        assert_eq!(t.exhaust("n", &claim, exhausted()).await, NoteVerdict::Ended);
        t.end("n", &claim, Change::Rollback).await;
        assert_eq!(t.state(verb).await, None);
    }
}

/// No handler starts under an unfenced end that has a replacement (rule 13).
pub async fn nothing_starts_under_an_end_with_a_replacement(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.delete("a").await;
    t.add_job(with_payload("a", "new")).await;
    assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Ended);
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!(t.payload("a").await, "new");
}

/// Handlers start under a fenced end, because only the end of the run shows whether it applies (rule 13).
pub async fn handlers_start_under_a_fenced_end(t: &Topic) {
    for own in [true, false] {
        let claim = t.running("n", "a").await;
        let fence = if own { claim.token.fence } else { Fence(claim.token.fence.0 - 1) };
        t.ack_run("a", fence).await;
        assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Done);
        assert_eq!(t.exhaust("n", &claim, exhausted()).await, NoteVerdict::Done);
        t.end("n", &claim, Change::Ack).await;
    }
}

/// Handlers start while a replacement waits (rule 13).
pub async fn handlers_start_under_a_replacement(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.add_job(replacing("a", "new")).await;
    assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Done);
    assert_eq!(t.exhaust("n", &claim, exhausted()).await, NoteVerdict::Done);
    t.end("n", &claim, Change::Dead).await;
    assert_eq!((t.state("a").await, t.payload("a").await), (Some(State::Delayed), "new".into()));
    assert_eq!(t.metadata("a").await, Metadata::default());
}

/// The notes about a run do not apply to the next job with the same id (rules 13, 19).
pub async fn notes_end_with_the_job(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.isolate("n", &claim).await;
    t.exhaust("n", &claim, exhausted()).await;
    t.end("n", &claim, Change::Ack).await;
    t.add_job(NewJob { on_duplicate: OnDuplicate::Keep, ..with_payload("a", "new") }).await;
    let claim = t.claim("n", "a").await;
    assert_eq!((claim.crashes, claim.record.metadata()), (0, Ok(Metadata::default())));
    t.advance(ms(1)).await;
    t.crash("n").await;
    assert_eq!(t.claim("n", "a").await.crashes, 1);
}
