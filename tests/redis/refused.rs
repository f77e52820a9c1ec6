//! A step that the server refuses sends no signal: scripts publish nothing before their first write.

use dq::job::{Delivery, NodeId};
use dq::store::step::{DEFAULT_BYTES, Publish};
use dq::store::{CommandKind, Interest, NewJob, Signal, Signals, Store, StoreError};
use dq_tests::redis::RedisServer;

use super::topic::{LEASE, Topic, job};

/// Returns a topic with a subscriber on a server that refuses writes but still delivers published messages.
async fn refusing(name: &str, deliver: Delivery) -> (RedisServer, Topic, Signals) {
    let (server, topic) = Topic::entered().await;
    topic.add(vec![NewJob { deliver, ..job(name) }]).await;
    // A broadcast is due at the next millisecond too.
    let clock = async || topic.store.counts(&topic.key).await.unwrap().clock;
    let added = clock().await;
    while clock().await == added {}
    if deliver == Delivery::Queue {
        assert_eq!(topic.claims().await.len(), 1);
    }
    let interest = Interest { node: Some(NodeId::new("n")), broadcasts: true, moves: false };
    let signals = topic.store.signals(&topic.key, interest).await.unwrap();
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    (server, topic, signals)
}

/// Asserts that the next signal is the one published here, after the refusal.
async fn nothing_was_published(server: &RedisServer, mut signals: Signals) {
    server.command(&["PUBLISH", "dq:{shop:t}:wake", "due"]);
    assert_eq!(signals.next().await, Some(Signal::Due(None)));
}

#[tokio::test]
async fn a_broadcast_that_cannot_be_removed_is_not_published() {
    let (server, topic, signals) = refusing("a", Delivery::Broadcast).await;
    let error = topic
        .link
        .step(Publish { limit: 10, bytes: DEFAULT_BYTES, fallback: LEASE, expires_after: LEASE })
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    nothing_was_published(&server, signals).await;
}

#[tokio::test]
async fn a_refused_cancel_stops_no_handler() {
    let (server, topic, signals) = refusing("a", Delivery::Queue).await;
    for (verb, number) in [(CommandKind::Cancel, 7), (CommandKind::Delete, 8), (CommandKind::Ack, 9)] {
        let producer = topic.store.producer(&topic.key, &dq::job::ProducerId::new("q"));
        let items = vec![dq::store::Command::new(verb, super::topic::id("a"))];
        let error = producer.command(dq::store::Numbered { number, items }).await.unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    }
    nothing_was_published(&server, signals).await;
}
