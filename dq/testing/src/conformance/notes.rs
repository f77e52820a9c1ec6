//! What is noted of a running job: that it is about to run alone, and that no attempt is left (rules 15, 17, 19).

use super::calls::{replacing, saying};
use super::topic::{Topic, ms};
use dq::job::{Cause, Fence, Metadata, State, Token};
use dq::store::step::{Change, Claim, NoteVerdict};
use dq::store::{NewJob, OnDuplicate};

fn exhausted() -> Metadata {
    Metadata {
        attempts: 3,
        exhausted: true,
        cause: Some(Cause::Error),
        error: Some("no".into()),
        ..Metadata::default()
    }
}

/// `isolate` and `exhaust` leave the job where it is, under its token (rules 15, 19).
pub async fn noted_job_stays_running(t: &Topic) {
    let claim = t.running("n", "a").await;
    assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Done);
    assert_eq!(t.exhaust("n", &claim, exhausted()).await, NoteVerdict::Done);
    assert_eq!(t.state("a").await, Some(State::Running));
    assert_eq!((t.metadata("a").await, t.says("a").await), (exhausted(), "a".into()));
    t.end("n", &claim, Change::Dead).await;
    assert_eq!((t.state("a").await, t.metadata("a").await), (Some(State::Dead), exhausted()));
}

/// Under a stale token, or from another node, nothing is noted (rule 10).
pub async fn stale_token_notes_nothing(t: &Topic) {
    let claim = t.running("n", "a").await;
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

/// Under an unfenced end no handler starts (rules 13, 17).
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

/// An end under a replacement is an end (rule 13).
pub async fn nothing_starts_under_an_end_with_a_replacement(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.delete("a").await;
    t.add_job(saying("a", "new")).await;
    assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Ended);
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!(t.says("a").await, "new");
}

/// A fenced end is for one run only, which cannot be told before that run ends: handlers start under it (rule 17).
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

/// A job whose replacement waits runs on (rule 12).
pub async fn handlers_start_under_a_replacement(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.add_job(replacing("a", "new")).await;
    assert_eq!(t.isolate("n", &claim).await, NoteVerdict::Done);
    assert_eq!(t.exhaust("n", &claim, exhausted()).await, NoteVerdict::Done);
    t.end("n", &claim, Change::Dead).await;
    assert_eq!((t.state("a").await, t.says("a").await), (Some(State::Delayed), "new".into()));
    assert_eq!(t.metadata("a").await, Metadata::default());
}

/// The notes of a run do not follow the id into its next life (rules 12, 19).
pub async fn notes_end_with_the_job(t: &Topic) {
    let claim = t.running("n", "a").await;
    t.isolate("n", &claim).await;
    t.exhaust("n", &claim, exhausted()).await;
    t.end("n", &claim, Change::Ack).await;
    t.add_job(NewJob { on_duplicate: OnDuplicate::Keep, ..saying("a", "new") }).await;
    let claim = t.claim("n", "a").await;
    assert_eq!((claim.crashes, claim.record.metadata()), (0, Ok(Metadata::default())));
    t.advance(ms(1)).await;
    t.crash("n").await;
    assert_eq!(t.claim("n", "a").await.crashes, 1);
}
