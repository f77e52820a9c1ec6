//! The bound on the bytes of unanswered requests, and the bound on queries.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::task::{JoinHandle, yield_now};

use super::manual_store::StoreOperator;
use super::{Adding, all_added, provider_with};
use crate::config::NodeSettings;
use crate::environment::{Environment, Seeded};
use crate::job::AppName;
use crate::provider::{CallError, FailureReason, Provider, TopicProvider};

/// Room for three requests of 1,000 bytes each, a bit more than their payloads.
fn three_kilobytes() -> NodeSettings {
    NodeSettings { max_in_flight_bytes: 3_300, ..NodeSettings::default() }
}

fn payload(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

async fn add(topic: &TopicProvider, id: &str, bytes: usize) -> Adding {
    let adding = tokio::spawn(topic.add_json(payload(bytes)).id(id));
    yield_now().await;
    adding
}

#[tokio::test(start_paused = true)]
async fn callers_over_the_unanswered_bytes_wait_in_order() {
    let (_provider, topic, mut store) = provider_with(three_kilobytes());
    let mut adding = Vec::new();
    for id in ["a", "b", "c", "d", "e", "f", "g"] {
        adding.push(add(&topic, id, 1_000).await);
    }
    let mut sent = store.expect(1, "add a").await;
    for text in ["add b c", "add d e f", "add g"] {
        store.expect_nothing().await;
        let number = sent.number + 1;
        sent.done();
        sent = store.expect(number, text).await;
    }
    sent.done();
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn the_provider_never_holds_more_bytes_than_the_limit_over_all_topics() {
    let (provider, topic, mut store) = provider_with(three_kilobytes());
    let other = provider.topic("other").unwrap();
    let mut adding = Vec::new();
    for number in 0..100 {
        let topic = if number % 2 == 0 { &topic } else { &other };
        adding.push(tokio::spawn(topic.add_json(payload(1_000)).id(number)));
    }
    let (mut unanswered, mut most, mut answered) = (Vec::new(), 0, 0);
    while answered < 100 {
        for _ in 0..50 {
            yield_now().await;
        }
        unanswered.extend(std::iter::from_fn(|| store.try_next()));
        let held: usize = unanswered.iter().map(|sent: &super::manual_store::SentBatch| sent.ids.len()).sum();
        most = most.max(held);
        let sent = unanswered.remove(0);
        answered += sent.ids.len();
        sent.done();
    }
    assert_eq!(most, 3, "requests of 1,000 bytes");
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_larger_than_the_bound_passes_alone_and_nothing_overtakes_it() {
    let (_provider, topic, mut store) = provider_with(three_kilobytes());
    let small = add(&topic, "a", 1_000).await;
    let large = add(&topic, "large", 10_000).await;
    let behind = add(&topic, "b", 10).await;
    let sent = store.expect(1, "add a").await;
    store.expect_nothing().await;
    sent.done();
    let sent = store.expect(2, "add large").await;
    store.expect_nothing().await;
    sent.done();
    store.expect(3, "add b").await.done();
    all_added(vec![small, large, behind]).await;
}

#[tokio::test(start_paused = true)]
async fn the_jobs_of_one_call_hold_their_bytes_until_all_are_answered() {
    let (provider, topic, mut store) = provider_with(three_kilobytes());
    let other = provider.topic("other").unwrap();
    let many = tokio::spawn(topic.add_many_json((0..5).map(|_| payload(1_000))));
    yield_now().await;
    let behind = add(&other, "b", 10).await;
    let sent = store.next().await;
    assert_eq!(sent.ids.len(), 5);
    store.expect_nothing().await;
    sent.done();
    store.expect(1, "add b").await.done();
    assert_eq!(many.await.unwrap().unwrap().len(), 5);
    all_added(vec![behind]).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_while_it_waits_for_bytes_leaves_its_place_to_the_next() {
    let (provider, topic, mut store) = provider_with(three_kilobytes());
    let other = provider.topic("other").unwrap();
    let first = add(&topic, "a", 3_000).await;
    let waiting = add(&other, "large", 3_000).await;
    let next = add(&other, "b", 10).await;
    let sent = store.expect(1, "add a").await;
    store.expect_nothing().await;
    waiting.abort();
    store.expect(1, "add b").await.done();
    sent.done();
    all_added(vec![first, next]).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gets_no_bytes_in_time_is_not_added() {
    let (provider, topic, mut store) = provider_with(three_kilobytes());
    let other = provider.topic("other").unwrap();
    let _first = add(&topic, "a", 3_000).await;
    let _unanswered = store.expect(1, "add a").await;
    let error = add(&other, "b", 1_000).await.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::NotDone { reason: FailureReason::NeverSent { .. }, .. }), "{error}");
}

/// Starts queries that are never answered.
async fn start_queries(topic: &TopicProvider, count: usize) -> Vec<JoinHandle<Result<(), CallError>>> {
    let query = |_| {
        let topic = topic.clone();
        tokio::spawn(async move { topic.get("a").await.map(|_| ()) })
    };
    let started = (0..count).map(query).collect();
    for _ in 0..10 {
        yield_now().await;
    }
    started
}

#[tokio::test(start_paused = true)]
async fn at_most_256_queries_are_in_flight_and_callers_wait_for_their_turn() {
    let (store, _operator) = StoreOperator::new();
    let queries = Arc::clone(&store.queries);
    let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
    let provider = Provider::root(AppName::new("shop").unwrap(), store, environment, NodeSettings::default());
    let (topic, other) = (provider.topic("remind").unwrap(), provider.topic("other").unwrap());
    let mut started = start_queries(&topic, 200).await;
    started.extend(start_queries(&other, 200).await);
    assert_eq!((queries.started.load(Relaxed), queries.most.load(Relaxed)), (256, 256));
    started[..100].iter().for_each(JoinHandle::abort);
    started.drain(..100);
    for _ in 0..10 {
        yield_now().await;
    }
    assert_eq!((queries.started.load(Relaxed), queries.most.load(Relaxed)), (356, 256));
    for query in started {
        assert!(matches!(query.await.unwrap(), Err(CallError::NotDone { .. })), "each ends when its time is over");
    }
}
