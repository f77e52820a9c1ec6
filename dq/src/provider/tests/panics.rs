//! Panics of dq in a task of the provider, which are defects: the task starts again, and every caller gets a true answer.

use std::time::Duration;

use tokio::time::Instant;

use super::manual_store::PanicAt;
use super::{all_added, provider, start_add, start_adds};
use crate::provider::{CallError, FailureReason};

#[tokio::test(start_paused = true)]
async fn requests_that_were_not_sent_are_sent_after_a_panic() {
    let (provider, topic, mut store) = provider();
    store.panic_at(PanicAt::Producer);
    let mut adding = start_adds(&topic, &["a", "b", "a"]).await;
    store.expect_nothing().await;
    adding.push(start_add(&topic, "c").await);
    store.expect(1, "add a b").await.done();
    store.expect(2, "add a c").await.done();
    all_added(adding).await;
    assert_eq!(provider.restarts(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_panic_what_may_have_left_is_unknown_and_the_rest_gets_a_new_producer() {
    let (provider, topic, mut store) = provider();
    let left = start_add(&topic, "a").await;
    let command = tokio::spawn(topic.delete("x"));
    let sent = store.expect(1, "add a").await;
    let rest = start_adds(&topic, &["b", "c"]).await;
    let first = sent.identity.clone();
    store.panic_at(PanicAt::Answer);
    sent.done();
    let error = left.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Unknown { reason: FailureReason::Panicked, .. }), "{error}");
    let deleted = store.expect(1, "command x").await;
    assert_ne!(deleted.identity, first, "the numbers of the first producer are lost");
    store.expect(2, "add b c").await.done();
    deleted.done();
    command.await.unwrap().unwrap();
    all_added(rest).await;
    assert_eq!(provider.restarts(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_panic_a_command_that_may_have_left_is_unknown() {
    let (_provider, topic, mut store) = provider();
    let command = tokio::spawn(topic.delete("x"));
    let sent = store.expect(1, "command x").await;
    store.panic_at(PanicAt::Answer);
    sent.done();
    let error = command.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Unknown { reason: FailureReason::Panicked, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_sending_panics_is_unknown_and_is_not_sent_again() {
    let (_provider, topic, mut store) = provider();
    store.panic_at(PanicAt::Send);
    let error = start_add(&topic, "a").await.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Unknown { reason: FailureReason::Panicked, .. }), "{error}");
    let adding = start_add(&topic, "b").await;
    store.expect(1, "add b").await.done();
    all_added(vec![adding]).await;
    store.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_was_refused_before_a_panic_is_sent_again() {
    let (_provider, topic, mut store) = provider();
    let mut adding = start_adds(&topic, &["a", "a"]).await;
    let (first, second) = (store.expect(1, "add a").await, store.expect(2, "add a").await);
    first.refused();
    store.expect_nothing().await;
    store.panic_at(PanicAt::Answer);
    second.done();
    store.expect(1, "add a").await.done();
    all_added(vec![adding.remove(0)]).await;
    assert!(matches!(adding.remove(0).await.unwrap(), Err(CallError::Unknown { reason: FailureReason::Panicked, .. })));
}

#[tokio::test(start_paused = true)]
async fn a_provider_whose_task_panicked_closes() {
    let (provider, topic, store) = provider();
    store.panic_at(PanicAt::Send);
    let adding = start_add(&topic, "a").await;
    provider.close().await;
    assert!(matches!(adding.await.unwrap(), Err(CallError::Unknown { .. })));
    assert!(matches!(topic.add_json("1").await, Err(CallError::NotDone { reason: FailureReason::Stopped, .. })));
}

#[tokio::test(start_paused = true)]
async fn a_panic_keeps_no_caller_beyond_its_deadline() {
    let (_provider, topic, mut store) = provider();
    let start = Instant::now();
    let adding = start_add(&topic, "a").await;
    let sent = store.expect(1, "add a").await;
    let waiting = start_add(&topic, "b").await;
    tokio::time::advance(Duration::from_millis(1_900)).await;
    drop(sent);
    tokio::time::sleep(Duration::from_millis(7_900)).await;
    store.panic_at(PanicAt::Producer);
    assert!(adding.await.unwrap().is_err() && waiting.await.unwrap().is_err());
    assert!(start.elapsed() < Duration::from_millis(10_100), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_query_that_panics_says_so() {
    let (provider, topic, store) = provider();
    store.panic_at(PanicAt::Query);
    let error = topic.counts().await.unwrap_err();
    assert!(matches!(error, CallError::NotDone { reason: FailureReason::Panicked, .. }), "{error}");
    assert!(topic.counts().await.is_ok());
    assert_eq!(provider.restarts(), 1);
}
