//! Broadcasts on a real server: large ones that are due together, ones that do not arrive, and connections that break.

use std::time::{Duration, SystemTime};

use dq::prelude::*;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::topic::{factory, until};

/// Longer than anything here takes, and shorter than a test may take.
const LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "prices", deliver = "broadcast")]
struct Prices(String);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work")]
struct Work;

#[broadcast_listener(channels = ["prices"], register = false)]
struct PricesListener(UnboundedSender<usize>);

impl BroadcastListener for PricesListener {
    type Message = Prices;

    async fn on_message(&self, prices: Broadcast<Prices>) -> Result<(), JobError> {
        Ok(self.0.send(prices.message.0.len())?)
    }
}

#[delay_listener(register = false)]
async fn work(_job: Job<Work>, received: &UnboundedSender<usize>) -> Result<(), JobError> {
    Ok(received.send(0)?)
}

async fn node(server: &RedisServer) -> (Context, UnboundedReceiver<usize>) {
    let (sender, received) = unbounded_channel();
    let factory = factory(&server.url());
    let factory = factory.broadcast_listener::<PricesListener>().listener::<work>().provide(sender);
    let node = factory.start().await.unwrap();
    node.ready().await;
    (node, received)
}

/// A server closes the connection of a subscriber that is 32 MB behind. 40 MB that are due together arrive all the same,
/// each once, on every node, and no connection is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_broadcasts_that_are_due_together_all_arrive() {
    const BROADCASTS: usize = 1_000;
    const SIZE: usize = 40_000;
    let server = RedisServer::start();
    let (one, mut received) = node(&server).await;
    let (two, mut received_by_two) = node(&server).await;
    let text = "x".repeat(SIZE);
    let due = SystemTime::now() + Duration::from_secs(3);
    for _ in 0..BROADCASTS / 100 {
        let jobs = (0..100).map(|_| Prices(text.clone()));
        let added = one.provider().add_many(jobs).at(due).await;
        assert!(added.iter().flatten().all(Result::is_ok));
    }
    for received in [&mut received, &mut received_by_two] {
        for _ in 0..BROADCASTS {
            assert_eq!(timeout(LIMIT, received.recv()).await, Ok(Some(SIZE)));
        }
    }
    let channels = [&one, &two].map(|node| node.health().channels.remove(0));
    assert_eq!(channels.iter().map(|channel| channel.published).sum::<u64>(), BROADCASTS as u64);
    assert!(
        channels.iter().all(|channel| channel.received == BROADCASTS as u64 && channel.missed == 0),
        "{channels:?}"
    );
    one.provider().add(Work).await.unwrap();
    assert!(tokio::select! { ran = received.recv() => ran == Some(0), ran = received_by_two.recv() => ran == Some(0) });
    let stats = server.command(&["INFO", "stats"]);
    let closed = stats.lines().find_map(|line| line.strip_prefix("client_output_buffer_limit_disconnections:"));
    assert!(closed.is_none_or(|closed| closed.trim() == "0"), "{closed:?}");
    one.shutdown(Duration::ZERO).await;
    two.shutdown(Duration::ZERO).await;
}

/// Each broadcast has a number, so a node knows how many it has missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broadcasts_that_do_not_arrive_are_counted() {
    let server = RedisServer::start();
    let (node, mut received) = node(&server).await;
    node.provider().add(Prices("one".into())).await.unwrap();
    assert_eq!(received.recv().await, Some(3));
    let record = server.command(&["PING"]); // not a record, so the listener does not get it
    server.command(&["PUBLISH", "dq:{shop:prices}:broadcast", &format!("8 id\n{record}")]);
    until(|| node.health().channels[0].received >= 2).await;
    assert_eq!(node.health().channels[0].missed, 0, "the store has counted no more than 1");
    server.command(&["HSET", "dq:{shop:prices}:meta", "published", "8"]);
    node.provider().add(Prices("nine".into())).await.unwrap();
    assert_eq!(received.recv().await, Some(4));
    until(|| node.health().channels[0].missed >= 6).await;
    assert_eq!(node.health().channels[0].missed, 6, "2 to 7");
    node.shutdown(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broadcasts_continue_after_every_connection_broke() {
    let server = RedisServer::start();
    let (node, mut received) = node(&server).await;
    for length in 0..3 {
        node.provider().add(Prices("x".repeat(length))).await.unwrap();
        assert_eq!(received.recv().await, Some(length));
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        // A broadcast reaches only subscribed nodes, so wait until the node is subscribed again.
        until(|| server.command(&["PUBLISH", "dq:{shop:prices}:broadcast", "no line feed"]) == ":1").await;
    }
    node.shutdown(Duration::from_secs(1)).await;
}
