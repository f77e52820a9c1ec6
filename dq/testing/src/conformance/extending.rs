//! Adds that extend a job that waits: a debounce that cannot starve (rule 28).

use std::time::Duration;

use super::events::{NODE, add_in_state};
use super::producer::{answered, delayed, replacing};
use super::topic::{Topic, id, lock, ms, secs};
use dq::job::{Codec, Delivery, Metadata, Record, State};
use dq::store::step::{Change, DEFAULT_BYTES};
use dq::store::{AddOutcome, ChangeKind, NewJob, OnDuplicate, Signal};
use dq::time::Timestamp;

const BY: Duration = Duration::from_secs(30);

/// A job with this payload that extends an old one by [`BY`], to at most this many seconds after its first add.
pub(super) fn extending(name: &str, payload: &str, at_most: Option<u64>) -> NewJob {
    let metadata = Metadata { delay: BY, ..Metadata::default() };
    let record = Record::new(&metadata, Codec::Json, payload.as_bytes());
    let on_duplicate = OnDuplicate::Extend { at_most: at_most.map(secs) };
    NewJob { record, on_duplicate, ..delayed(name, BY) }
}

fn extended(due: Timestamp, version: u32) -> AddOutcome {
    AddOutcome::Extended { due, version }
}

/// Where there is no such job, or a DONE one, the job is added, and its record says when (rule 28).
pub async fn extension_adds_an_unknown_job(t: &Topic) {
    assert_eq!(t.add_job(extending("a", "1", Some(60))).await, AddOutcome::Added);
    assert_eq!((t.due("a").await, t.payload("a").await), (t.in_ms(30_000), "1".into()));
    let first = Metadata { first_added: Some(t.now()), delay: BY, ..Metadata::default() };
    assert_eq!(t.metadata("a").await, first);
    add_in_state(t, "b", State::Done).await;
    assert_eq!(t.add_job(extending("b", "1", Some(60))).await, AddOutcome::Added);
    assert_eq!((t.due("b").await, t.metadata("b").await), (t.in_ms(30_000), first));
}

/// Each extension of a DELAYED job sets its due time anew, from now, and its payload; the last one wins (rule 28).
pub async fn extension_moves_a_delayed_job(t: &Topic) {
    t.add_job(extending("a", "1", None)).await;
    let first = t.now();
    for n in 2..5_u32 {
        t.advance(secs(20)).await;
        assert_eq!(t.add_job(extending("a", &n.to_string(), None)).await, extended(t.in_ms(30_000), n - 1));
        assert_eq!((t.due("a").await, t.payload("a").await), (t.in_ms(30_000), n.to_string()));
        let expected = Metadata { version: n - 1, first_added: Some(first), delay: BY, ..Metadata::default() };
        assert_eq!(t.metadata("a").await, expected);
    }
    let sooner = NewJob { due: dq::store::Due::After(secs(1)), ..extending("a", "sooner", None) };
    assert_eq!(t.add_job(sooner).await, extended(t.in_ms(1_000), 4));
    t.advance(secs(1)).await;
    t.claim(NODE, "a").await;
}

/// No extension moves a job beyond its limit, which counts from the first add, so a job that is extended for ever runs (rule 28).
pub async fn extension_cannot_starve_a_job(t: &Topic) {
    t.add_job(extending("a", "0", Some(70))).await;
    let limit = t.in_ms(70_000);
    for n in 1..=5_u32 {
        t.advance(secs(12)).await;
        let due = t.in_ms(30_000).min(limit);
        assert_eq!(t.add_job(extending("a", &n.to_string(), Some(70))).await, extended(due, n));
    }
    t.advance(secs(10)).await;
    assert_eq!(t.now(), limit);
    assert_eq!(t.claim(NODE, "a").await.record.payload().expect("the record is readable").1, b"5");
}

/// An extension beyond the limit makes the job due now, never in the past (rules 4, 28).
pub async fn extension_beyond_the_limit_is_now(t: &Topic) {
    t.add_job(extending("a", "1", Some(60))).await;
    t.advance(secs(29)).await;
    t.changed("a", ChangeKind::ExtendBy(secs(300))).await;
    t.advance(secs(60)).await;
    assert_eq!(t.add_job(extending("a", "2", Some(60))).await, extended(t.now(), 2));
}

/// A job that was added in another way has no first add; its first extension is that (rule 28).
pub async fn extension_of_an_ordinary_job_counts_from_now(t: &Topic) {
    for hours in [0, 9] {
        t.add_later("a", secs(60 + hours * 3_600)).await;
        t.advance(secs(10)).await;
        let first = t.now();
        assert_eq!(t.add_job(extending("a", "1", Some(40))).await, extended(t.in_ms(30_000), 1));
        assert_eq!(t.metadata("a").await.first_added, Some(first));
        t.advance(secs(20)).await;
        assert_eq!(t.add_job(extending("a", "2", Some(40))).await, extended(first.after(secs(40)), 2));
        t.delete("a").await;
    }
}

/// Attempts, headers, retention and crashes of the old job stay, and its expiry keeps its distance to the due time; the options of the
/// new job say nothing (rule 28).
pub async fn extension_keeps_the_rest_of_the_job(t: &Topic) {
    t.running(NODE, "a").await;
    t.crash(NODE).await;
    let claim = t.claim(NODE, "a").await;
    let old = Metadata {
        attempts: 2,
        retain: secs(60),
        expires_at: Some(t.in_ms(90_000)),
        headers: vec![("trace".into(), "1".into())],
        ..Metadata::default()
    };
    t.end_with(NODE, &claim, Change::Rollback, old.clone()).await;
    let expires_at = t.in_ms(120_000 + t.now().since(t.due("a").await).as_millis() as u64);
    let new = NewJob { expires_after: Some(secs(1)), ..extending("a", "new", None) };
    assert_eq!(t.add_job(new).await, extended(t.in_ms(30_000), 1));
    let expected = Metadata { version: 1, first_added: Some(t.now()), expires_at: Some(expires_at), ..old };
    assert_eq!(t.metadata("a").await, expected);
    t.advance(secs(30)).await;
    assert_eq!(t.claim(NODE, "a").await.crashes, 1);
}

/// Over a RUNNING job the new one waits for the end of the run; then it is a new job with a first add of its own (rules 13, 28).
pub async fn extension_of_a_running_job_becomes_its_replacement(t: &Topic) {
    t.add_job(extending("a", "1", Some(60))).await;
    t.advance(BY).await;
    let claim = t.claim(NODE, "a").await;
    assert_eq!(t.add_job(extending("a", "2", Some(60))).await, AddOutcome::ReplacementWaits);
    let (first, due) = (t.now(), t.in_ms(30_000));
    assert_eq!((t.state("a").await, t.payload("a").await), (Some(State::Running), "1".into()));
    t.advance(secs(3)).await;
    t.end(NODE, &claim, Change::Retry(secs(1))).await;
    assert_eq!((t.due("a").await, t.payload("a").await), (due, "2".into()));
    assert_eq!(t.metadata("a").await, Metadata { first_added: Some(first), delay: BY, ..Metadata::default() });
}

/// A replacement that waits is extended by the same rule, from its own first add (rules 13, 28).
pub async fn extension_moves_a_waiting_replacement(t: &Topic) {
    let claim = t.running(NODE, "a").await;
    t.add_job(extending("a", "1", Some(40))).await;
    let first = t.now();
    t.advance(secs(5)).await;
    assert_eq!(t.add_job(extending("a", "2", Some(40))).await, extended(first.after(secs(35)), 1));
    t.advance(secs(7)).await;
    assert_eq!(t.add_job(extending("a", "3", Some(40))).await, extended(first.after(secs(40)), 2));
    t.end(NODE, &claim, Change::Ack).await;
    assert_eq!((t.due("a").await, t.payload("a").await), (first.after(secs(40)), "3".into()));
    assert_eq!(
        t.metadata("a").await,
        Metadata { version: 2, first_added: Some(first), delay: BY, ..Metadata::default() }
    );
}

/// A replacement that was added in another way is extended too, and keeps its own metadata (rules 13, 28).
pub async fn extension_moves_an_ordinary_replacement(t: &Topic) {
    let claim = t.running(NODE, "a").await;
    t.add_job(replacing("a", "1")).await;
    assert_eq!(t.add_job(extending("a", "2", None)).await, extended(t.in_ms(30_000), 1));
    let (first, due) = (t.now(), t.in_ms(30_000));
    t.end(NODE, &claim, Change::Ack).await;
    assert_eq!((t.due("a").await, t.payload("a").await), (due, "2".into()));
    assert_eq!(t.metadata("a").await, Metadata { version: 1, first_added: Some(first), ..Metadata::default() });
}

/// No event is lost under a pending end: a conditional replacement that is extended waits in any case (rules 13, 28).
pub async fn extension_under_an_end_is_not_lost(t: &Topic) {
    let claim = t.running(NODE, "a").await;
    t.ack_run("a", dq::job::Fence(claim.token.fence.0 + 1)).await;
    let kept = NewJob { on_duplicate: OnDuplicate::Keep, ..extending("a", "1", None) };
    assert_eq!(t.add_job(kept).await, AddOutcome::ReplacementIfEnds);
    assert_eq!(t.add_job(extending("a", "2", None)).await, extended(t.in_ms(30_000), 1));
    t.end(NODE, &claim, Change::Ack).await;
    assert_eq!(t.payload("a").await, "2", "though the ack was for another run");
    t.delete("a").await;
    let claim = t.running(NODE, "a").await;
    t.delete("a").await;
    assert_eq!(t.add_job(extending("a", "3", None)).await, AddOutcome::ReplacementWaits);
    assert_eq!(t.add_job(extending("a", "4", None)).await, extended(t.in_ms(30_000), 1));
    t.end(NODE, &claim, Change::Ack).await;
    assert_eq!(t.payload("a").await, "4");
}

/// An UNACKED or DEAD job waits for no time, so it is kept as it is, and the answer says so (rule 28).
pub async fn extension_leaves_a_job_that_waits_for_no_time(t: &Topic) {
    for state in [State::Unacked, State::Dead] {
        add_in_state(t, "a", state).await;
        let before = t.stored("a").await;
        assert_eq!(t.add_job(extending("a", "new", Some(60))).await, AddOutcome::Exists(state));
        assert_eq!(t.stored("a").await, before);
        t.delete("a").await;
    }
}

/// A broadcast that waits is extended (rules 24, 28).
pub async fn extension_moves_a_waiting_broadcast(t: &Topic) {
    let new = |payload| NewJob { deliver: Delivery::Broadcast, ..extending("a", payload, Some(40)) };
    assert_eq!(t.add_job(new("1")).await, AddOutcome::Added);
    let first = t.now();
    t.advance(secs(20)).await;
    assert_eq!(t.add_job(new("2")).await, extended(first.after(secs(40)), 1));
    assert_eq!((t.due("a").await, t.payload("a").await), (first.after(secs(40)), "2".into()));
    assert_eq!((t.metadata("a").await.first_added, t.counts().await.broadcasts), (Some(first), 1));
}

/// A job that is both in the queue and among the broadcasts is extended in both, wherever the new job is to be (rules 24, 28).
pub async fn extension_moves_job_and_broadcast_together(t: &Topic) {
    t.add_job(NewJob { deliver: Delivery::Both, ..extending("a", "1", None) }).await;
    t.advance(secs(20)).await;
    assert_eq!(t.add_job(extending("a", "2", None)).await, extended(t.in_ms(30_000), 1));
    let due = t.in_ms(30_000);
    t.advance(BY).await;
    let claim = t.claim(NODE, "a").await;
    lock(&t.known).remove(&id("a")); // only its broadcast is left, which no page has
    t.end(NODE, &claim, Change::Ack).await;
    assert_eq!((t.due("a").await, t.payload("a").await, t.metadata("a").await.version), (due, "2".into(), 1));
}

/// A repeated batch extends once, and gets the answer of the first time (rules 18, 28).
pub async fn repeated_extension_extends_once(t: &Topic) {
    t.add_job(extending("a", "1", Some(60))).await;
    t.add_job(extending("b", "1", Some(60))).await;
    t.advance(secs(20)).await;
    let batch = t.numbered(vec![extending("a", "2", Some(60)), extending("x", "2", None), extending("b", "2", None)]);
    let first = t.producer().add(batch.clone()).await.expect("add is answered");
    let due = t.in_ms(30_000);
    assert_eq!(answered(first.clone()), [extended(due, 1), AddOutcome::Added, extended(due, 1)]);
    t.advance(secs(5)).await;
    let before = t.stored("a").await;
    assert_eq!(t.producer().add(batch).await.expect("add is answered"), first);
    assert_eq!(t.stored("a").await, before);
}

/// An extension to an earlier time signals the new head, a later one nothing (rules 23, 28).
pub async fn extension_signals_an_earlier_head(t: &Topic) {
    t.add_later("a", secs(60)).await;
    t.transfer("w", 1).await;
    let mut w = t.subscribe("w").await;
    assert_eq!(t.add_job(extending("a", "1", None)).await, extended(t.in_ms(30_000), 1));
    assert_eq!(w.received(t).await, [Signal::Due(Some(t.in_ms(30_000)))]);
    t.advance(secs(1)).await;
    t.add_job(extending("a", "2", None)).await;
    assert_eq!(w.received(t).await, []);
}

/// A job that is due much later is extended like any other (rules 2, 28).
pub async fn far_job_is_extended(t: &Topic) {
    let hour =
        |payload, at_most| NewJob { due: dq::store::Due::After(secs(3_600)), ..extending("a", payload, Some(at_most)) };
    assert_eq!(t.add_job(hour("1", 8 * 3_600)).await, AddOutcome::Added);
    let first = t.now();
    for n in 1..=3_u32 {
        t.advance(secs(1_800)).await;
        assert_eq!(t.add_job(hour("2", 8 * 3_600)).await, extended(t.in_ms(3_600_000), n));
    }
    assert_eq!(t.add_job(hour("3", 7_200)).await, extended(first.after(secs(7_200)), 4));
    t.set_clock(first.after(secs(7_200)).as_millis() * 1_000).await;
    assert_eq!(t.claim(NODE, "a").await.record.payload().expect("the record is readable").1, b"3");
}

/// Payloads of any size extend a job (rules 5, 28).
pub async fn extension_may_grow_and_shrink_a_payload(t: &Topic) {
    for text in ["x".repeat(200_000), "small".to_owned(), "y".repeat(5_000)] {
        t.add_job(extending("a", &text, None)).await;
        assert_eq!(t.payload("a").await, text);
        t.advance(ms(1)).await;
    }
    t.advance(BY).await;
    let claim = t.claim(NODE, "a").await;
    assert_eq!(claim.record.payload().expect("the record is readable").1, "y".repeat(5_000).as_bytes());
    t.end(NODE, &claim, Change::Park).await;
    assert_eq!(t.metadata("a").await.version, 2);
}

/// Of many large replacements a batch extends as many as it may rewrite, and answers *later* for the others (rules 5, 28).
pub async fn extended_replacements_are_bounded_by_bytes(t: &Topic) {
    let names = ["a", "b", "c"];
    for name in names {
        t.add(name).await;
    }
    assert_eq!(t.claims(NODE).await.len(), 3);
    let large = "x".repeat(DEFAULT_BYTES * 2 / 3);
    for name in names {
        assert_eq!(t.add_job(extending(name, &large, None)).await, AddOutcome::ReplacementWaits);
    }
    let outcomes = t.add_all(names.iter().map(|name| extending(name, "small", None)).collect()).await;
    assert_eq!(outcomes, [extended(t.in_ms(30_000), 1), AddOutcome::Later, AddOutcome::Later]);
    let outcomes = t.add_all(names.iter().skip(1).map(|name| extending(name, "small", None)).collect()).await;
    assert_eq!(outcomes, [extended(t.in_ms(30_000), 1), AddOutcome::Later]);
}
