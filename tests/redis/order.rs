//! The requests of a producer reach the server in the order in which they were sent, whatever the client library holds back.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use dq::job::ProducerId;
use dq::store::redis::RedisStore;
use dq::store::{AddOutcome, BatchAnswer, Numbered, Pending, Producer, Store};
use dq_tests::redis::RedisServer;

use super::topic::{job, key};

type Adding = Pending<BatchAnswer<AddOutcome>>;

/// Sends the batch of this number, with one job.
fn add(producer: &Arc<dyn Producer>, number: u64) -> Adding {
    producer.add(Numbered { number, items: vec![job(&number.to_string())] })
}

/// A batch that another one has overtaken is late.
async fn is_added(adding: Adding) -> bool {
    let BatchAnswer::Done(outcomes) = adding.await.unwrap() else { return false };
    outcomes == [AddOutcome::Added]
}

/// Uses up what tokio lets a task do in one poll.
async fn exhaust_this_poll() {
    poll_fn(|cx| {
        while pin!(tokio::task::consume_budget()).poll(cx).is_ready() {}
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn a_request_that_is_sent_at_the_end_of_a_poll_is_not_overtaken() {
    let server = RedisServer::start();
    let store = RedisStore::new(&server.url()).unwrap();
    let producer = store.producer(&key("t"), &ProducerId::new("p"));
    for number in (1..300).step_by(3) {
        assert!(
            is_added(add(&producer, number)).await,
            "bytes have come just now, so the next request passes the line's queue"
        );
        exhaust_this_poll().await;
        let first = add(&producer, number + 1);
        tokio::task::yield_now().await;
        let second = add(&producer, number + 2);
        assert!(is_added(second).await && is_added(first).await, "batch {}", number + 1);
    }
}

#[tokio::test]
async fn more_requests_than_the_client_queues_by_default_keep_their_order() {
    let server = RedisServer::start();
    let store = RedisStore::new(&server.url()).unwrap();
    let producer = store.producer(&key("t"), &ProducerId::new("p"));
    for hundred in 0..10 {
        let first = hundred * 101 + 1;
        assert!(is_added(add(&producer, first)).await);
        let adding: Vec<_> = (1..=100).map(|number| add(&producer, first + number)).collect();
        // Whoever is asked first must not be sent first.
        for (number, adding) in adding.into_iter().enumerate().rev() {
            assert!(is_added(adding).await, "batch {} after {first}", number + 1);
        }
    }
}
