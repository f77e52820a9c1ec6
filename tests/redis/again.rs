//! Adds that have to name the nodes whose rows the script reads, while nodes come and go.

use std::sync::atomic::Ordering::SeqCst;

use dq::job::ProducerId;
use dq::store::redis::RedisStore;
use dq::store::{AddOutcome, BatchAnswer, Numbered, Store, StoreError};

use super::scripted::{Behaviour, Started, start};
use super::topic::{job, key};

/// Adds a job to a store that wants to be asked again this often. Returns the answer, and how often the add was sent.
async fn add(again: u64) -> (Result<BatchAnswer<AddOutcome>, StoreError>, u64) {
    let Started { url, scripts, .. } = start(Behaviour::Again(again));
    let store = RedisStore::new(&url).unwrap();
    let batch = Numbered { number: 1, items: vec![job("a")] };
    let answer = store.producer(&key("t"), &ProducerId::new("p")).add(batch).await;
    (answer, scripts.load(SeqCst))
}

#[tokio::test]
async fn an_add_that_is_given_up_while_nodes_come_and_go_is_not_sent_once_more() {
    let (answer, sent) = add(15).await;
    assert!(matches!(answer, Ok(BatchAnswer::Done(outcomes)) if outcomes == [AddOutcome::Added]));
    assert_eq!(sent, 16);
    let (answer, sent) = add(16).await;
    assert!(answer.is_err_and(|error| error.nothing_done()), "each of the answers said that nothing was done");
    assert_eq!(sent, 16, "nobody would read the answer of another one");
}
