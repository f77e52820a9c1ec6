//! What is repeated, under which number, and what the caller is told in the end.

use std::time::Duration;

use tokio::time::Instant;

use super::desk::{Desk, Sent};
use super::{Adding, all_added, provider, start_add, start_adds};
use crate::provider::{AddError, Reason};
use crate::store::StoreError;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn unanswered_batches_are_repeated_in_order_under_their_numbers_through_a_new_way() {
    let (_provider, topic, mut desk) = provider();
    let start = Instant::now();
    let adding = start_adds(&topic, &["a", "a", "a"]).await;
    let lost: Vec<Sent> = [desk.expect(1, "add a").await, desk.expect(2, "add a").await].into();
    desk.expect(3, "add a").await.done();
    for number in 1..=2 {
        let again = desk.expect(number, "add a").await;
        assert_eq!(again.producer, 2);
        assert!(start.elapsed() >= 2 * SECOND && start.elapsed() < 3 * SECOND, "{:?}", start.elapsed());
        again.done();
    }
    all_added(adding).await;
    drop(lost);
}

#[tokio::test(start_paused = true)]
async fn a_store_out_of_reach_is_asked_again_through_a_new_way() {
    let (_provider, topic, mut desk) = provider();
    let adding = start_adds(&topic, &["a", "a"]).await;
    let first = desk.expect(1, "add a").await;
    let _second = desk.expect(2, "add a").await;
    first.unavailable();
    for number in 1..=2 {
        let again = desk.expect(number, "add a").await;
        assert_eq!(again.producer, 2);
        again.done();
    }
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn refused_batches_are_repeated_in_order_once_the_other_answers_are_read() {
    let (_provider, topic, mut desk) = provider();
    let adding = start_adds(&topic, &["a", "a", "a"]).await;
    let first = desk.expect(1, "add a").await;
    desk.expect(2, "add a").await.refused();
    let third = desk.expect(3, "add a").await;
    desk.is_quiet().await;
    tokio::time::advance(SECOND).await;
    desk.is_quiet().await;
    first.done();
    third.refused();
    for number in 2..=3 {
        let again = desk.expect(number, "add a").await;
        assert_eq!(again.producer, 1);
        again.done();
    }
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_new_is_sent_between_a_refusal_and_the_answer_to_its_repeat() {
    let (_provider, topic, mut desk) = provider();
    let mut adding = start_adds(&topic, &["a"]).await;
    desk.expect(1, "add a").await.refused();
    tokio::task::yield_now().await;
    adding.extend(start_adds(&topic, &["b", "b"]).await);
    let repeated = desk.expect(1, "add a").await;
    desk.is_quiet().await;
    repeated.done();
    let second = desk.expect(2, "add b").await;
    desk.expect(3, "add b").await.done();
    second.done();
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn only_a_late_batch_gets_a_new_number_and_it_goes_before_what_waits() {
    let (_provider, topic, mut desk) = provider();
    let mut adding = start_adds(&topic, &["a", "a"]).await;
    let first = desk.expect(1, "add a").await;
    let second = desk.expect(2, "add a").await;
    adding.extend(start_adds(&topic, &["b"]).await);
    first.refused();
    second.done();
    desk.expect(1, "add a").await.late();
    desk.expect(3, "add a").await.done();
    desk.expect(4, "add b").await.done();
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn two_late_batches_keep_their_order() {
    let (_provider, topic, mut desk) = provider();
    let mut adding = start_adds(&topic, &["a", "b", "a", "c", "a"]).await;
    let first = desk.expect(1, "add a b").await;
    let deleting = tokio::spawn(topic.delete("a"));
    adding.extend(start_adds(&topic, &["d"]).await);
    let second = desk.expect(2, "add a c").await;
    desk.expect(3, "add a").await.done();
    second.refused();
    first.refused();
    let first = desk.expect(1, "add a b").await;
    let second = desk.expect(2, "add a c").await;
    second.late();
    first.late();
    for (number, text) in [(4, "add a b"), (5, "add a c"), (6, "command a"), (7, "add d")] {
        desk.expect(number, text).await.done();
    }
    all_added(adding).await;
    deleting.await.unwrap().unwrap();
}

/// Answers every batch in the same way until the caller is told something.
async fn told(desk: &mut Desk, adding: Adding, answer: impl Fn(Sent)) -> AddError {
    tokio::pin!(adding);
    loop {
        tokio::select! {
            biased;
            result = &mut adding => return result.unwrap().unwrap_err(),
            sent = desk.next() => answer(sent),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_refused_to_the_end_is_not_added_for_certain() {
    let (_provider, topic, mut desk) = provider();
    let start = Instant::now();
    let adding = start_add(&topic, "a").await;
    let error = told(&mut desk, adding, Sent::refused).await;
    assert!(matches!(&error, AddError::NotAdded { reason: Reason::Store(_), .. }), "{error}");
    assert_eq!(error.to_string(), "job `a` of topic `remind` was not added: the store refuses add for now: loading");
    assert_eq!(start.elapsed().as_secs(), 10);
    desk.is_quiet().await;
    tokio::time::advance(60 * SECOND).await;
    desk.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_without_an_answer_to_the_end_is_unknown() {
    let (_provider, topic, mut desk) = provider();
    let start = Instant::now();
    let adding = start_add(&topic, "a").await;
    let error = told(&mut desk, adding, drop).await;
    assert!(matches!(&error, AddError::Unknown { id, reason: Reason::NoAnswer { .. }, .. } if id.as_str() == "a"));
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn one_lost_answer_among_refusals_is_unknown() {
    let (_provider, topic, mut desk) = provider();
    let adding = start_add(&topic, "a").await;
    drop(desk.expect(1, "add a").await);
    let error = told(&mut desk, adding, Sent::refused).await;
    assert!(matches!(error, AddError::Unknown { reason: Reason::Store(_), .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn late_makes_certain_what_was_unknown() {
    let (_provider, topic, mut desk) = provider();
    let adding = start_add(&topic, "a").await;
    drop(desk.expect(1, "add a").await);
    desk.expect(1, "add a").await.late();
    let error = told(&mut desk, adding, Sent::refused).await;
    assert!(matches!(error, AddError::NotAdded { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_could_not_be_sent_in_time_is_not_added_for_certain() {
    let (_provider, topic, mut desk) = provider();
    let _first = start_add(&topic, "a").await;
    drop(desk.expect(1, "add a").await);
    let waiting = start_add(&topic, "b").await;
    let error = told(&mut desk, waiting, drop).await;
    assert!(matches!(error, AddError::NotAdded { reason: Reason::NeverSent { .. }, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_repeats_cannot_mend_is_told_at_once() {
    let (_provider, topic, mut desk) = provider();
    let adding = start_add(&topic, "a").await;
    let wrong = StoreError::WrongType { key: "dq:{shop:remind}:jobs".into(), expected: "hash" };
    desk.expect(1, "add a").await.fails(wrong);
    assert!(matches!(adding.await.unwrap(), Err(AddError::NotAdded { .. })));

    let adding = start_add(&topic, "a").await;
    let strange = StoreError::Other { operation: "add", source: "what?".into() };
    desk.expect(2, "add a").await.fails(strange);
    assert!(matches!(adding.await.unwrap(), Err(AddError::Unknown { .. })), "it may have been done half-way");
    desk.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn who_was_told_not_added_is_left_out_of_the_repeats() {
    let (_provider, topic, mut desk) = provider();
    let start = Instant::now();
    let first = start_add(&topic, "a").await;
    let sent = desk.expect(1, "add a").await;
    let early = start_add(&topic, "early").await;
    tokio::time::advance(SECOND).await;
    let late = start_add(&topic, "late").await;
    sent.done();
    all_added(vec![first]).await;

    let early = told(&mut desk, early, |sent| {
        assert_eq!((sent.number, sent.text().as_str()), (2, "add early late"));
        sent.refused();
    });
    assert!(matches!(early.await, AddError::NotAdded { .. }));
    assert_eq!(start.elapsed().as_secs(), 10);
    desk.expect(2, "add late").await.done();
    all_added(vec![late]).await;
}
