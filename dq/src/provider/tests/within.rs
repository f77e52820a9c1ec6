//! Calls that set for themselves how long they may wait.

use std::time::Duration;

use tokio::time::Instant;

use super::manual_store::StoreOperator;
use super::{all_added, provider, provider_with, start_add, start_adds};
use crate::config::NodeSettings;
use crate::provider::{CallError, FailureReason, Invalid, TopicProvider};
use crate::store::StoreError;
use crate::time::IntoDelay;

const HALF: Duration = Duration::from_millis(500);

/// An add that waits for half a second, and its error.
async fn late_add(topic: &TopicProvider, id: &str) -> CallError {
    let start = Instant::now();
    let error = topic.add_json("1").id(id).within("500ms").await.unwrap_err();
    assert_eq!(start.elapsed(), HALF);
    error
}

#[tokio::test(start_paused = true)]
async fn an_add_without_an_answer_is_unknown_after_its_own_time() {
    let (_provider, topic, mut store) = provider();
    let error = late_add(&topic, "a").await;
    let CallError::Unknown { reason: FailureReason::NoAnswer { waited, limit: "within" }, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*waited, HALF);
    assert!(error.to_string().ends_with("the store did not answer within 500ms (`within`)"), "{error}");
    drop(store.expect(1, "add a").await);
}

#[tokio::test(start_paused = true)]
async fn an_add_that_cannot_be_sent_in_its_own_time_is_not_added() {
    let (_provider, topic, mut store) = provider();
    let first = start_adds(&topic, &["a"]).await;
    let sent = store.expect(1, "add a").await;
    let error = late_add(&topic, "b").await;
    assert!(
        matches!(error, CallError::NotDone { reason: FailureReason::NeverSent { limit: "within", .. }, .. }),
        "{error:?}"
    );
    sent.done();
    all_added(first).await;
    store.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_for_a_place_waits_only_for_its_own_time() {
    let settings = NodeSettings { max_in_flight: 1, ..NodeSettings::default() };
    let (_provider, topic, mut store) = provider_with(settings);
    let first = start_adds(&topic, &["a"]).await;
    let sent = store.expect(1, "add a").await;
    let error = late_add(&topic, "b").await;
    assert!(matches!(error, CallError::NotDone { reason: FailureReason::NeverSent { .. }, .. }), "{error:?}");
    let many = topic.add_many_json(["1", "2"]).within(HALF).await.unwrap();
    assert!(many.iter().all(|added| matches!(added, Err(CallError::NotDone { .. }))), "{many:?}");
    sent.done();
    all_added(first).await;
    store.expect_nothing().await;
}

/// Otherwise every impatient caller would cost all others their connection, and no answer would come in time.
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_early_leaves_the_connection_to_the_others() {
    let (_provider, topic, mut store) = provider();
    assert!(matches!(late_add(&topic, "a").await, CallError::Unknown { .. }));
    let sent = store.expect(1, "add a").await;
    let next = start_add(&topic, "b").await;
    sent.done();
    let sent = store.expect(2, "add b").await;
    assert_eq!(sent.producer, 1);
    sent.done();
    all_added(vec![next]).await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_nobody_waits_for_is_not_repeated() {
    let (_provider, topic, mut store) = provider();
    for number in 1..=4 {
        assert!(matches!(late_add(&topic, "a").await, CallError::Unknown { .. }));
        let sent = store.expect(number, "add a").await;
        match number {
            1 => sent.refused(),
            2 => sent.unavailable(),
            3 => sent.late(),
            _ => drop(sent),
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        store.expect_nothing().await;
    }
    let next = start_add(&topic, "b").await;
    store.expect(5, "add b").await.done();
    all_added(vec![next]).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_may_wait_longer_than_usual() {
    let (_provider, topic, mut store) = provider();
    let adding = tokio::spawn(topic.add_json("1").id("a").within("1m"));
    let other = start_add(&topic, "b").await;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        store.next().await.refused();
    }
    assert!(matches!(other.await.unwrap().unwrap_err(), CallError::NotDone { .. }), "it waits for `call_deadline`");
    store.expect(1, "add a").await.done();
    all_added(vec![adding]).await;
}

#[tokio::test(start_paused = true)]
async fn commands_and_queries_have_their_own_time_too() {
    let (_provider, topic, _store) = provider();
    let start = Instant::now();
    let (deleted, acked) = tokio::join!(topic.delete("a").within("500ms"), topic.ack("b").within("500ms"));
    assert!(matches!(deleted.unwrap_err(), CallError::Unknown { .. }));
    assert!(matches!(acked.unwrap_err(), CallError::Unknown { .. } | CallError::NotDone { .. }));
    assert_eq!(start.elapsed(), HALF);
    let error = topic.get("a").within("500ms").await.unwrap_err();
    assert!(error.to_string().contains("no answer within 500ms (`within`)"), "{error}");
    assert_eq!(start.elapsed(), 2 * HALF);
}

#[tokio::test(start_paused = true)]
async fn a_query_that_waits_for_its_turn_waits_only_for_its_own_time() {
    let (_provider, topic, _store) = provider();
    let asking: Vec<_> = (0..256).map(|number| tokio::spawn(topic.get(number))).collect();
    // The runtime polls this test again before it has polled all others once.
    for _ in &asking {
        tokio::task::yield_now().await;
    }
    let start = Instant::now();
    let error = topic.get("a").within("500ms").await.unwrap_err();
    assert!(error.to_string().contains("256 earlier queries had no answer within `within`"), "{error}");
    assert_eq!(start.elapsed(), HALF);
    asking.iter().for_each(tokio::task::JoinHandle::abort);
}

/// The errors of an add, a command, a query and a list that wait for this time.
async fn errors(topic: &TopicProvider, within: impl IntoDelay + Copy) -> [CallError; 4] {
    [
        topic.add_json("1").within(within).await.unwrap_err(),
        topic.delete("a").within(within).await.unwrap_err(),
        topic.get("a").within(within).await.unwrap_err(),
        topic.dead().within(within).next_page().await.unwrap_err(),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_time_that_cannot_be_read_or_is_out_of_its_range_is_an_error_and_nothing_is_sent() {
    let (_provider, topic, mut store) = provider();
    for error in errors(&topic, "5x").await {
        assert!(matches!(error, CallError::Invalid(Invalid::BadDuration { field: "within", .. })), "{error}");
        assert!(error.to_string().starts_with("`within`: `5x` is not a duration"), "{error}");
    }
    for bad in [Duration::ZERO, Duration::from_micros(999), Duration::from_secs(3_601)] {
        for error in errors(&topic, bad).await {
            let CallError::Invalid(Invalid::OutOfRange { field, given, .. }) = error else { panic!("{error}") };
            assert_eq!((field, given), ("within", bad));
        }
    }
    let error = topic.add_json("1").within("2h").await.unwrap_err();
    assert_eq!(error.to_string(), "`within`: 2h is out of its range: write 1ms to 1h");
    store.expect_nothing().await;
}

fn full() -> StoreError {
    StoreError::Full { operation: "add", reason: "OOM (raise `maxmemory`)".into() }
}

async fn refused_twice(store: &mut StoreOperator, number: u64) {
    for _ in 0..2 {
        store.expect(number, "add a").await.fails(full());
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_store_is_asked_twice_and_then_the_caller_learns_what_to_do() {
    let (_provider, topic, mut store) = provider();
    let start = Instant::now();
    for number in 1..=20 {
        let adding = start_add(&topic, "a").await;
        refused_twice(&mut store, number).await;
        let error = adding.await.unwrap().unwrap_err();
        let CallError::NotDone { reason: FailureReason::Store(source), .. } = &error else { panic!("{error:?}") };
        assert!(matches!(**source, StoreError::Full { .. }), "{source}");
        assert!(error.to_string().ends_with("the store cannot take add: OOM (raise `maxmemory`)"), "{error}");
        store.expect_nothing().await;
    }
    let pauses = start.elapsed();
    assert!(pauses > Duration::ZERO && pauses < Duration::from_secs(1), "the pauses do not grow: {pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_full_for_a_moment_gets_the_repeat() {
    let (_provider, topic, mut store) = provider();
    let adding = start_add(&topic, "a").await;
    store.expect(1, "add a").await.fails(full());
    store.expect(1, "add a").await.refused();
    store.expect(1, "add a").await.fails(full());
    store.expect(1, "add a").await.done();
    all_added(vec![adding]).await;
}

/// An earlier copy may have been executed, so the caller must not hear that nothing was done.
#[tokio::test(start_paused = true)]
async fn a_full_store_behind_a_lost_answer_is_asked_on() {
    let (_provider, topic, mut store) = provider();
    let adding = start_add(&topic, "a").await;
    drop(store.expect(1, "add a").await);
    refused_twice(&mut store, 1).await;
    store.expect(1, "add a").await.done();
    all_added(vec![adding]).await;
}
