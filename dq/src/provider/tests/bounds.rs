//! The bounds of batches and of unanswered requests, and callers that go away.

use std::time::Duration;

use tokio::time::Instant;

use super::manual_store::SentBatch;
use super::{all_added, provider, provider_with, start_add, start_adds};
use crate::config::NodeSettings;
use crate::provider::{CallError, FailureReason};

#[tokio::test(start_paused = true)]
async fn a_batch_has_at_most_a_thousand_jobs() {
    let (_provider, topic, mut store) = provider();
    let adding: Vec<_> = (0..2_500).map(|number| tokio::spawn(topic.add_json("1").id(number))).collect();
    let mut sizes = Vec::new();
    for number in 1..=3 {
        let sent = store.next().await;
        assert_eq!(sent.number, number);
        sizes.push(sent.ids.len());
        sent.done();
    }
    assert_eq!(sizes, [1_000, 1_000, 500]);
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_at_most_a_mebibyte_unless_one_job_alone_has_more() {
    let settings = NodeSettings { max_payload: 4 << 20, ..NodeSettings::default() };
    let (_provider, topic, mut store) = provider_with(settings);
    let add = |id: &str, size: usize| tokio::spawn(topic.add_json(format!("\"{}\"", "x".repeat(size))).id(id));
    for (number, quick) in [(1, "x"), (2, "y")] {
        let adding = vec![add(quick, 1)];
        store.expect(number, &format!("add {quick}")).await.done();
        all_added(adding).await;
    }
    let adding = vec![add("a", 500_000), add("b", 500_000), add("c", 500_000), add("d", 3_000_000), add("e", 1)];
    for (number, text) in [(3, "add a b"), (4, "add c"), (5, "add d"), (6, "add e")] {
        store.expect(number, text).await.done();
    }
    all_added(adding).await;
}

/// A batch that a slow link does not carry within `call_timeout` would be given up and sent again for ever.
#[tokio::test(start_paused = true)]
async fn batches_begin_small_and_shrink_when_no_answer_comes_in_time() {
    let (_provider, topic, mut store) = provider();
    let add = |id: &str| tokio::spawn(topic.add_json(format!("\"{}\"", "x".repeat(60_000))).id(id));
    let first = vec![add("a"), add("b"), add("c"), add("d"), add("e")];
    let unanswered = store.expect(1, "add a b c d").await;
    let next = store.expect(2, "add e").await;
    tokio::time::advance(Duration::from_secs(2)).await; // the call timeout
    drop((unanswered, next));
    let again = [store.expect(1, "add a b c d").await, store.expect(2, "add e").await];
    tokio::time::advance(Duration::from_secs(1)).await; // too slow to grow again
    again.into_iter().for_each(SentBatch::done);
    all_added(first).await;
    let then = vec![add("f"), add("g"), add("h"), add("i")];
    let slow = store.expect(3, "add f g").await;
    tokio::time::advance(Duration::from_secs(1)).await;
    slow.done();
    store.expect(4, "add h i").await.done();
    all_added(then).await;
}

fn two_unanswered() -> NodeSettings {
    NodeSettings { max_in_flight: 2, ..NodeSettings::default() }
}

#[tokio::test(start_paused = true)]
async fn callers_over_the_unanswered_limit_wait_in_order() {
    let (_provider, topic, mut store) = provider_with(two_unanswered());
    let adding = start_adds(&topic, &["a", "b", "c", "d", "e"]).await;
    let sent = store.expect(1, "add a b").await;
    store.expect_nothing().await;
    sent.done();
    store.expect(2, "add c d").await.done();
    store.expect(3, "add e").await.done();
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_a_place_gets_not_added_at_its_deadline() {
    let (_provider, topic, mut store) = provider_with(two_unanswered());
    let _adding = start_adds(&topic, &["a", "b"]).await;
    let _unanswered = store.expect(1, "add a b").await;
    tokio::time::advance(Duration::from_millis(10)).await;
    let start = Instant::now();
    let error = start_add(&topic, "c").await.await.unwrap().unwrap_err();
    let waited = start.elapsed();
    assert!(waited >= Duration::from_secs(10) && waited < Duration::from_millis(10_100), "{waited:?}");
    assert!(matches!(error, CallError::NotDone { reason: FailureReason::NeverSent { .. }, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_batch_larger_than_the_unanswered_limit_is_still_sent() {
    let (_provider, topic, mut store) = provider_with(two_unanswered());
    let many = tokio::spawn(topic.add_many_json(["1"; 5]));
    let sent = store.next().await;
    assert_eq!(sent.ids.len(), 5);
    sent.done();
    assert_eq!(many.await.unwrap().unwrap().len(), 5);
    all_added(vec![{
        let adding = start_add(&topic, "a").await;
        store.expect(2, "add a").await.done();
        adding
    }])
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_add_that_was_dropped_before_it_was_sent_is_not_sent() {
    let (_provider, topic, mut store) = provider();
    let first = start_add(&topic, "a").await;
    let sent = store.expect(1, "add a").await;
    let rest = start_adds(&topic, &["b", "c", "b"]).await;
    rest[0].abort();
    rest[2].abort();
    tokio::task::yield_now().await;
    sent.done();
    store.expect(2, "add c").await.done();
    all_added(vec![first]).await;
    store.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn an_add_that_was_dropped_after_it_was_sent_is_carried_out() {
    let (_provider, topic, mut store) = provider();
    let adding = start_add(&topic, "a").await;
    let sent = store.expect(1, "add a").await;
    adding.abort();
    tokio::task::yield_now().await;
    sent.refused();
    store.expect(1, "add a").await.done();
    store.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_before_the_first_poll() {
    let (_provider, topic, mut store) = provider();
    let add = topic.add_json("1").id("a");
    store.expect_nothing().await;
    drop(add);
    tokio::time::advance(Duration::from_secs(1)).await;
    store.expect_nothing().await;
}
