//! A key of a wrong type when a node starts: its topic waits and reports it, and the others run (rule 1).

use std::time::Duration;

use dq::context::{Condition, Problem};
use dq::prelude::*;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::topic::factory;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "spoilt")]
struct Spoilt;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "whole")]
struct Whole;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "prices", deliver = "broadcast")]
struct Prices;

#[delay_listener(register = false)]
async fn spoilt(_job: Job<Spoilt>, ran: &UnboundedSender<&'static str>) -> Result<(), JobError> {
    Ok(ran.send("spoilt")?)
}

#[delay_listener(register = false)]
async fn whole(_job: Job<Whole>, ran: &UnboundedSender<&'static str>) -> Result<(), JobError> {
    Ok(ran.send("whole")?)
}

#[broadcast_listener(channels = ["prices"], register = false)]
struct PricesListener(UnboundedSender<&'static str>);

impl BroadcastListener for PricesListener {
    type Message = Prices;

    async fn on_message(&self, _prices: Broadcast<Prices>) -> Result<(), JobError> {
        Ok(self.0.send("prices")?)
    }
}

/// Returns the conditions of both topics, by name, and of the channel.
fn conditions(node: &Context) -> [Condition; 3] {
    let health = node.health();
    let topics = health.topics.into_iter().map(|topic| topic.condition);
    let all: Vec<_> = topics.chain(health.channels.into_iter().map(|channel| channel.condition)).collect();
    all.try_into().unwrap()
}

fn is_stopped(condition: &Condition, key: &str) -> bool {
    let text = format!("key `{key}` has the wrong type: expected zset; rename or delete it, dq did not create it");
    *condition == Condition::Stopped(text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_with_a_key_of_a_wrong_type_waits_until_it_is_gone_and_the_others_run() {
    let server = RedisServer::start();
    let keys = ["dq:{shop:spoilt}:dead", "dq:{shop:prices}:broadcasts"];
    for key in keys {
        server.command(&["SET", key, "mine"]);
    }
    let (ran, mut received) = unbounded_channel();
    let factory =
        factory(&server.url()).listener::<spoilt>().listener::<whole>().broadcast_listener::<PricesListener>();
    let node = factory.provide(ran).start().await.unwrap();
    let [first, _, channel] = conditions(&node);
    assert!(is_stopped(&first, keys[0]) && is_stopped(&channel, keys[1]), "{first:?} {channel:?}");
    node.provider().add(Whole).await.unwrap();
    assert_eq!(received.recv().await, Some("whole"));
    assert!(!node.health().ready && is_stopped(&conditions(&node)[0], keys[0]));

    for key in keys {
        server.command(&["DEL", key]);
    }
    node.ready().await;
    node.provider().add(Spoilt).await.unwrap();
    assert_eq!(received.recv().await, Some("spoilt"));
    node.provider().add(Prices).await.unwrap();
    assert_eq!(received.recv().await, Some("prices"));
    node.shutdown(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_stopped_topic_shuts_down_at_once() {
    let server = RedisServer::start();
    server.command(&["SET", "dq:{shop:spoilt}:jobs", "mine"]);
    let (ran, _received) = unbounded_channel::<&str>();
    let node = factory(&server.url()).listener::<spoilt>().listener::<whole>().provide(ran).start().await.unwrap();
    let stopped = node.shutdown(Duration::ZERO).await;
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
}

#[tokio::test]
async fn a_node_whose_topics_all_fail_to_open_does_not_start() {
    let server = RedisServer::start();
    server.command(&["SET", "dq:{shop:spoilt}:jobs", "mine"]);
    let (ran, _received) = unbounded_channel::<&str>();
    let Err(dq::Error::Start(error)) = factory(&server.url()).listener::<spoilt>().provide(ran).start().await else {
        panic!("no topic of the node can run");
    };
    assert!(matches!(error.problems(), [Problem::StoreTopic { topic, .. }] if topic == "spoilt"), "{error}");
    assert!(error.to_string().contains("key `dq:{shop:spoilt}:jobs` has the wrong type"), "{error}");
}

#[tokio::test]
async fn each_topic_is_opened_once() {
    let server = RedisServer::start();
    let (ran, _received) = unbounded_channel::<&str>();
    let node =
        factory(&server.url()).listener::<spoilt>().listener::<whole>().provide(ran.clone()).start().await.unwrap();
    node.shutdown(Duration::ZERO).await;
    // Now the server has cached the scripts.
    let mut monitor = dq_tests::Monitor::start(&server);
    let node = factory(&server.url()).listener::<spoilt>().listener::<whole>().provide(ran).start().await.unwrap();
    server.command(&["ECHO", "started"]);
    let seen = monitor.until("started");
    let opens = |topic: &str| {
        let keys = format!(
            "\"dq:{{shop:{topic}}}:jobs\" \"dq:{{shop:{topic}}}:delayed\" \"dq:{{shop:{topic}}}:unacked\" \"dq:{{shop:{topic}}}:dead\" \"dq:{{shop:{topic}}}:done\" \"dq:{{shop:{topic}}}:broadcasts\" \"dq:{{shop:{topic}}}:broadcast-jobs\" \"dq:{{shop:{topic}}}:leases\""
        );
        seen.iter().filter(|line| line.contains(&keys)).count()
    };
    assert_eq!((opens("spoilt"), opens("whole")), (1, 1), "{seen:#?}");
    node.shutdown(Duration::ZERO).await;
}
