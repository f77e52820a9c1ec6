//! Batches that go out beside an unanswered one although they could still grow, and batches that wait for callers on their way.

use tokio::task::yield_now;

use super::manual_store::{SentBatch, StoreOperator};
use super::{Adding, all_added, provider};
use crate::provider::TopicProvider;

fn add_some(topic: &TopicProvider, count: usize) -> Vec<Adding> {
    (0..count).map(|_| tokio::spawn(topic.add_json("1"))).collect()
}

async fn next_of(store: &mut StoreOperator, count: usize) -> SentBatch {
    let sent = store.next().await;
    assert_eq!(sent.ids.len(), count, "number {}", sent.number);
    sent
}

#[tokio::test(start_paused = true)]
async fn a_second_batch_goes_out_when_as_many_wait_as_are_unanswered_and_a_third_waits() {
    let (_provider, topic, mut store) = provider();
    let mut adding = add_some(&topic, 32);
    let first = next_of(&mut store, 32).await;
    adding.extend(add_some(&topic, 31));
    store.expect_nothing().await;
    adding.extend(add_some(&topic, 1));
    let second = next_of(&mut store, 32).await;
    adding.extend(add_some(&topic, 64));
    store.expect_nothing().await;
    first.done();
    let third = next_of(&mut store, 64).await;
    second.done();
    third.done();
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn few_requests_wait_for_the_answer_before_them() {
    let (_provider, topic, mut store) = provider();
    let mut adding = add_some(&topic, 1);
    let first = next_of(&mut store, 1).await;
    adding.extend(add_some(&topic, 15));
    store.expect_nothing().await;
    adding.extend(add_some(&topic, 1));
    let second = next_of(&mut store, 16).await;
    first.done();
    second.done();
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_for_callers_that_were_answered_just_before_and_add_again() {
    let (_provider, topic, mut store) = provider();
    let callers: Vec<_> = (0..64)
        .map(|number| {
            let topic = topic.clone();
            tokio::spawn(async move {
                topic.add_json("1").await.unwrap();
                for _ in 0..number % 2 {
                    yield_now().await; // half of them come a bit later
                }
                topic.add_json("1").await.unwrap();
            })
        })
        .collect();
    next_of(&mut store, 64).await.done();
    let second = store.next().await;
    let mut added = second.ids.len();
    assert!(added > 32, "{second:?}");
    second.done();
    while added < 64 {
        let rest = store.next().await;
        added += rest.ids.len();
        rest.done();
    }
    for caller in callers {
        caller.await.unwrap();
    }
}
