//! A key of a wrong type when a node starts: its topic stands still and says so, the others run (PROTOCOL.md rule 1).

use std::time::Duration;

use dq::context::{Condition, Problem};
use dq::prelude::*;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

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
async fn spoilt(_job: Job<Spoilt>, told: &UnboundedSender<&'static str>) -> Result<(), JobError> {
    Ok(told.send("spoilt")?)
}

#[delay_listener(register = false)]
async fn whole(_job: Job<Whole>, told: &UnboundedSender<&'static str>) -> Result<(), JobError> {
    Ok(told.send("whole")?)
}

#[broadcast_listener(channels = ["prices"], register = false)]
struct Receive(UnboundedSender<&'static str>);

impl BroadcastListener for Receive {
    type Message = Prices;

    async fn on_message(&self, _prices: Broadcast<Prices>) -> Result<(), JobError> {
        Ok(self.0.send("prices")?)
    }
}

fn factory(server: &RedisServer) -> ContextFactory {
    ContextFactory::new("shop").store(server.url()).variables([("", ""); 0]).without_inventory()
}

/// Conditions by name: those of the topics, then that of the channel.
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
async fn one_topic_stands_still_until_its_key_is_gone_and_the_others_run() {
    let server = RedisServer::start();
    let keys = ["dq:{shop:spoilt}:dead", "dq:{shop:prices}:broadcasts"];
    for key in keys {
        server.command(&["SET", key, "mine"]);
    }
    let (told, mut last_seen) = unbounded_channel();
    let factory = factory(&server).listener::<spoilt>().listener::<whole>().broadcast_listener::<Receive>();
    let node = factory.provide(told).start().await.unwrap();
    let [first, _, channel] = conditions(&node);
    assert!(is_stopped(&first, keys[0]) && is_stopped(&channel, keys[1]), "{first:?} {channel:?}");
    node.provider().add(Whole).await.unwrap();
    assert_eq!(last_seen.recv().await, Some("whole"));
    assert!(!node.health().ready && is_stopped(&conditions(&node)[0], keys[0]));

    for key in keys {
        server.command(&["DEL", key]);
    }
    node.ready().await;
    node.provider().add(Spoilt).await.unwrap();
    assert_eq!(last_seen.recv().await, Some("spoilt"));
    node.provider().add(Prices).await.unwrap();
    assert_eq!(last_seen.recv().await, Some("prices"));
    node.shutdown(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stands_still_in_a_topic_stops_at_once() {
    let server = RedisServer::start();
    server.command(&["SET", "dq:{shop:spoilt}:jobs", "mine"]);
    let (told, _received) = unbounded_channel::<&str>();
    let node = factory(&server).listener::<spoilt>().listener::<whole>().provide(told).start().await.unwrap();
    let stopped = node.shutdown(Duration::ZERO).await;
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
}

#[tokio::test]
async fn a_node_of_which_no_topic_could_run_does_not_start() {
    let server = RedisServer::start();
    server.command(&["SET", "dq:{shop:spoilt}:jobs", "mine"]);
    let (told, _received) = unbounded_channel::<&str>();
    let Err(dq::Error::Start(error)) = factory(&server).listener::<spoilt>().provide(told).start().await else {
        panic!("nothing of it could run");
    };
    assert!(matches!(error.problems(), [Problem::StoreTopic { topic, .. }] if topic == "spoilt"), "{error}");
    assert!(error.to_string().contains("key `dq:{shop:spoilt}:jobs` has the wrong type"), "{error}");
}

#[tokio::test]
async fn each_topic_is_opened_once() {
    let server = RedisServer::start();
    let (told, _received) = unbounded_channel::<&str>();
    let node = factory(&server).listener::<spoilt>().listener::<whole>().provide(told.clone()).start().await.unwrap();
    node.shutdown(Duration::ZERO).await;
    // Now the server knows the scripts.
    let mut monitor = dq_tests::Monitor::start(&server);
    let node = factory(&server).listener::<spoilt>().listener::<whole>().provide(told).start().await.unwrap();
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
