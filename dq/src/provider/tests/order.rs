//! Which requests share a batch, and in which order batches go.

use futures_util::future::{join, join_all};

use super::{all_added, provider, start_add, start_adds};
use crate::provider::{AddedHow, CallError};
use crate::store::AddOutcome;

#[tokio::test(start_paused = true)]
async fn concurrent_adds_are_one_batch() {
    let (_provider, topic, mut store) = provider();
    let adds = join_all((0..64).map(|number| topic.add_json("1").id(number)));
    let answers = async {
        let sent = store.next().await;
        assert_eq!((sent.number, sent.ids.len()), (1, 64));
        assert_eq!(sent.ids, (0..64).map(|number| number.to_string()).collect::<Vec<_>>());
        sent.done();
    };
    let (added, ()) = join(adds, answers).await;
    assert!(added.into_iter().all(|added| added.is_ok_and(|added| added.how == AddedHow::New)));
    store.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn each_caller_gets_its_own_outcome() {
    let (_provider, topic, mut store) = provider();
    let adding = start_adds(&topic, &["a", "b", "c"]).await;
    let outcomes = vec![AddOutcome::ReplacementWaits, AddOutcome::Refused("no room".into()), AddOutcome::Added];
    store.expect(1, "add a b c").await.outcomes(outcomes);
    let mut results = Vec::new();
    for add in adding {
        results.push(add.await.unwrap());
    }
    assert_eq!(results[0].as_ref().unwrap().how, AddedHow::ReplacementWaits);
    let refused = results[1].as_ref().unwrap_err();
    assert!(matches!(refused, CallError::NotDone { .. }));
    assert_eq!(refused.to_string(), "job `b` of topic `remind` was not added: the store refuses it: no room");
    assert_eq!(results[2].as_ref().unwrap().id.as_str(), "c");
}

#[tokio::test(start_paused = true)]
async fn a_batch_never_has_one_id_twice() {
    let (_provider, topic, mut store) = provider();
    let adding = start_adds(&topic, &["a", "b", "a", "c", "a"]).await;
    let first = store.expect(1, "add a b").await;
    let second = store.expect(2, "add a c").await;
    store.expect(3, "add a").await.done();
    second.done();
    first.done();
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn adds_and_commands_keep_their_order() {
    let (_provider, topic, mut store) = provider();
    let spawn_add = |id| tokio::spawn(topic.add_json("1").id(id));
    let mut adding = vec![spawn_add("a"), spawn_add("b")];
    let deleting = tokio::spawn(topic.delete("a"));
    let acking = tokio::spawn(topic.ack("b"));
    adding.push(spawn_add("a"));
    let first = store.expect(1, "add a b").await;
    let second = store.expect(2, "command a b").await;
    store.expect(3, "add a").await.done();
    second.done();
    first.done();
    all_added(adding).await;
    deleting.await.unwrap().unwrap();
    assert!(!acking.await.unwrap().unwrap().changed);
}

#[tokio::test(start_paused = true)]
async fn number_n_plus_16_waits_for_the_answer_to_n() {
    let (_provider, topic, mut store) = provider();
    let adding = start_adds(&topic, &["a"; 20]).await;
    let mut sent = Vec::new();
    for number in 1..=16 {
        sent.push(store.expect(number, "add a").await);
    }
    store.expect_nothing().await;
    let first = sent.remove(0);
    sent.into_iter().for_each(super::manual_store::SentBatch::done);
    store.expect_nothing().await;
    first.done();
    for number in 17..=20 {
        store.expect(number, "add a").await.done();
    }
    all_added(adding).await;
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_does_not_wait_for_the_one_before_but_the_rest_does() {
    let (_provider, topic, mut store) = provider();
    let mut adding = vec![start_add(&topic, "a").await];
    let unanswered = store.expect(1, "add a").await;
    adding.push(start_add(&topic, "b").await);
    let many = tokio::spawn(topic.add_many_json((0..1_000).map(|_| "1")));
    let full = store.next().await;
    assert_eq!((full.number, full.ids.len()), (2, 1_000));
    full.done();
    store.expect_nothing().await;
    unanswered.done();
    let rest = store.next().await;
    assert_eq!((rest.number, rest.ids.len()), (3, 1));
    rest.done();
    assert!(many.await.unwrap().unwrap().into_iter().all(|added| added.is_ok()));
    all_added(adding).await;
}
