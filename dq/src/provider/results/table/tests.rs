//! Looks that are late, incomplete or fail, which a store shows rarely.

use super::*;
use crate::job::{Codec, Record};
use crate::time::Timestamp;

const SECOND: Duration = Duration::from_secs(1);

fn id(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn stored(name: &str, place: JobState, metadata: &Metadata) -> Option<Stored> {
    let record = Record::new(metadata, Codec::Json, b"1");
    Some(Stored { id: id(name), record, place, crashes: 0, progress: None })
}

fn running(name: &str) -> Option<Stored> {
    stored(name, JobState::Running { holder: None }, &Metadata::default())
}

fn done(name: &str) -> Option<Stored> {
    let result = Some(KeptState::from_bytes(b"7"));
    stored(name, JobState::Done { until: Timestamp::EPOCH }, &Metadata { result, ..Metadata::default() })
}

/// A caller who waits from `since` on for a minute.
fn wait(table: &mut Table, name: &str, since: Duration) -> oneshot::Receiver<Ended> {
    let (answer, answered) = oneshot::channel();
    let number = since.as_nanos() as u64;
    let waiter = Waiter { number, since, until: since + 60 * SECOND, answer, is_asked: false };
    table.wait(&id(name), waiter, since);
    answered
}

fn has_result(answered: &mut oneshot::Receiver<Ended>) -> bool {
    matches!(answered.try_recv(), Ok(Ok(Ok(result))) if result.decode() == Ok(7))
}

#[test]
fn a_caller_who_comes_after_a_look_left_is_not_answered_by_it() {
    let mut table = Table::default();
    let mut early = wait(&mut table, "a", SECOND);
    let asked = table.take_due(SECOND, 10);
    let mut late = wait(&mut table, "a", SECOND);
    table.answered(&asked, vec![done("a")], SECOND, SECOND);
    assert!(has_result(&mut early));
    assert!(late.try_recv().is_err(), "the job of the look may have been replaced by the caller");
    assert_eq!(table.take_due(SECOND, 10), [id("a")], "it is looked at again");
    table.answered(&[id("a")], vec![done("a")], SECOND, SECOND);
    assert!(has_result(&mut late) && table.is_empty());
}

#[test]
fn a_move_that_comes_while_a_look_is_in_flight_is_looked_at_after_it() {
    let mut table = Table::default();
    let mut waits = wait(&mut table, "a", SECOND);
    let asked = table.take_due(SECOND, 10);
    table.moved(&id("a"), &Transition::Done { by: String::new() }, SECOND);
    assert!(table.take_due(SECOND, 10).is_empty(), "one look at a time");
    table.answered(&asked, vec![running("a")], SECOND, SECOND);
    assert_eq!(table.take_due(SECOND, 10), [id("a")]);
    table.answered(&asked, vec![None], SECOND, SECOND);
    assert!(matches!(waits.try_recv(), Ok(Ok(Err(NoResult::Acked)))));
    let mut waits = wait(&mut table, "a", SECOND);
    let asked = table.take_due(SECOND, 10);
    table.moved(&id("a"), &Transition::Added { due: Timestamp::EPOCH }, SECOND);
    table.answered(&asked, vec![None], SECOND, SECOND);
    assert!(waits.try_recv().is_err(), "it was added after the look");
    let asked = table.take_due(SECOND, 10);
    table.answered(&asked, vec![None], SECOND, SECOND);
    assert!(matches!(waits.try_recv(), Ok(Ok(Err(NoResult::Gone)))));
}

#[test]
fn a_job_for_which_an_answer_has_no_room_is_looked_at_again_at_once() {
    let mut table = Table::default();
    let mut waits = ["a", "b", "c"].map(|name| wait(&mut table, name, SECOND));
    let asked = table.take_due(SECOND, 2);
    assert_eq!(asked, [id("a"), id("b")]);
    table.answered(&asked, vec![done("a")], SECOND, SECOND);
    let asked = table.take_due(SECOND, 10);
    assert_eq!(asked, [id("b"), id("c")]);
    table.answered(&asked, vec![done("b"), done("c")], SECOND, SECOND);
    assert!(waits.iter_mut().all(has_result));
}

#[test]
fn looks_at_a_job_that_does_not_end_come_after_growing_pauses_and_when_its_time_is_over() {
    let mut table = Table::default();
    let mut waits = wait(&mut table, "a", SECOND);
    let mut looks = Vec::new();
    while let Some(at) = table.next() {
        looks.push(at.as_secs());
        let asked = table.take_due(at, 10);
        table.answered(&asked, vec![running("a")], at, at);
    }
    assert_eq!(looks, [1, 3, 7, 15, 31, 61]);
    assert!(matches!(waits.try_recv(), Ok(Ok(Err(NoResult::TimeOver { .. })))));
}

#[test]
fn a_caller_whose_time_is_over_while_the_store_fails_learns_why() {
    let mut table = Table::default();
    let mut waits = wait(&mut table, "a", SECOND);
    let mut others = wait(&mut table, "a", 50 * SECOND);
    while table.next().is_some_and(|at| at <= 61 * SECOND) {
        let at = table.next().unwrap();
        let asked = table.take_due(at, 10);
        let error = StoreError::Unavailable { operation: "get", reason: "no route".into() };
        table.failed(&asked, error, at, at);
    }
    assert!(matches!(waits.try_recv(), Ok(Err(FailureReason::Store(_)))));
    assert!(others.try_recv().is_err(), "its time is not over");
    table.leave(&id("a"), 50 * 1_000_000_000);
    assert!(table.is_empty() && table.next().is_none());
}
