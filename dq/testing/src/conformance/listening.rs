//! Moves: what a step tells those who listen to the events of a topic (rule 31).

use super::copies::{copy, import_of};
use super::histories::{self, node};
use super::producer::{job, replacing, retained};
use super::topic::{LEASE, Topic, id, ms, secs};
use dq::job::{Cause, Metadata, State};
use dq::store::step::Change;
use dq::store::{
    ChangeKind, CommandKind, Interest, JobChange, MAX_MOVES, MOVES_BYTES, OnDuplicate, Signal, Signals, Transition,
};

/// A subscription to moves.
struct Listener(Signals);

impl Listener {
    async fn of(t: &Topic) -> Self {
        let interest = Interest { node: None, broadcasts: false, moves: true };
        let signals = t.store.signals(&t.key, interest).await.expect("signals is answered");
        t.store.listen(&t.key).await.expect("listen is answered");
        Self(signals)
    }

    /// The moves of the next message: what a step tells.
    async fn told(&mut self, t: &Topic) -> Vec<(String, Transition)> {
        loop {
            if let Signal::Moves(told) = self.0.next().await.expect("the store keeps the subscription") {
                assert_eq!((told.at, told.more), (t.now(), 0));
                return told.moves.into_iter().map(|(id, what)| (id.to_string(), what)).collect();
            }
        }
    }

    /// The only move of the next message, which is of job `a`.
    async fn one(&mut self, t: &Topic) -> Transition {
        let mut told = self.told(t).await;
        let (id, what) = told.pop().expect("a message has a move");
        assert_eq!((id.as_str(), told.len()), ("a", 0));
        what
    }
}

/// The producer of the topic, as moves name it.
fn by(told: &Transition) -> String {
    histories::by(told).unwrap_or_else(|| panic!("{told:?} names no caller")).to_owned()
}

/// A run is told from the add to its end: lateness, retry with cause and next due time, rejoin, park, dead and requeue (rule 31).
pub async fn moves_of_runs_are_told(t: &Topic) {
    let mut listener = Listener::of(t).await;
    t.add("a").await;
    assert_eq!(listener.one(t).await, Transition::Added { due: t.now() });
    let due = t.now();
    t.advance(ms(7)).await;
    let claim = t.claim("n", "a").await;
    assert_eq!(listener.one(t).await, Transition::Claimed { due, node: node(t) });
    let failed = Metadata { attempts: 1, cause: Some(Cause::Timeout), ..Metadata::default() };
    t.end_with("n", &claim, Change::Retry(secs(3)), failed.clone()).await;
    let due = t.now().after(secs(3));
    assert_eq!(listener.one(t).await, Transition::Retried { cause: Some(Cause::Timeout), due, node: node(t) });
    t.advance(secs(3)).await;
    let claim = t.claim("n", "a").await;
    listener.one(t).await;
    t.end("n", &claim, Change::Rejoin(dq::store::step::RejoinDue::After(ms(5)))).await;
    assert_eq!(listener.one(t).await, Transition::Rejoined { due: t.now().after(ms(5)), node: node(t) });
    t.advance(ms(5)).await;
    let claim = t.claim("n", "a").await;
    listener.one(t).await;
    t.end("n", &claim, Change::Rollback).await;
    assert_eq!(listener.one(t).await, Transition::GivenBack { node: node(t) });
    let claim = t.claim("n", "a").await;
    listener.one(t).await;
    t.end("n", &claim, Change::Park).await;
    assert_eq!(listener.one(t).await, Transition::Parked { node: node(t) });
    t.requeue("a").await;
    let told = listener.one(t).await;
    assert_eq!(told, Transition::Requeued { by: by(&told) });
    let claim = t.claim("n", "a").await;
    listener.one(t).await;
    t.end_with("n", &claim, Change::Dead, failed).await;
    assert_eq!(listener.one(t).await, Transition::Dead { cause: Some(Cause::Timeout), node: node(t) });
    t.delete("a").await;
    let told = listener.one(t).await;
    assert_eq!(told, Transition::Deleted { by: by(&told) });
    assert!(!by(&told).is_empty(), "a command names its producer");
}

/// All jobs of a step are told in one message, acks among other outcomes too (rule 31).
pub async fn a_step_tells_all_its_moves_at_once(t: &Topic) {
    let mut listener = Listener::of(t).await;
    t.add_all(vec![job("a"), job("b"), retained("c")]).await;
    let added = |name: &str| (name.to_owned(), Transition::Added { due: t.now() });
    assert_eq!(listener.told(t).await, [added("a"), added("b"), added("c")]);
    let claims = t.claims("n").await;
    let claimed = |name: &str| (name.to_owned(), Transition::Claimed { due: t.now(), node: node(t) });
    assert_eq!(listener.told(t).await, [claimed("a"), claimed("b"), claimed("c")]);
    let ack = |claim: &dq::store::step::Claim| t.settle_of("n", claim, Change::Ack).outcomes;
    t.settle_all("n", claims.iter().flat_map(ack).collect()).await;
    let mut told = listener.told(t).await;
    told.sort_by(|(a, _), (b, _)| a.cmp(b));
    let done = |name: &str| (name.to_owned(), Transition::Done { by: node(t) });
    assert_eq!(told, [done("a"), done("b"), done("c")]);
    t.advance(secs(61)).await;
    t.store.listen(&t.key).await.expect("listen is answered");
    t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!(listener.told(t).await, [("c".to_owned(), Transition::Removed)]);
    t.add_later("far", secs(86_400)).await;
    let due = t.now().after(secs(86_400));
    assert_eq!(listener.told(t).await, [("far".to_owned(), Transition::Added { due })]);
}

/// Commands and adds over a run are told when they come, and what they lead to when the run ends (rules 13 and 31).
pub async fn moves_over_a_run_are_told_twice(t: &Topic) {
    let mut listener = Listener::of(t).await;
    t.add("a").await;
    let claim = t.claim("n", "a").await;
    t.cancel("a").await;
    listener.told(t).await;
    listener.told(t).await;
    let told = listener.one(t).await;
    assert_eq!(told, Transition::CommandWaits { command: CommandKind::Cancel, by: by(&told) });
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(listener.one(t).await, Transition::Deleted { by: String::new() });
    t.add("a").await;
    let claim = t.claim("n", "a").await;
    t.add_job(replacing("a", "new")).await;
    listener.told(t).await;
    listener.told(t).await;
    assert_eq!(listener.one(t).await, Transition::ReplacementWaits);
    let due = t.now();
    t.advance(ms(1)).await;
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(listener.one(t).await, Transition::Added { due });
}

/// Reclaimed and imported jobs and changes are told, too (rule 31).
pub async fn rare_moves_are_told(t: &Topic) {
    let mut listener = Listener::of(t).await;
    t.add("a").await;
    listener.one(t).await;
    t.claim("n", "a").await;
    listener.one(t).await;
    let seen = t.now().after(LEASE);
    t.advance(LEASE).await;
    t.store.listen(&t.key).await.expect("listen is answered");
    assert_eq!(t.reclaim("other", "n", seen, 10).await.moved, 1);
    assert_eq!(listener.one(t).await, Transition::Reclaimed { node: node(t) });
    let change = JobChange::new(id("a"), ChangeKind::ExtendBy(secs(60)));
    t.producer().change(t.numbered(vec![change])).await.expect("change is answered");
    let told = listener.one(t).await;
    assert!(
        matches!(&told, Transition::Changed { due: Some(due), by } if *due > t.now() && !by.is_empty()),
        "{told:?}"
    );
    t.import(import_of(vec![copy("b", State::Dead, t.now())], OnDuplicate::Keep)).await;
    assert_eq!(listener.told(t).await, [("b".to_owned(), Transition::Imported { state: State::Dead })]);
}

/// A listener that does not read hears how many moves it has missed, behind those that waited for it.
pub async fn a_slow_listener_hears_what_it_missed(t: &Topic) {
    let mut listener = Listener::of(t).await;
    let mut marker = t.subscribe("n").await;
    const STEPS: usize = 100;
    for n in 0..STEPS {
        t.add_all(vec![job(&format!("a{n}")), job(&format!("b{n}"))]).await;
    }
    // The marker is added and published; its message comes before the move that tells of that.
    marker.received(t).await;
    let (mut seen, mut missed) = (0, None);
    while missed.is_none() {
        match listener.0.next().await.expect("the store keeps the subscription") {
            Signal::Moves(told) => seen += told.moves.len() as u64,
            Signal::MovesMissed(count) => missed = Some(count),
            _ => {}
        }
    }
    assert!(seen > 0 && seen < 2 * MAX_MOVES as u64);
    t.add("next").await;
    let mut next = listener.told(t).await;
    if next[0].0 != "next" {
        seen += next.len() as u64;
        next = listener.told(t).await;
    }
    assert_eq!(next, [("next".to_owned(), Transition::Added { due: t.now() })]);
    assert_eq!(seen + missed.unwrap_or_default(), 2 * STEPS as u64 + 2);
}

/// A step that makes more moves than a message has room for says how many are left out.
pub async fn a_message_with_moves_is_bounded_by_bytes(t: &Topic) {
    let mut listener = Listener::of(t).await;
    const JOBS: u64 = 600;
    t.add_all((0..JOBS).map(|n| job(&format!("{n:0>250}"))).collect()).await;
    loop {
        if let Signal::Moves(told) = listener.0.next().await.expect("the store keeps the subscription") {
            assert_eq!(told.moves.len() as u64 + told.more, JOBS);
            let bytes: usize = told.moves.iter().map(|(id, _)| id.as_str().len()).sum();
            assert!(told.more > 0 && MOVES_BYTES / 2 < bytes && bytes <= MOVES_BYTES, "{bytes}");
            return;
        }
    }
}
