//! Which batches are repeated, under which numbers, and the error that the caller gets in the end.

use std::time::Duration;

use tokio::time::Instant;

use super::manual_store::{SentBatch, StoreOperator};
use super::{Adding, all_added, provider, start_add, start_adds};
use crate::provider::{CallError, FailureReason};
use crate::store::StoreError;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn unanswered_batches_are_repeated_in_order_under_their_numbers_by_a_new_producer() {
    let (_provider, topic, mut store) = provider();
    let start = Instant::now();
    let adding = start_adds(&topic, &["a", "a", "a"]).await;
    let lost: Vec<SentBatch> = [store.expect(1, "add a").await, store.expect(2, "add a").await].into();
    store.expect(3, "add a").await.done();
    for number in 1..=2 {
        let again = store.expect(number, "add a").await;
        assert_eq!(again.producer, 2);
        assert!(start.elapsed() >= 2 * SECOND && start.elapsed() < 3 * SECOND, "{:?}", start.elapsed());
        again.done();
    }
    all_added(adding).await;
    drop(lost);
}

#[tokio::test(start_paused = true)]
async fn batches_for_an_unavailable_store_are_repeated_by_a_new_producer() {
    let (_provider, topic, mut store) = provider();
    let adding = start_adds(&topic, &["a", "a"]).await;
    let first = store.expect(1, "add a").await;
    let _second = store.expect(2, "add a").await;
    first.unavailable();
    for number in 1..=2 {
        let again = store.expect(number, "add a").await;
        assert_eq!(again.producer, 2);
        again.done();
    }
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn refused_batches_are_repeated_in_order_once_the_other_answers_are_read() {
    let (_provider, topic, mut store) = provider();
    let adding = start_adds(&topic, &["a", "a", "a"]).await;
    let first = store.expect(1, "add a").await;
    store.expect(2, "add a").await.refused();
    let third = store.expect(3, "add a").await;
    store.expect_nothing().await;
    tokio::time::advance(SECOND).await;
    store.expect_nothing().await;
    first.done();
    third.refused();
    for number in 2..=3 {
        let again = store.expect(number, "add a").await;
        assert_eq!(again.producer, 1);
        again.done();
    }
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_new_is_sent_between_a_refusal_and_the_answer_to_its_repeat() {
    let (_provider, topic, mut store) = provider();
    let mut adding = start_adds(&topic, &["a"]).await;
    store.expect(1, "add a").await.refused();
    tokio::task::yield_now().await;
    adding.extend(start_adds(&topic, &["b", "b"]).await);
    let repeated = store.expect(1, "add a").await;
    store.expect_nothing().await;
    repeated.done();
    let second = store.expect(2, "add b").await;
    store.expect(3, "add b").await.done();
    second.done();
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn only_a_late_batch_gets_a_new_number_and_it_goes_before_waiting_batches() {
    let (_provider, topic, mut store) = provider();
    let mut adding = start_adds(&topic, &["a", "a"]).await;
    let first = store.expect(1, "add a").await;
    let second = store.expect(2, "add a").await;
    adding.extend(start_adds(&topic, &["b"]).await);
    first.refused();
    second.done();
    store.expect(1, "add a").await.late();
    store.expect(3, "add a").await.done();
    store.expect(4, "add b").await.done();
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn two_late_batches_keep_their_order() {
    let (_provider, topic, mut store) = provider();
    let mut adding = start_adds(&topic, &["a", "b", "a", "c", "a"]).await;
    let first = store.expect(1, "add a b").await;
    let deleting = tokio::spawn(topic.delete("a"));
    adding.extend(start_adds(&topic, &["d"]).await);
    let second = store.expect(2, "add a c").await;
    store.expect(3, "add a").await.done();
    second.refused();
    first.refused();
    let first = store.expect(1, "add a b").await;
    let second = store.expect(2, "add a c").await;
    second.late();
    first.late();
    for (number, text) in [(4, "add a b"), (5, "add a c"), (6, "command a"), (7, "add d")] {
        store.expect(number, text).await.done();
    }
    all_added(adding).await;
    deleting.await.unwrap().unwrap();
}

/// Answers every batch in the same way until the add fails, and returns its error.
async fn error_of(store: &mut StoreOperator, adding: Adding, answer: impl Fn(SentBatch)) -> CallError {
    tokio::pin!(adding);
    loop {
        tokio::select! {
            biased;
            result = &mut adding => return result.unwrap().unwrap_err(),
            sent = store.next() => answer(sent),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_refused_until_its_deadline_is_not_added() {
    let (_provider, topic, mut store) = provider();
    let start = Instant::now();
    let adding = start_add(&topic, "a").await;
    let error = error_of(&mut store, adding, SentBatch::refused).await;
    assert!(matches!(&error, CallError::NotDone { reason: FailureReason::Store(_), .. }), "{error}");
    assert_eq!(error.to_string(), "job `a` of topic `remind` was not added: the store refuses add for now: loading");
    assert_eq!(start.elapsed().as_secs(), 10);
    store.expect_nothing().await;
    tokio::time::advance(60 * SECOND).await;
    store.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_without_an_answer_until_its_deadline_is_unknown() {
    let (_provider, topic, mut store) = provider();
    let start = Instant::now();
    let adding = start_add(&topic, "a").await;
    let error = error_of(&mut store, adding, drop).await;
    assert!(
        matches!(&error, CallError::Unknown { target, reason: FailureReason::NoAnswer { .. } } if target.id.as_ref().unwrap().as_str() == "a")
    );
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn one_lost_answer_among_refusals_is_unknown() {
    let (_provider, topic, mut store) = provider();
    let adding = start_add(&topic, "a").await;
    drop(store.expect(1, "add a").await);
    let error = error_of(&mut store, adding, SentBatch::refused).await;
    assert!(matches!(error, CallError::Unknown { reason: FailureReason::Unanswered, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn unknown_has_the_reason_that_made_it_unknown_and_not_that_of_a_later_refusal() {
    let (_provider, topic, mut store) = provider();
    let adding = start_add(&topic, "a").await;
    store.expect(1, "add a").await.unavailable();
    let error = error_of(&mut store, adding, |sent| {
        sent.fails(StoreError::NotSent { operation: "add", reason: "connection refused".into() });
    });
    let error = error.await;
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    assert!(error.to_string().contains("reset") && !error.to_string().contains("refused"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_final_error_behind_a_lost_answer_leaves_the_job_unknown() {
    let (_provider, topic, mut store) = provider();
    let adding = start_add(&topic, "a").await;
    drop(store.expect(1, "add a").await);
    let wrong = StoreError::WrongType { key: "dq:{shop:remind}:jobs".into(), expected: "hash" };
    store.expect(1, "add a").await.fails(wrong);
    let error = adding.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Unknown { reason: FailureReason::Unanswered, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn late_makes_unknown_not_added() {
    let (_provider, topic, mut store) = provider();
    let adding = start_add(&topic, "a").await;
    drop(store.expect(1, "add a").await);
    store.expect(1, "add a").await.late();
    let error = error_of(&mut store, adding, SentBatch::refused).await;
    assert!(matches!(error, CallError::NotDone { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_could_not_be_sent_in_time_is_not_added() {
    let (_provider, topic, mut store) = provider();
    let _first = start_add(&topic, "a").await;
    drop(store.expect(1, "add a").await);
    let waiting = start_add(&topic, "b").await;
    let error = error_of(&mut store, waiting, drop).await;
    assert!(matches!(error, CallError::NotDone { reason: FailureReason::NeverSent { .. }, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_repeats_cannot_fix_is_returned_at_once() {
    let (_provider, topic, mut store) = provider();
    let adding = start_add(&topic, "a").await;
    let wrong = StoreError::WrongType { key: "dq:{shop:remind}:jobs".into(), expected: "hash" };
    store.expect(1, "add a").await.fails(wrong);
    assert!(matches!(adding.await.unwrap(), Err(CallError::NotDone { .. })));

    let adding = start_add(&topic, "a").await;
    let strange = StoreError::Other { operation: "add", source: "what?".into() };
    store.expect(2, "add a").await.fails(strange);
    assert!(
        matches!(adding.await.unwrap(), Err(CallError::Unknown { .. })),
        "the store may have executed a part of it"
    );
    store.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_reported_as_not_added_is_left_out_of_the_repeats() {
    let (_provider, topic, mut store) = provider();
    let start = Instant::now();
    let first = start_add(&topic, "a").await;
    let sent = store.expect(1, "add a").await;
    let early = start_add(&topic, "early").await;
    tokio::time::advance(SECOND).await;
    let late = start_add(&topic, "late").await;
    sent.done();
    all_added(vec![first]).await;

    let early = error_of(&mut store, early, |sent| {
        assert_eq!((sent.number, sent.text().as_str()), (2, "add early late"));
        sent.refused();
    });
    assert!(matches!(early.await, CallError::NotDone { .. }));
    assert_eq!(start.elapsed().as_secs(), 10);
    store.expect(2, "add late").await.done();
    all_added(vec![late]).await;
}
