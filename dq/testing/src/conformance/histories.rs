//! The histories of jobs: what a topic keeps of their moves, when it is told to (rule 31).

use super::broadcasts::publish;
use super::copies::{copy, import_of};
use super::producer::{answered, command, delayed, job, replacing, retained};
use super::topic::{Topic, id, ms, secs};
use dq::job::{Cause, Delivery, Metadata, State};
use dq::store::step::Change;
use dq::store::{
    ChangeKind, Command, CommandKind, HISTORY_BYTES, HistorySetting, JobChange, JobHistory, MAX_HISTORY,
    MAX_HISTORY_RETENTION, MAX_MOVES, NewJob, OnDuplicate, StoreError, Transition,
};
use dq::time::Timestamp;
use std::time::Duration;

impl Topic {
    pub(super) async fn keep_history(&self, moves: usize, after: Duration) {
        let setting = HistorySetting { moves, after };
        self.store.keep_history(&self.key, setting).await.expect("keep_history is answered");
    }

    async fn history(&self, name: &str) -> Option<JobHistory> {
        self.store.history(&self.key, &id(name)).await.expect("history is answered")
    }

    /// The moves of a job that has a history.
    pub(super) async fn moves(&self, name: &str) -> Vec<Transition> {
        let history = self.history(name).await.unwrap_or_else(|| panic!("{name} has a history"));
        history.into_iter().map(|(_, made)| made).collect()
    }

    async fn command_by(&self, verb: CommandKind, name: &str, by: &str) {
        let item = Command { by: Some(by.into()), ..command(verb, name, None) };
        let answer = self.producer().command(self.numbered(vec![item])).await.expect("command is answered");
        assert!(answered(answer)[0].changed, "{verb:?} of {name}");
    }
}

/// The node `n`, as moves name it.
pub(super) fn node(t: &Topic) -> String {
    t.node("n").to_string()
}

/// A topic that was told to keeps each move of a job, with its time, cause, node and next due time, in the step that makes it (rule 31).
pub async fn history_has_the_moves_of_a_job(t: &Topic) {
    t.keep_history(20, Duration::ZERO).await;
    let (added, node) = (t.now(), node(t));
    t.add_job(retained("a")).await;
    t.advance(ms(7)).await;
    let claim = t.claim("n", "a").await;
    let failed = Metadata { attempts: 1, cause: Some(Cause::Timeout), retain: secs(60), ..Metadata::default() };
    t.end_with("n", &claim, Change::Retry(secs(3)), failed).await;
    let again = t.now().after(secs(3));
    t.advance(secs(4)).await;
    let claim = t.claim("n", "a").await;
    t.advance(ms(1)).await;
    t.end("n", &claim, Change::Park).await;
    t.command_by(CommandKind::Ack, "a", "alice").await;
    let (first, second, last) = (added.after(ms(7)), added.after(ms(4_007)), added.after(ms(4_008)));
    assert_eq!(
        t.history("a").await.expect("a has a history"),
        [
            (added, Transition::Added { due: added }),
            (first, Transition::Claimed { due: added, node: node.clone() }),
            (first, Transition::Retried { cause: Some(Cause::Timeout), due: again, node: node.clone() }),
            (second, Transition::Claimed { due: again, node: node.clone() }),
            (last, Transition::Parked { node }),
            (last, Transition::Done { by: "alice".into() }),
        ]
    );
}

/// Without being told to, a topic keeps nothing, and a job that was there before has what came since (rule 31).
pub async fn topic_keeps_no_history_unless_it_is_told_to(t: &Topic) {
    t.add("a").await;
    let claim = t.claim("n", "a").await;
    assert_eq!(t.history("a").await, None);
    t.keep_history(20, secs(60)).await;
    assert_eq!(t.history("a").await, None);
    t.end("n", &claim, Change::Ack).await;
    assert_eq!(t.moves("a").await, [Transition::Done { by: node(t) }]);
    assert_eq!(t.history("unknown").await, None);
}

/// A history has as many moves as the topic was told to keep, the newest, and is bounded in bytes (rule 31).
pub async fn history_keeps_the_newest_moves(t: &Topic) {
    t.keep_history(3, Duration::ZERO).await;
    t.add("a").await;
    for _ in 0..3 {
        let claim = t.claim("n", "a").await;
        t.advance(ms(1)).await;
        t.end("n", &claim, Change::Rollback).await;
    }
    let due = Timestamp::from_millis(t.now().as_millis() - 3);
    let (given, claimed) = (Transition::GivenBack { node: node(t) }, Transition::Claimed { due, node: node(t) });
    assert_eq!(t.moves("a").await, [given.clone(), claimed, given]);
    t.keep_history(MAX_HISTORY, Duration::ZERO).await;
    t.add_later("b", secs(60)).await;
    let by = |n: usize| format!("{n:0>250}");
    let change = |n| JobChange { by: Some(by(n).into()), ..JobChange::new(id("b"), ChangeKind::ExtendBy(secs(1))) };
    for n in 0..50 {
        t.change_all(vec![change(n)]).await;
    }
    let moves = t.moves("b").await;
    assert!((10..=HISTORY_BYTES / 250).contains(&moves.len()), "{} moves", moves.len());
    assert!(matches!(moves.last(), Some(Transition::Changed { by: last, .. }) if *last == by(49)));
}

/// The history goes with the job, however that ends (rule 31).
pub async fn history_goes_with_the_job(t: &Topic) {
    t.keep_history(20, Duration::ZERO).await;
    for name in ["acked", "dropped", "deleted", "waits", "kept"] {
        t.add_job(if name == "kept" { retained(name) } else { job(name) }).await;
    }
    t.add_later("far", secs(86_400)).await;
    let claims = t.claims("n").await;
    for claim in &claims {
        let change = if claim.id == id("dropped") { Change::Drop } else { Change::Ack };
        if claim.id == id("deleted") {
            t.delete("deleted").await;
        }
        t.end("n", claim, change).await;
    }
    t.delete("far").await;
    for name in ["acked", "dropped", "deleted", "waits", "far"] {
        assert_eq!(t.history(name).await, None, "{name}");
    }
    assert_eq!(t.moves("kept").await.last(), Some(&Transition::Done { by: node(t) }));
    t.advance(secs(61)).await;
    t.sweep("n", t.sweep_of("n", 10)).await;
    assert_eq!(t.history("kept").await, None);
}

/// Where the topic was told so, a history outlives its job, and says who deleted it (rule 31).
pub async fn history_after_the_end_says_who_deleted_the_job(t: &Topic) {
    t.keep_history(20, secs(60)).await;
    for name in ["deleted", "running", "acked"] {
        t.add(name).await;
    }
    let due = t.now();
    t.command_by(CommandKind::Delete, "deleted", "alice \t\\ \n \u{e9}").await;
    let claims = t.claims("n").await;
    t.command_by(CommandKind::Delete, "running", "bob").await;
    for claim in &claims {
        t.end("n", claim, Change::Ack).await;
    }
    let (added, claimed) = (Transition::Added { due }, Transition::Claimed { due, node: node(t) });
    let deleted = |by: &str| Transition::Deleted { by: by.into() };
    assert_eq!(t.moves("deleted").await, [added.clone(), deleted("alice \t\\ \n \u{e9}")]);
    let waits = Transition::CommandWaits { command: CommandKind::Delete, by: "bob".into() };
    assert_eq!(t.moves("running").await, [added.clone(), claimed.clone(), waits, deleted("")]);
    assert_eq!(t.moves("acked").await, [added, claimed, Transition::Done { by: node(t) }]);
    assert_eq!(t.find("deleted").await, None);
}

/// A sweep forgets histories whose time is over, at the millisecond and no more than its limit (rules 5, 31).
pub async fn histories_of_ended_jobs_are_forgotten(t: &Topic) {
    t.keep_history(20, secs(60)).await;
    for name in ["a", "b", "c"] {
        t.add(name).await;
        t.delete(name).await;
    }
    t.add("lives").await;
    t.enter("n").await;
    t.advance(ms(59_999)).await;
    assert!(!t.sweep("n", t.sweep_of("n", 2)).await.more);
    assert!(t.history("a").await.is_some());
    t.advance(ms(1)).await;
    let swept = t.sweep("n", t.sweep_of("n", 2)).await;
    assert_eq!((swept.more, swept.pruned_dead, swept.pruned_done), (true, 0, 0));
    let mut left = 0;
    for name in ["a", "b", "c"] {
        left += usize::from(t.history(name).await.is_some());
    }
    assert_eq!(left, 1);
    t.sweep("n", t.sweep_of("n", 2)).await;
    for name in ["a", "b", "c"] {
        assert_eq!(t.history(name).await, None, "{name}");
    }
    assert!(t.history("lives").await.is_some());
}

/// An id that is added again goes on with its history, which is not forgotten while the job is there (rule 31).
pub async fn id_added_again_goes_on_with_its_history(t: &Topic) {
    t.keep_history(20, secs(60)).await;
    let due = t.now();
    t.add("a").await;
    t.command_by(CommandKind::Delete, "a", "alice").await;
    t.advance(ms(1)).await;
    t.add("a").await;
    t.import(import_of(vec![copy("b", State::Dead, t.now())], OnDuplicate::Keep)).await;
    t.enter("n").await;
    t.advance(secs(61)).await;
    t.sweep("n", t.sweep_of("n", 10)).await;
    let (added, deleted) = (Transition::Added { due }, Transition::Deleted { by: "alice".into() });
    assert_eq!(t.moves("a").await, [added, deleted, Transition::Added { due: due.after(ms(1)) }]);
    assert_eq!(t.moves("b").await, [Transition::Imported { state: State::Dead }]);
    t.delete("a").await;
    assert_eq!(t.moves("a").await.len(), 4);
}

/// Every job of a large batch has its history, whether or not somebody listens to events (rule 31).
pub async fn each_job_of_a_batch_has_its_history(t: &Topic) {
    t.keep_history(20, Duration::ZERO).await;
    t.store.listen(&t.key).await.expect("listen is answered");
    let name = |n: usize| format!("{n:0>200}");
    t.add_all((0..MAX_MOVES).map(|n| job(&name(n))).collect()).await;
    let claims = t.transfer("n", MAX_MOVES).await.claims;
    assert_eq!(claims.len(), MAX_MOVES);
    t.settle_all("n", claims.iter().flat_map(|claim| t.settle_of("n", claim, Change::Park).outcomes).collect()).await;
    let moves = [
        Transition::Added { due: t.now() },
        Transition::Claimed { due: t.now(), node: node(t) },
        Transition::Parked { node: node(t) },
    ];
    for n in [0, 1, 249, 250, 251, 500, 998, 999] {
        assert_eq!(t.moves(&name(n)).await, moves, "{n}");
    }
    let acks = (0..MAX_MOVES).map(|n| command(CommandKind::Ack, &name(n), None)).collect();
    t.producer().command(t.numbered(acks)).await.expect("command is answered");
    for n in [0, 249, 250, 999] {
        assert_eq!(t.history(&name(n)).await, None, "{n}");
    }
}

/// A topic that is told to keep no moves forgets its histories at once, and writes none any more (rule 31).
pub async fn histories_are_forgotten_when_the_topic_keeps_none(t: &Topic) {
    t.keep_history(20, secs(60)).await;
    t.add("a").await;
    t.add("b").await;
    t.delete("b").await;
    t.keep_history(0, secs(60)).await;
    for name in ["a", "b"] {
        assert_eq!(t.history(name).await, None, "{name}");
    }
    t.claim("n", "a").await;
    assert_eq!(t.history("a").await, None);
    t.keep_history(20, secs(60)).await;
    assert_eq!(t.history("a").await, None);
}

/// A setting over the limits is refused, and the old one stays (rules 5, 31).
pub async fn history_over_the_limits_is_refused(t: &Topic) {
    t.keep_history(MAX_HISTORY, MAX_HISTORY_RETENTION).await;
    let over = [
        HistorySetting { moves: MAX_HISTORY + 1, after: Duration::ZERO },
        HistorySetting { moves: 1, after: MAX_HISTORY_RETENTION + ms(1) },
    ];
    for setting in over {
        let answer = t.store.keep_history(&t.key, setting).await;
        assert!(matches!(answer, Err(StoreError::OverLimit { .. })), "{answer:?}");
    }
    t.add("a").await;
    assert_eq!(t.moves("a").await.len(), 1);
}

/// Commands and changes carry the name of their caller; without one it is the producer, as it is of an add that extends the job. A repeat adds nothing
/// (rules 18, 28, 31).
pub async fn history_names_the_callers_of_commands_and_changes(t: &Topic) {
    t.keep_history(20, Duration::ZERO).await;
    t.add_job(delayed("a", secs(60))).await;
    t.add_job(NewJob { on_duplicate: OnDuplicate::Extend { at_most: None }, ..delayed("a", secs(30)) }).await;
    let due = t.due("a").await;
    let change = |by: Option<&str>| JobChange { by: by.map(Into::into), ..JobChange::new(id("a"), ChangeKind::RunNow) };
    let batch = t.numbered(vec![change(Some("alice")), change(None)]);
    for _ in 0..2 {
        t.producer().change(batch.clone()).await.expect("change is answered");
    }
    let claim = t.claim("n", "a").await;
    t.add_job(replacing("a", "new")).await;
    t.command_by(CommandKind::Cancel, "a", "carol").await;
    let moves = t.moves("a").await;
    let callers: Vec<_> = moves.iter().filter_map(by).collect();
    let [extends, "alice", runs, "carol"] = callers[..] else { panic!("{moves:?}") };
    assert!(extends == runs && !runs.is_empty(), "{moves:?}");
    assert_eq!(
        (&moves[1], &moves[5]),
        (&Transition::Changed { due: Some(due), by: runs.into() }, &Transition::ReplacementWaits)
    );
    t.end("n", &claim, Change::Park).await;
    assert_eq!(t.history("a").await, None);
}

/// Who asked for a move.
pub(super) fn by(made: &Transition) -> Option<&str> {
    match made {
        Transition::Changed { by, .. }
        | Transition::CommandWaits { by, .. }
        | Transition::Deleted { by }
        | Transition::Requeued { by } => Some(by),
        _ => None,
    }
}

/// A broadcast has a history until it is out, and a job that is in the queue too keeps it until both are gone (rules 24, 31).
pub async fn history_of_a_broadcast_ends_with_it(t: &Topic) {
    t.keep_history(20, Duration::ZERO).await;
    let deliver = |name: &str, deliver| NewJob { deliver, ..job(name) };
    t.add_job(deliver("only", Delivery::Broadcast)).await;
    t.add_job(deliver("both", Delivery::Both)).await;
    assert_eq!(t.moves("only").await, [Transition::Added { due: t.now() }]);
    assert_eq!(publish(t, "n", 10).await.published, 2);
    assert_eq!(t.history("only").await, None);
    assert_eq!(t.moves("both").await, [Transition::Added { due: t.now() }, Transition::Published]);
    t.delete("both").await;
    assert_eq!(t.history("both").await, None);
}
