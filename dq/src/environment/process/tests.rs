//! Turns of jobs that must run alone, and of all others.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::advance;

use super::super::TokioClock;
use super::{Alone, Changes, Outlook, Process, ProcessEntry, Ticket};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(600);

fn process() -> Arc<Process> {
    Process::new(Arc::new(TokioClock::new()))
}

fn start(process: &Arc<Process>) -> ProcessEntry {
    process.enter(LONG).expect("nothing runs alone")
}

fn alone(ticket: &mut Ticket) -> Alone {
    match ticket.outlook(LONG) {
        Outlook::Alone(alone) => alone,
        other => panic!("not alone: {other:?}"),
    }
}

/// Whether there was a change since this was asked last.
fn has_changed(changes: &Changes) -> bool {
    changes.changed().now_or_never().is_some()
}

fn wait(ticket: &mut Ticket) -> Option<Duration> {
    match ticket.outlook(LONG) {
        Outlook::Wait(until) => until,
        other => panic!("need not wait: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_beside_a_job_that_runs_alone() {
    let process = process();
    let mut ticket = process.queue();
    let alone = alone(&mut ticket);
    assert!(process.enter(LONG).is_none() && process.enter_alone().is_none() && process.is_closed());
    let entry = alone.enter(LONG);
    drop(alone);
    assert!(process.enter(LONG).is_some());
    drop(entry);
}

#[tokio::test(start_paused = true)]
async fn a_job_is_alone_once_the_running_handlers_have_returned() {
    let process = process();
    let (first, second) = (start(&process), start(&process));
    let mut ticket = process.queue();
    wait(&mut ticket);
    assert!(process.enter(LONG).is_none(), "nothing starts meanwhile");
    let changes = process.changes();
    drop(first);
    wait(&mut ticket);
    drop(second);
    assert!(has_changed(&changes), "the job learns that they have returned");
    drop(alone(&mut ticket));
    assert!(has_changed(&changes), "others learn that they may start");
}

#[tokio::test(start_paused = true)]
async fn others_start_for_as_long_as_they_waited_and_each_wait_is_twice_as_long() {
    let process = process();
    let handler = start(&process);
    let mut ticket = process.queue();
    for seconds in [1, 2, 4, 8] {
        wait(&mut ticket);
        assert!(process.enter(LONG).is_none());
        advance(seconds * SECOND).await;
        let open_until = wait(&mut ticket);
        assert_eq!(open_until, Some(process.clock.now() + seconds * SECOND));
        assert!(process.enter(LONG).is_some(), "they start after {seconds} s");
        advance(seconds * SECOND).await;
    }
    wait(&mut ticket);
    drop(handler);
    drop(alone(&mut ticket));
}

#[tokio::test(start_paused = true)]
async fn after_a_job_ran_alone_others_start_for_as_long_as_they_waited() {
    let process = process();
    let mut ticket = process.queue();
    let first = alone(&mut ticket);
    assert!(process.enter(LONG).is_none());
    advance(5 * SECOND).await;
    drop(first);
    let mut next = process.queue();
    assert_eq!(wait(&mut next), Some(process.clock.now() + 5 * SECOND));
    assert!(process.enter(LONG).is_some());
    advance(5 * SECOND).await;
    drop(alone(&mut next));
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_beside_a_handler_that_has_run_for_too_long() {
    let process = process();
    let handler = process.enter(30 * SECOND).unwrap();
    let mut ticket = process.queue();
    advance(30 * SECOND).await;
    assert!(matches!(ticket.outlook(LONG), Outlook::Beside(_)));
    assert!(process.enter(LONG).is_some());
    drop(handler);
}

#[tokio::test(start_paused = true)]
async fn jobs_run_alone_in_the_order_of_their_tickets_and_a_dropped_one_lets_others_start() {
    let process = process();
    let handler = start(&process);
    let (mut first, mut second) = (process.queue(), process.queue());
    wait(&mut first);
    assert_eq!(wait(&mut second), None, "another one is first");
    drop(first);
    assert!(process.enter(LONG).is_some());
    drop(handler);
    drop(alone(&mut second));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_alone_by_chance_gives_way() {
    let process = process();
    let chance = process.enter_alone().unwrap();
    assert!(!process.is_closed(), "claiming goes on");
    let changes = process.changes();
    assert!(!chance.is_wanted() && process.enter(LONG).is_none());
    assert!(chance.is_wanted() && has_changed(&changes), "it learns that it is in the way");
    assert!(process.enter(LONG).is_none() && !has_changed(&changes), "once is enough");
    drop(chance);
    drop(alone(&mut process.queue())); // nothing is owed to the others
    let chance = process.enter_alone();
    let mut ticket = process.queue();
    wait(&mut ticket);
    assert!(chance.unwrap().is_wanted(), "it gives way to a job that must be alone, too");
}

#[tokio::test(start_paused = true)]
async fn no_job_is_alone_by_chance_beside_a_handler_or_while_another_waits_to_be() {
    let process = process();
    let handler = start(&process);
    assert!(process.enter_alone().is_none());
    drop(handler);
    let ticket = process.queue();
    assert!(process.enter_alone().is_none());
    drop(ticket);
    assert!(process.enter_alone().is_some());
}

#[tokio::test(start_paused = true)]
async fn few_jobs_of_groups_that_died_run_at_once() {
    let process = process();
    let mut group: Vec<_> = (0..8).map(|_| process.enter_small_group(LONG).unwrap()).collect();
    assert!(process.enter_small_group(LONG).is_none());
    assert!(process.enter(LONG).is_some(), "others are not held up");
    let changes = process.changes();
    drop(group.pop());
    assert!(has_changed(&changes) && process.enter_small_group(LONG).is_some());
}

#[tokio::test(start_paused = true)]
async fn jobs_that_must_be_alone_follow_each_other_at_once_while_nothing_else_wants_to_start() {
    let process = process();
    let first = alone(&mut process.queue());
    advance(5 * SECOND).await;
    drop(first);
    let second = alone(&mut process.queue());
    assert!(process.enter(LONG).is_none(), "another job wants to start");
    advance(5 * SECOND).await;
    drop(second);
    assert_eq!(wait(&mut process.queue()), Some(process.clock.now() + 5 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn time_is_owed_to_topics_that_could_not_claim_until_each_of_them_has_found_nothing_due() {
    let process = process();
    let first = alone(&mut process.queue());
    let (one, other) = (process.refuse_claim(), process.refuse_claim());
    advance(5 * SECOND).await;
    drop(first);
    let mut next = process.queue();
    assert_eq!(wait(&mut next), Some(process.clock.now() + 5 * SECOND), "neither knows what is due");
    let changes = process.changes();
    drop(one);
    assert!(wait(&mut next).is_some() && !has_changed(&changes), "the other one does not know yet");
    drop(other);
    assert!(has_changed(&changes), "the next job learns that nothing is due");
    drop(alone(&mut next));
}

#[tokio::test(start_paused = true)]
async fn all_of_the_time_is_owed_to_a_topic_that_could_not_claim_and_had_something_due() {
    let process = process();
    let first = alone(&mut process.queue());
    let (empty, busy) = (process.refuse_claim(), process.refuse_claim());
    advance(5 * SECOND).await;
    drop(first);
    let until = process.clock.now() + 5 * SECOND;
    busy.was_due();
    drop(empty);
    let mut next = process.queue();
    assert_eq!(wait(&mut next), Some(until));
    advance(5 * SECOND).await;
    drop(alone(&mut next));
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_finds_nothing_due_ends_no_time_that_is_owed_to_a_job() {
    let process = process();
    let first = alone(&mut process.queue());
    let empty = process.refuse_claim();
    assert!(process.enter(LONG).is_none(), "a job wants to start");
    advance(5 * SECOND).await;
    drop(first);
    drop(empty);
    assert_eq!(wait(&mut process.queue()), Some(process.clock.now() + 5 * SECOND));
}
