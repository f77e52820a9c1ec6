//! Changes of jobs that are there: another due time, another payload (rule 28). `extending` has the adds that extend a job.

use super::changes::{change, update};
use super::events::{NODE, add_in_state};
use super::extending::extending;
use super::producer::{delayed, job, with_metadata, with_payload};
use super::topic::{Topic, id, lock, secs};
use dq::job::{Cause, Delivery, JobId, Metadata, Record, State};
use dq::store::step::{Change, DEFAULT_BYTES};
use dq::store::{
    AddOutcome, ChangeKind, ChangeOutcome, ChangeVerdict, Due, JobChange, NewJob, Numbered, Signal, StoreError,
};
use dq::time::Timestamp;

fn after(seconds: u64) -> ChangeKind {
    ChangeKind::Reschedule(Due::After(secs(seconds)))
}

/// The changes of a due time: each makes a job due that is due in an hour, this much from now.
fn verbs() -> [(ChangeKind, u64); 3] {
    [(after(9), 9_000), (ChangeKind::ExtendBy(secs(60)), 3_660_000), (ChangeKind::RunNow, 0)]
}

fn refused(found: Option<State>) -> ChangeOutcome {
    ChangeOutcome { found, verdict: ChangeVerdict::Refused, version: 0, due: None }
}

/// Reschedule, extend and run now give a DELAYED job another due time, and change nothing else of it but its version (rule 28).
pub async fn delayed_job_gets_another_due_time(t: &Topic) {
    for (what, due) in verbs() {
        add_in_state(t, "a", State::Delayed).await;
        let before = t.metadata("a").await;
        let outcome = t.changed("a", what).await;
        let due = t.in_ms(due);
        let expected =
            ChangeOutcome { found: Some(State::Delayed), verdict: ChangeVerdict::Changed, version: 1, due: Some(due) };
        assert_eq!(outcome, expected);
        assert_eq!((t.due("a").await, t.payload("a").await), (due, "a".into()));
        assert_eq!(t.metadata("a").await, Metadata { version: 1, ..before });
        t.set_clock(due.as_millis() * 1_000 - 1).await;
        assert_eq!(t.claimed_ids("n").await, [""; 0]);
        t.set_clock(due.as_millis() * 1_000).await;
        assert_eq!(t.claim("n", "a").await.token.due, due);
        t.crash("n").await;
        t.delete("a").await;
    }
}

/// The same of a broadcast that waits (rules 24, 28).
pub async fn waiting_broadcast_gets_another_due_time(t: &Topic) {
    for (what, due) in verbs() {
        let new = NewJob { deliver: Delivery::Broadcast, ..delayed("a", secs(3_600)) };
        assert_eq!(t.add_job(new).await, AddOutcome::Added);
        let outcome = t.changed("a", what).await;
        assert_eq!((outcome.found, outcome.version, outcome.due), (Some(State::Delayed), 1, Some(t.in_ms(due))));
        assert_eq!((t.due("a").await, t.metadata("a").await.version), (t.in_ms(due), 1));
        assert_eq!(t.counts().await.broadcasts, 1);
        t.delete("a").await;
    }
}

/// No change touches a RUNNING job: its run has it as it was, and decides what comes next (rule 28).
pub async fn running_job_is_not_changed(t: &Topic) {
    let claim = t.running(NODE, "a").await;
    for what in verbs().map(|(what, _)| what).into_iter().chain([update("new")]) {
        assert_eq!(t.change("a", what).await, refused(Some(State::Running)));
    }
    t.end(NODE, &claim, Change::Retry(secs(5))).await;
    assert_eq!(
        (t.due("a").await, t.payload("a").await, t.metadata("a").await.version),
        (t.in_ms(5_000), "a".into(), 0)
    );
}

/// A change of a RUNNING job leaves its pending command as it is (rules 13, 28).
pub async fn change_of_a_running_job_leaves_its_pending_command(t: &Topic) {
    let claim = t.running(NODE, "a").await;
    t.add_job(NewJob { on_duplicate: dq::store::OnDuplicate::Replace, ..with_payload("a", "replacement") }).await;
    t.change("a", update("new")).await;
    t.change("a", after(9)).await;
    t.end(NODE, &claim, Change::Ack).await;
    assert_eq!((t.payload("a").await, t.due("a").await), ("replacement".into(), t.now()));
}

/// An UNACKED or DEAD job waits for no time, so it gets no due time; a DONE job is not changed (rule 28).
pub async fn job_that_waits_for_no_time_gets_none(t: &Topic) {
    let due_times = verbs().map(|(what, _)| what);
    let cases = [State::Unacked, State::Dead, State::Done]
        .into_iter()
        .flat_map(|state| due_times.clone().map(|what| (state, what)));
    for (state, what) in cases.chain([(State::Done, update("new"))]) {
        add_in_state(t, "a", state).await;
        let before = t.stored("a").await;
        assert_eq!(t.change("a", what.clone()).await, refused(Some(state)), "{what:?}");
        assert_eq!(t.stored("a").await, before);
        t.delete("a").await;
    }
}

/// A change of an unknown id changes nothing, and says that there is no such job (rule 28).
pub async fn change_of_an_unknown_id_says_so(t: &Topic) {
    for what in verbs().map(|(what, _)| what).into_iter().chain([update("new")]) {
        assert_eq!(t.change("a", what).await, refused(None));
    }
    t.add("a").await;
}

/// Each change raises the version by one, and one that names another version changes nothing and answers the present one (rule 28).
pub async fn change_may_name_the_version(t: &Topic) {
    t.add_later("a", secs(60)).await;
    let named = |what, version| JobChange { if_version: Some(version), ..change("a", what) };
    for (version, what) in [(0, after(9)), (1, update("new")), (2, ChangeKind::ExtendBy(secs(1)))] {
        for wrong in [version + 1, u32::MAX] {
            let before = t.stored("a").await;
            let outcome = t.change_all(vec![named(what.clone(), wrong)]).await.remove(0);
            assert_eq!((outcome.verdict, outcome.version), (ChangeVerdict::OtherVersion, version));
            assert_eq!((outcome.due, t.stored("a").await), (Some(t.due("a").await), before));
        }
        let outcome = t.change_all(vec![named(what, version)]).await.remove(0);
        assert_eq!((outcome.verdict, outcome.version), (ChangeVerdict::Changed, version + 1));
        assert_eq!(t.metadata("a").await.version, version + 1);
    }
    assert_eq!((t.due("a").await, t.payload("a").await), (t.in_ms(10_000), "new".into()));
}

/// The state decides before the version: a RUNNING job is refused under any version, and its version is answered (rule 28).
pub async fn version_of_a_running_job_is_answered(t: &Topic) {
    t.add_later("a", secs(60)).await;
    t.changed("a", ChangeKind::RunNow).await;
    let claim = t.claim(NODE, "a").await;
    let outcome = t.change_all(vec![JobChange { if_version: Some(7), ..change("a", after(1)) }]).await.remove(0);
    assert_eq!(outcome, ChangeOutcome { version: 1, ..refused(Some(State::Running)) });
    t.end(NODE, &claim, Change::Retry(secs(1))).await;
    assert_eq!(t.metadata("a").await.version, 1, "the version outlives a run");
}

/// A job that replaces another begins with version 0, whatever its record says (rule 28).
pub async fn new_job_begins_with_version_zero(t: &Topic) {
    t.add_later("a", secs(60)).await;
    t.changed("a", after(9)).await;
    let forged = Metadata { version: 7, first_added: Some(Timestamp::from_millis(1)), ..Metadata::default() };
    let new = NewJob { on_duplicate: dq::store::OnDuplicate::Replace, ..with_metadata("a", &forged) };
    assert_eq!(t.add_job(new).await, AddOutcome::Replaced(State::Delayed));
    assert_eq!(t.metadata("a").await, Metadata::default());
}

/// The changes of a batch are applied in order, also several of one job (rule 28).
pub async fn changes_of_a_batch_are_applied_in_order(t: &Topic) {
    t.add_later("a", secs(60)).await;
    t.add_later("b", secs(60)).await;
    let changes = vec![
        change("a", after(5)),
        change("b", update("one")),
        change("x", ChangeKind::RunNow),
        change("a", ChangeKind::ExtendBy(secs(2))),
        change("b", update("two")),
        change("b", after(3)),
    ];
    let outcomes = t.change_all(changes).await;
    let seen: Vec<_> = outcomes.iter().map(|outcome| (outcome.version, outcome.due)).collect();
    let at = |seconds: u64| Some(t.in_ms(seconds * 1_000));
    assert_eq!(seen, [(1, at(5)), (1, at(60)), (0, None), (2, at(7)), (2, at(60)), (3, at(3))]);
    assert_eq!(
        (t.due("a").await, t.due("b").await, t.payload("b").await),
        (t.in_ms(7_000), t.in_ms(3_000), "two".into())
    );
}

/// A batch that is repeated under its number does nothing, and gets the answer of the first time (rules 18, 28).
pub async fn repeated_change_does_nothing(t: &Topic) {
    t.add_later("a", secs(60)).await;
    let items =
        vec![change("a", ChangeKind::ExtendBy(secs(1))), change("x", ChangeKind::RunNow), change("a", update("new"))];
    let batch = t.numbered(items);
    let first = t.producer().change(batch.clone()).await.expect("change is answered");
    t.advance(secs(1)).await;
    let before = t.stored("a").await;
    assert_eq!(t.producer().change(batch.clone()).await.expect("change is answered"), first);
    assert_eq!(t.stored("a").await, before);
    let other = t.producer().command(Numbered { number: batch.number, items: Vec::new() }).await;
    assert!(matches!(other, Err(StoreError::Other { .. })), "{other:?}");
    let other = t.producer().add(Numbered { number: batch.number, items: vec![job("b")] }).await;
    assert!(matches!(other, Err(StoreError::Other { .. })), "{other:?}");
}

/// A past time means now; a job that is run now and was due before keeps its place in the order (rules 4, 28).
pub async fn past_due_time_of_a_change_becomes_now(t: &Topic) {
    t.add_later("a", secs(60)).await;
    t.add("b").await;
    let due = t.due("b").await;
    t.advance(secs(5)).await;
    let outcome = t.changed("a", ChangeKind::Reschedule(Due::At(Timestamp::from_millis(1)))).await;
    assert_eq!(outcome.due, Some(t.now()));
    let outcome = t.changed("b", ChangeKind::RunNow).await;
    assert_eq!((outcome.due, outcome.version), (Some(due), 1));
    assert_eq!(t.claimed_ids("n").await, ["b", "a"]);
}

/// A job is due at the time to which it is rescheduled, rounded up as that of an add (rules 4, 28).
pub async fn job_is_rescheduled_to_a_time(t: &Topic) {
    t.add_later("a", secs(60)).await;
    let at = t.in_ms(7_000);
    assert_eq!(t.changed("a", ChangeKind::Reschedule(Due::At(at))).await.due, Some(at));
    t.set_clock(t.micros() + 1).await;
    let due = t.in_ms(3_001);
    assert_eq!(t.changed("a", after(3)).await.due, Some(due));
}

/// An extension counts from the due time that the job has, also if that is past (rule 28).
pub async fn extension_counts_from_the_due_time(t: &Topic) {
    t.add_later("a", secs(60)).await;
    let due = t.due("a").await;
    t.advance(secs(30)).await;
    assert_eq!(t.changed("a", ChangeKind::ExtendBy(secs(5))).await.due, Some(due.after(secs(5))));
    t.advance(secs(60)).await;
    assert_eq!(t.changed("a", ChangeKind::ExtendBy(secs(5))).await.due, Some(due.after(secs(10))));
    t.claim("n", "a").await;
}

/// The expiry of a job keeps its distance to the due time, in the queue and among the broadcasts (rule 28).
pub async fn expiry_moves_along(t: &Topic) {
    for deliver in [Delivery::Queue, Delivery::Broadcast] {
        let new = NewJob { expires_after: Some(secs(10)), deliver, ..delayed("a", secs(60)) };
        assert_eq!(t.add_job(new).await, AddOutcome::Added);
        for (what, due) in [(after(9), 9), (ChangeKind::ExtendBy(secs(3)), 12), (ChangeKind::RunNow, 0)] {
            t.changed("a", what).await;
            assert_eq!(t.metadata("a").await.expires_at, Some(t.in_ms((due + 10) * 1_000)));
        }
        t.changed("a", update("new")).await;
        assert_eq!(t.metadata("a").await.expires_at, Some(t.in_ms(10_000)));
        t.delete("a").await;
    }
}

/// A rejoin waits for the delay of the add, whatever a change did to the due time (rule 28).
pub async fn change_leaves_the_delay_of_a_rejoin(t: &Topic) {
    t.add_later("a", secs(60)).await;
    t.changed("a", ChangeKind::RunNow).await;
    t.run(NODE, "a", Change::Rejoin(dq::store::step::RejoinDue::AsAdded)).await;
    assert_eq!(t.due("a").await, t.in_ms(60_000));
}

/// A failed job that waits for its retry can be changed, and keeps attempts, cause, error and crashes (rule 28).
pub async fn change_keeps_attempts_and_crashes(t: &Topic) {
    t.running(NODE, "a").await;
    t.crash(NODE).await;
    let claim = t.claim(NODE, "a").await;
    let failed = Metadata { attempts: 2, cause: Some(Cause::Error), error: Some("no".into()), ..Metadata::default() };
    t.end_with(NODE, &claim, Change::Rollback, failed.clone()).await;
    for what in [after(1), update("new"), ChangeKind::RunNow] {
        t.changed("a", what).await;
    }
    let claim = t.claim(NODE, "a").await;
    assert_eq!(
        (claim.crashes, claim.record.metadata().expect("it is readable")),
        (1, Metadata { version: 3, ..failed })
    );
}

/// A job that is due much later is changed like any other (rules 2, 28).
pub async fn far_job_is_changed(t: &Topic) {
    let hours = |n: u64| secs(n * 3_600);
    for (name, what) in
        [("a", after(1)), ("b", ChangeKind::ExtendBy(hours(9))), ("c", update("new")), ("d", after(7_200))]
    {
        t.add_later(name, hours(5)).await;
        let outcome = t.changed(name, what).await;
        assert_eq!((outcome.found, outcome.version), (Some(State::Delayed), 1));
        assert_eq!(outcome.due, Some(t.due(name).await));
    }
    t.add_later("e", hours(5)).await;
    let before = t.stored("e").await;
    let other = JobChange { if_version: Some(3), ..change("e", ChangeKind::RunNow) };
    assert_eq!(t.change_all(vec![other]).await[0].verdict, ChangeVerdict::OtherVersion);
    assert_eq!(t.stored("e").await, before);
    for (seconds, name) in [(1, "a"), (7_200, "d"), (5 * 3_600, "c"), (14 * 3_600, "b")] {
        t.set_clock(super::topic::START + seconds * 1_000_000).await;
        let ids = t.claimed_ids("n").await;
        assert!(ids.contains(&name.to_owned()), "{name}: {ids:?}");
    }
}

/// A job that is both in the queue and among the broadcasts is one job: a change changes both (rules 24, 28).
pub async fn job_and_broadcast_are_changed_together(t: &Topic) {
    let new = NewJob { deliver: Delivery::Both, ..delayed("a", secs(60)) };
    assert_eq!(t.add_job(new).await, AddOutcome::Added);
    assert_eq!(t.changed("a", after(2)).await.version, 1);
    assert_eq!(t.changed("a", update("new")).await.version, 2);
    t.advance(secs(2)).await;
    let claim = t.claim(NODE, "a").await;
    assert_eq!(claim.record.payload().expect("the record is readable").1, b"new");
    assert_eq!(t.change("a", after(9)).await.found, Some(State::Running));
    lock(&t.known).remove(&id("a")); // only its broadcast is left, which no page has
    t.end(NODE, &claim, Change::Ack).await;
    let broadcast = t.stored("a").await;
    assert_eq!(broadcast.record.payload().expect("the record is readable").1, b"new");
    assert_eq!(broadcast.record.metadata().expect("the record is readable").version, 2);
    assert_eq!(t.due("a").await, t.now());
}

/// A broadcast beside a parked job is not rescheduled, but its payload changes with that of the job (rules 24, 28).
pub async fn broadcast_beside_a_parked_job_gets_its_payload(t: &Topic) {
    let new = NewJob { deliver: Delivery::Both, ..delayed("a", secs(1)) };
    assert_eq!(t.add_job(new).await, AddOutcome::Added);
    t.advance(secs(1)).await;
    t.run(NODE, "a", Change::Park).await;
    assert_eq!(t.change("a", after(5)).await, refused(Some(State::Unacked)));
    assert_eq!(t.changed("a", update("new")).await.found, Some(State::Unacked));
    let mut subscriber = t.subscribe("n").await;
    let signals = subscriber.received_all(t).await;
    let published = signals.iter().find_map(|signal| match signal {
        Signal::Broadcast(message) => Some(Record::from_bytes(message.record.clone())),
        _ => None,
    });
    let record = published.expect("the broadcast is published");
    assert_eq!(record.payload().expect("the record is readable").1, b"new");
    assert_eq!(record.metadata().expect("the record is readable").version, 1);
}

/// Of many large broadcasts a batch changes as many as it may rewrite, and answers *later* for the others, of which it does nothing
/// (rules 5, 28).
pub async fn rewritten_broadcasts_are_bounded_by_bytes(t: &Topic) {
    let names = ["a", "b", "c"];
    for name in names {
        let new = NewJob { deliver: Delivery::Broadcast, ..with_payload(name, &"x".repeat(DEFAULT_BYTES * 2 / 3)) };
        assert_eq!(t.add_job(NewJob { due: Due::After(secs(60)), ..new }).await, AddOutcome::Added);
    }
    t.add_later("d", secs(60)).await;
    let changes: Vec<_> = names.iter().chain(&["d"]).map(|name| change(name, after(1))).collect();
    let verdicts: Vec<_> = t.change_all(changes).await.iter().map(|outcome| outcome.verdict).collect();
    assert_eq!(verdicts, [ChangeVerdict::Changed, ChangeVerdict::Later, ChangeVerdict::Later, ChangeVerdict::Changed]);
    assert_eq!((t.due("b").await, t.metadata("b").await.version), (t.in_ms(60_000), 0));
}

/// A version that cannot grow is not changed any more, and not extended (rule 28).
pub async fn last_version_is_not_changed(t: &Topic) {
    let last = Metadata { version: u32::MAX, ..Metadata::default() };
    let claim = t.running(NODE, "a").await;
    t.end_with(NODE, &claim, Change::Retry(secs(9)), last.clone()).await;
    for what in verbs().map(|(what, _)| what).into_iter().chain([update("new")]) {
        let outcome = t.change("a", what).await;
        assert_eq!((outcome.verdict, outcome.version), (ChangeVerdict::LastVersion, u32::MAX));
    }
    assert!(matches!(t.add_job(extending("a", "new", None)).await, AddOutcome::Refused(_)));
    assert_eq!((t.metadata("a").await, t.due("a").await), (last, t.in_ms(9_000)));
}

/// A thousand changes in one batch are answered one by one (rules 5, 28).
pub async fn batch_of_a_thousand_changes(t: &Topic) {
    let name = |n: usize| format!("j{n}");
    t.add_all((0..1_000).map(|n| delayed(&name(n), secs(60 + n as u64))).collect()).await;
    let outcomes =
        t.change_all((0..1_000).map(|n| change(&name(n), ChangeKind::ExtendBy(secs(n as u64)))).collect()).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        assert_eq!((outcome.version, outcome.due), (1, Some(t.in_ms(60_000 + 2_000 * n as u64))));
    }
    let ids: Vec<JobId> = t.pages(State::Delayed, 100).await.into_iter().map(|job| job.id).collect();
    assert_eq!(ids, (0..1_000).map(|n| id(&name(n))).collect::<Vec<_>>());
}

/// A change that makes an earlier head is signalled to the watcher with its due time, as an add is; any other change is not (rules
/// 23, 28).
pub async fn earlier_head_of_a_change_is_signalled(t: &Topic) {
    for (name, seconds) in [("a", 10), ("b", 12), ("c", 14)] {
        t.add_later(name, secs(seconds)).await;
    }
    t.transfer("w", 1).await;
    t.transfer("o", 1).await;
    let (mut w, mut o) = (t.subscribe("w").await, t.subscribe("o").await);
    for what in [after(13), ChangeKind::ExtendBy(secs(1)), update("new")] {
        t.changed("c", what).await;
        t.changed("a", update("new")).await;
        assert_eq!((w.received(t).await, o.received(t).await), (vec![], vec![]));
    }
    t.changed("b", after(9)).await;
    assert_eq!((w.received(t).await, o.received(t).await), (vec![Signal::Due(Some(t.in_ms(9_000)))], vec![]));
    t.change_all(vec![change("c", after(7)), change("a", after(8))]).await;
    assert_eq!((w.received(t).await, o.received(t).await), (vec![Signal::Due(Some(t.in_ms(7_000)))], vec![]));
    t.changed("a", ChangeKind::RunNow).await;
    assert_eq!((w.received(t).await, o.received(t).await), (vec![Signal::Due(Some(t.now()))], vec![]));
}

/// A change that makes an earlier broadcast is signalled to the publisher (rules 24, 28).
pub async fn earlier_broadcast_of_a_change_is_signalled(t: &Topic) {
    for (name, seconds) in [("a", 10), ("b", 12)] {
        t.add_job(NewJob { deliver: Delivery::Broadcast, ..delayed(name, secs(seconds)) }).await;
    }
    let mut subscriber = t.subscribe("n").await;
    t.changed("b", after(11)).await;
    t.changed("a", ChangeKind::ExtendBy(secs(20))).await;
    let signals = subscriber.received_all(t).await;
    let count = |signals: &[Signal]| signals.iter().filter(|signal| **signal == Signal::BroadcastDue).count();
    assert_eq!(count(&signals), 1, "only the marker is earlier: {signals:?}");
    t.changed("a", after(3)).await;
    let signals = subscriber.received_all(t).await;
    assert_eq!(count(&signals), 2, "the broadcast, and then the marker: {signals:?}");
}
