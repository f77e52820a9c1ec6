//! Numbered batches: a repeated batch does nothing (rule 18).

use super::producer::{answered, command, job, with_payload};
use super::topic::{Topic, id, secs};
use dq::job::State;
use dq::store::step::Change;
use dq::store::{AddOutcome, BatchAnswer, CALL_SLOTS, CommandKind, CommandOutcome, NewJob, Numbered, Producer};

async fn add(p: &dyn Producer, number: u64, new: NewJob) -> BatchAnswer<AddOutcome> {
    p.add(Numbered { number, items: vec![new] }).await.expect("add is answered")
}

async fn send_command(p: &dyn Producer, number: u64, verb: CommandKind, name: &str) -> BatchAnswer<CommandOutcome> {
    let items = vec![command(verb, name, None)];
    p.command(Numbered { number, items }).await.expect("command is answered")
}

fn added() -> BatchAnswer<AddOutcome> {
    BatchAnswer::Done(vec![AddOutcome::Added])
}

/// A repeated add returns the kept answer and does nothing. A new handle of a producer is the same producer, so a batch can be repeated
/// over another connection (rule 18).
pub async fn repeated_add_does_nothing(t: &Topic) {
    let p = t.producer_named("p");
    assert_eq!(add(&*p, 1, with_payload("a", "first")).await, added());
    assert_eq!(add(&*p, 1, with_payload("a", "first")).await, added());
    t.run("n", "a", Change::Ack).await;
    assert_eq!(add(&*p, 1, with_payload("a", "first")).await, added());
    drop(p);
    assert_eq!(add(&*t.producer_named("p"), 1, with_payload("a", "first")).await, added());
    assert_eq!(t.state("a").await, None);
}

/// A repeated batch returns its first answer, *exists* included, even if the job has ended since (rule 18).
pub async fn repeated_answer_is_the_first_one(t: &Topic) {
    let p = t.producer_named("p");
    t.add("a").await;
    let first =
        p.add(Numbered { number: 1, items: vec![job("a"), job("b"), job("b")] }).await.expect("add is answered");
    t.delete("a").await;
    let again =
        p.add(Numbered { number: 1, items: vec![job("a"), job("b"), job("b")] }).await.expect("add is answered");
    assert_eq!(first, again);
    assert_eq!(answered(again), [AddOutcome::Exists(State::Delayed), AddOutcome::Added, AddOutcome::Repeated]);
    assert_eq!(t.state("a").await, None);
}

/// A repeated command removes nothing that was added after it, and its answer has the state but not the record (rule
/// 18).
pub async fn repeated_command_does_nothing(t: &Topic) {
    let p = t.producer_named("p");
    add(&*p, 1, job("a")).await;
    let first = answered(send_command(&*p, 2, CommandKind::Delete, "a").await).remove(0);
    assert_eq!((first.found, first.changed), (Some(State::Delayed), true));
    assert_eq!(first.removed, Some(job("a").record));
    t.add("a").await;
    let again = answered(send_command(&*p, 2, CommandKind::Delete, "a").await).remove(0);
    assert_eq!(again, CommandOutcome { removed: None, ..first });
    assert_eq!(t.state("a").await, Some(State::Delayed));
}

/// A batch below the highest executed number, whose answer is not kept, is late and does nothing (rule 18).
pub async fn number_below_the_highest_is_late(t: &Topic) {
    let p = t.producer_named("p");
    add(&*p, 1, job("a")).await;
    add(&*p, 3, job("c")).await;
    assert_eq!(add(&*p, 2, job("b")).await, BatchAnswer::Late);
    assert_eq!(t.state("b").await, None);
    assert_eq!(add(&*p, 1, job("a")).await, added());
    assert_eq!(add(&*p, 4, job("b")).await, added());
}

/// A late delete removes nothing that was added after it: adds and commands share one sequence of numbers (rule 18).
pub async fn late_command_removes_nothing(t: &Topic) {
    let p = t.producer_named("p");
    add(&*p, 2, job("a")).await;
    assert_eq!(send_command(&*p, 1, CommandKind::Delete, "a").await, BatchAnswer::Late);
    assert_eq!(t.state("a").await, Some(State::Delayed));
    send_command(&*p, 4, CommandKind::Cancel, "b").await;
    assert_eq!(add(&*p, 3, job("b")).await, BatchAnswer::Late);
    assert_eq!(add(&*p, 5, job("b")).await, added());
}

/// The store keeps the answer to number `n` until it executes `n + 16`, and no longer (rule 18).
pub async fn sixteen_answers_are_kept(t: &Topic) {
    let p = t.producer_named("p");
    for number in 1..=CALL_SLOTS {
        add(&*p, number, job(&format!("j{number}"))).await;
    }
    assert_eq!(add(&*p, 1, job("j1")).await, added());
    assert_eq!(add(&*p, CALL_SLOTS + 1, job("last")).await, added());
    assert_eq!(add(&*p, 1, job("j1")).await, BatchAnswer::Late);
    for number in 2..=CALL_SLOTS {
        assert_eq!(add(&*p, number, job(&format!("j{number}"))).await, added());
    }
    assert_eq!(t.counts().await.delayed, 17);
}

/// Each producer has numbers of its own, starting at 1 (rule 18).
pub async fn numbers_belong_to_one_producer(t: &Topic) {
    let (p, q) = (t.producer_named("p"), t.producer_named("q"));
    add(&*p, 9, job("a")).await;
    assert_eq!(add(&*q, 1, job("b")).await, added());
    assert_eq!(add(&*q, 9, job("c")).await, added());
    assert_eq!(t.counts().await.delayed, 3);
}

/// The store keeps answers for most of an hour even if the producer is silent (rule 18).
pub async fn answers_are_kept_for_an_hour(t: &Topic) {
    let p = t.producer_named("p");
    add(&*p, 1, job("a")).await;
    t.delete("a").await;
    t.advance(secs(59 * 60)).await;
    assert_eq!(add(&*p, 1, job("a")).await, added());
    assert_eq!(t.state("a").await, None);
}

/// Numbers may have gaps, because a batch that was given up may never have been executed (rule 18).
pub async fn numbers_may_leave_gaps(t: &Topic) {
    let p = t.producer_named("p");
    for number in [5, 6, 40, 41, 1_000] {
        assert_eq!(add(&*p, number, job(&format!("j{number}"))).await, added());
    }
    assert_eq!(add(&*p, 40, job("j40")).await, BatchAnswer::Late, "1,000 took the slot of 40");
}

/// A repeated requeue does not requeue a job that has died again since (rule 18).
pub async fn repeated_requeue_does_nothing(t: &Topic) {
    let p = t.producer_named("p");
    t.add_and_run("n", "a", Change::Dead).await;
    let first = send_command(&*p, 1, CommandKind::Requeue, "a").await;
    t.run("n", "a", Change::Dead).await;
    assert_eq!(send_command(&*p, 1, CommandKind::Requeue, "a").await, first);
    assert_eq!(t.state("a").await, Some(State::Dead));
}

/// The store executes batches in the order of the calls, in whatever order their answers are awaited (rule 18).
pub async fn calls_are_executed_in_their_order(t: &Topic) {
    let p = t.producer_named("p");
    let one = p.add(Numbered { number: 1, items: vec![with_payload("a", "one")] });
    let two = p.command(Numbered { number: 2, items: vec![command(CommandKind::Delete, "a", None)] });
    let three = p.add(Numbered { number: 3, items: vec![with_payload("a", "three")] });
    assert_eq!(three.await.expect("add is answered"), added());
    assert_eq!(answered(two.await.expect("command is answered"))[0].found, Some(State::Delayed));
    assert_eq!(one.await.expect("add is answered"), added());
    assert_eq!(t.payload("a").await, "three");
}

/// A request is executed even if its answer is dropped (rule 6).
pub async fn dropped_answer_does_not_stop_the_request(t: &Topic) {
    let p = t.producer_named("p");
    drop(p.add(Numbered { number: 1, items: vec![job("a")] }));
    add(&*p, 2, job("b")).await;
    assert_eq!(t.state("a").await, Some(State::Delayed));
    t.enter("n").await;
    drop(t.link("n").step(t.transfer_of("n", 10)));
    let lease_status = super::topic::refused(t.link("n").step(t.transfer_of("n", 10)).await.expect("it is answered"));
    assert_eq!((lease_status.sequence, lease_status.rows), (t.last_seen("n").next(), 2));
    assert_eq!(t.rows("n").await, [id("a"), id("b")]);
}
