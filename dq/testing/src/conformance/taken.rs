//! Ids that stay taken for a time after their add, whatever becomes of their jobs (rule 18).

use super::broadcasts::publish;
use super::copies::import_of;
use super::events::{add_in_state, ending};
use super::producer::{command, delayed, job, replacing, retained, with_payload};
use super::setting::limit_to;
use super::topic::{Topic, id, ms, secs};
use dq::job::{Delivery, JobId, State};
use dq::store::step::{Change, DEFAULT_BYTES};
use dq::store::{AddOutcome, CommandKind, Due, JobCopy, Limit, LimitKind, NewJob, OnDuplicate, TopicChange};

const HOUR: u64 = 3_600;

const ENDED: AddOutcome = AddOutcome::Exists(State::Done);

/// A job whose id stays taken for a day.
fn unique(name: &str) -> NewJob {
    NewJob { unique_for: Some(secs(24 * HOUR)), ..job(name) }
}

/// What an add of this id is answered that keeps a known job; it must be what one is answered that rejects it.
async fn known(t: &Topic, name: &str) -> AddOutcome {
    let outcome = t.add_job(NewJob { on_duplicate: OnDuplicate::Keep, ..with_payload(name, "new") }).await;
    if outcome != AddOutcome::Added {
        assert_eq!(t.add_job(with_payload(name, "new")).await, outcome);
    }
    outcome
}

/// An id that was added for a time counts as existing until then, also once its job has run; then it is free (rule 18).
pub async fn ended_job_counts_as_existing_while_its_id_is_taken(t: &Topic) {
    for (name, new) in
        [("gone", unique("gone")), ("kept", NewJob { record: retained("kept").record, ..unique("kept") })]
    {
        t.reconcile("n").await;
        assert_eq!(t.add_job(new).await, AddOutcome::Added);
        assert_eq!(known(t, name).await, AddOutcome::Exists(State::Delayed));
        let claim = t.claim("n", name).await;
        assert_eq!(known(t, name).await, AddOutcome::Exists(State::Running));
        t.end("n", &claim, Change::Ack).await;
        let until = t.store.taken(&t.key, &id(name)).await.expect("the query is answered");
        assert_eq!(until.map(|until| until.since(t.now())), Some(secs(24 * HOUR)), "{name}");
        for wait in [1, HOUR, 22 * HOUR - 1, HOUR - 1] {
            t.advance(secs(wait)).await;
            assert_eq!(known(t, name).await, ENDED, "{name}");
        }
        t.advance(ms(999)).await;
        assert_eq!(known(t, name).await, ENDED, "{name}, a millisecond before a day is over");
        t.advance(ms(1)).await;
        assert_eq!(known(t, name).await, AddOutcome::Added, "{name}");
        t.delete(name).await;
    }
}

/// Each job of a batch takes its own id for its own time, a broadcast too; a generated id is no other's (rule 18).
pub async fn each_job_of_a_batch_takes_its_id_for_its_time(t: &Topic) {
    let for_secs = |name: &str, time| NewJob { unique_for: Some(secs(time)), ..job(name) };
    let generated = NewJob { id: JobId::generated(7, 7), generated: true, ..unique("x") };
    let broadcast = NewJob { deliver: Delivery::Broadcast, ..for_secs("b", 9) };
    let batch = vec![
        for_secs("a", 5),
        job("free"),
        generated,
        broadcast,
        NewJob { expires_after: Some(secs(1)), ..for_secs("c", 2) },
    ];
    assert_eq!(t.add_all(batch).await, [const { AddOutcome::Added }; 5]);
    for claim in t.claims("n").await {
        t.end("n", &claim, Change::Ack).await;
    }
    publish(t, "n", 10).await;
    let again = || vec![for_secs("a", 1), for_secs("free", 1), for_secs("b", 1), for_secs("c", 1)];
    assert_eq!(t.add_all(again()).await, [ENDED, AddOutcome::Added, ENDED, ENDED]);
    t.advance(secs(2)).await;
    assert_eq!(t.add_all(again()).await, [ENDED, AddOutcome::Exists(State::Delayed), ENDED, AddOutcome::Added]);
    t.advance(secs(3)).await;
    assert_eq!(known(t, "a").await, AddOutcome::Added);
}

/// An id whose job was deleted or cancelled, in whatever state, stays taken, and an add learns that it was deleted (rule 18).
pub async fn deleted_job_leaves_its_id_taken(t: &Topic) {
    for verb in [CommandKind::Delete, CommandKind::Cancel] {
        for state in [State::Delayed, State::Unacked, State::Dead, State::Done] {
            let name = format!("{}-{}", verb.as_str(), state.as_str());
            add_in_state(t, &name, state).await;
            t.add_job(NewJob { on_duplicate: OnDuplicate::Replace, ..unique(&name) }).await;
            if state != State::Delayed {
                t.run("n", &name, ending(state)).await;
            }
            let is_there = t.command(verb, &name, None).await.changed;
            assert_eq!(known(t, &name).await, if is_there { AddOutcome::Deleted } else { ENDED }, "{name}");
        }
    }
    t.advance(secs(24 * HOUR)).await;
    assert_eq!(known(t, "delete-dead").await, AddOutcome::Added);
}

/// A RUNNING job keeps its id while it is deleted, and after that (rules 13, 18).
pub async fn id_of_a_run_under_a_pending_end_stays_taken(t: &Topic) {
    for (verb, fenced, after) in [
        (CommandKind::Delete, false, AddOutcome::Deleted),
        (CommandKind::Ack, false, ENDED),
        (CommandKind::Ack, true, ENDED),
    ] {
        let name = format!("{}-{fenced}", verb.as_str());
        t.add_job(unique(&name)).await;
        let claim = t.claim("n", &name).await;
        t.command(verb, &name, fenced.then_some(claim.token.fence)).await;
        assert_eq!(known(t, &name).await, AddOutcome::Exists(State::Running), "{name}");
        t.end("n", &claim, Change::Retry(ms(1))).await;
        assert_eq!(known(t, &name).await, after, "{name}");
    }
}

/// An id stays taken however its job has ended: pruned, dropped, acked from outside (rule 18).
pub async fn id_stays_taken_however_its_job_has_ended(t: &Topic) {
    let month = secs(30 * 24 * HOUR);
    let for_a_month = |name: &str| NewJob { unique_for: Some(month), ..retained(name) };
    t.add_all(["pruned", "done", "dropped", "acked"].map(for_a_month).to_vec()).await;
    for claim in t.claims("n").await {
        let end = match claim.id.as_str() {
            "pruned" => Change::Dead,
            "done" => Change::Ack,
            _ => Change::Park,
        };
        t.end("n", &claim, end).await;
    }
    t.ack_outside("acked").await;
    t.advance(secs(7 * 24 * HOUR)).await;
    let request = dq::store::step::Sweep { dead_retention: secs(HOUR), ..t.sweep_of("n", 10) };
    let dropped = t.sweep("n", request).await.claims.remove(0);
    t.end("n", &dropped, Change::Drop).await;
    for name in ["pruned", "done", "dropped", "acked"] {
        assert_eq!((t.find(name).await, known(t, name).await), (None, ENDED), "{name}");
    }
}

/// An add that replaces or extends is a new job, also after the end; the id then stays taken from that add on (rule 18).
pub async fn replacement_of_a_taken_id_is_a_new_job(t: &Topic) {
    let replacing = |name: &str| NewJob { on_duplicate: OnDuplicate::Replace, ..unique(name) };
    let extending = |name: &str| NewJob { on_duplicate: OnDuplicate::Extend { at_most: None }, ..unique(name) };
    for (name, new) in [("replaced", replacing("replaced")), ("extended", extending("extended"))] {
        t.reconcile("n").await;
        t.add_job(unique(name)).await;
        t.run("n", name, Change::Ack).await;
        t.advance(secs(20 * HOUR)).await;
        assert_eq!(t.add_job(new.clone()).await, AddOutcome::Added, "{name}");
        t.delete(name).await;
        assert_eq!(known(t, name).await, AddOutcome::Deleted);
        assert_eq!(t.add_job(new).await, AddOutcome::Added, "{name}");
        t.run("n", name, Change::Ack).await;
        t.advance(secs(20 * HOUR)).await;
        assert_eq!(known(t, name).await, ENDED, "{name}: it has ended, and was not deleted");
        t.advance(secs(4 * HOUR)).await;
        assert_eq!(known(t, name).await, AddOutcome::Added);
        t.delete(name).await;
    }
}

/// A later add never shortens the time for which an id is taken, also one that says nothing of it (rule 18).
pub async fn later_add_does_not_shorten_the_time_of_an_id(t: &Topic) {
    for (name, unique_for) in [("shorter", Some(secs(1))), ("none", None)] {
        t.add_job(unique(name)).await;
        t.add_job(NewJob { unique_for, ..replacing(name, "new") }).await;
        t.run("n", name, Change::Ack).await;
        t.advance(secs(HOUR)).await;
        assert_eq!(known(t, name).await, ENDED, "{name}");
    }
    // One that replaces a running job counts too.
    t.add("running").await;
    let claim = t.claim("n", "running").await;
    let waits = t.add_job(NewJob { on_duplicate: OnDuplicate::Replace, ..unique("running") }).await;
    assert_eq!(waits, AddOutcome::ReplacementWaits);
    t.end("n", &claim, Change::Ack).await;
    t.run("n", "running", Change::Ack).await;
    assert_eq!(known(t, "running").await, ENDED);
}

/// A refused add takes no id, and a taken id does not wait: it needs no room (rules 18, 29).
pub async fn taken_ids_wait_for_nothing(t: &Topic) {
    t.add_job(unique("ran")).await;
    t.run("n", "ran", Change::Ack).await;
    t.set(limit_to(Limit::MaxWaiting(1), "why")).await;
    t.add("waits").await;
    assert_eq!(known(t, "ran").await, ENDED);
    assert!(matches!(t.add_job(unique("refused")).await, AddOutcome::TopicFull(_)));
    t.set(TopicChange::ClearLimit(LimitKind::MaxWaiting)).await;
    assert_eq!(t.add_job(job("refused")).await, AddOutcome::Added);
    assert_eq!(t.add_job(unique("waits")).await, AddOutcome::Exists(State::Delayed));
    t.delete("waits").await;
    assert_eq!(t.add_job(job("waits")).await, AddOutcome::Added, "an add that is answered *exists* takes no id");
    let counts = t.store.counts(&t.key).await.expect("counts is answered");
    assert_eq!((counts.delayed, counts.done), (2, 0));
}

/// Commands of a batch and far jobs: an id that is deleted while its job waits for hours stays taken (rules 2, 18).
pub async fn deleted_far_job_leaves_its_id_taken(t: &Topic) {
    let far = |name: &str| NewJob { unique_for: Some(secs(24 * HOUR)), ..delayed(name, secs(9 * HOUR)) };
    assert_eq!(t.add_all(vec![far("a"), far("b"), job("free")]).await, [const { AddOutcome::Added }; 3]);
    let all = ["a", "b", "free"].map(|name| command(CommandKind::Delete, name, None));
    t.producer().command(t.numbered(all.to_vec())).await.expect("command is answered");
    assert_eq!([known(t, "a").await, known(t, "b").await], [const { AddOutcome::Deleted }; 2]);
    assert_eq!(known(t, "free").await, AddOutcome::Added);
}

/// A copy says until when its id is taken, and an import keeps that; the id of a job that is gone is in no export (rules 18, 27).
pub async fn copy_keeps_until_when_its_id_is_taken(t: &Topic) {
    let until = t.in_ms(24 * HOUR * 1_000);
    t.add_job(unique("a")).await;
    let claim = t.claim("n", "a").await;
    t.add_all(vec![job("free"), unique("gone")]).await;
    t.add_job(NewJob { deliver: Delivery::Broadcast, due: Due::After(secs(60)), ..unique("news") }).await;
    t.delete("gone").await;
    let copies = t.export().await;
    let ends: Vec<_> = copies.iter().map(|copy| (copy.id.as_str(), copy.taken_until)).collect();
    assert_eq!(ends, [("free", None), ("a", Some(until)), ("news", Some(until))]);
    let other = t.beside("conformance", "moved").await;
    other.import(import_of(copies.clone(), OnDuplicate::Reject)).await;
    assert_eq!(other.export_part((true, State::Delayed), 9, DEFAULT_BYTES).await, copies[2..]);
    for claim in other.claims("n").await {
        other.end("n", &claim, Change::Ack).await;
    }
    assert_eq!([known(&other, "a").await, known(&other, "free").await], [ENDED, AddOutcome::Added]);
    let over = JobCopy { id: id("over"), taken_until: Some(t.now()), state: State::Dead, ..copies[0].clone() };
    other.import(import_of(vec![over], OnDuplicate::Keep)).await;
    other.delete("over").await;
    other.delete("free").await;
    assert_eq!(known(&other, "over").await, AddOutcome::Added, "its time was over");
    other.close().await;
    t.end("n", &claim, Change::Ack).await;
}
