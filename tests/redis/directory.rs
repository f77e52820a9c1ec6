//! The directory of topics: a start with very many names, what it forgets, and how a topic enters it again.

use std::time::{Duration, Instant};

use dq::prelude::*;
use dq::store::Store;
use dq::store::step::Change;
use dq_tests::Proxy;
use dq_tests::redis::{RedisServer, ask};
use serde::{Deserialize, Serialize};

use super::topic::{Topic, factory, job, until};

const DIRECTORY: &str = "dq:{shop}:topics";
const ENTERED: &str = "dq:{shop}:entered";

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "used", delay = "1h")]
struct Used;

#[delay_listener(register = false)]
async fn use_it(_job: Job<Used>) -> Result<(), JobError> {
    Ok(())
}

/// A server whose directory has this many names of topics that hold nothing.
fn with_names(count: usize) -> RedisServer {
    let server = RedisServer::start();
    let mut stream = server.connect();
    let names: Vec<_> = (0..count).map(|number| format!("tenant-{number}")).collect();
    for names in names.chunks(1_000) {
        let mut words = vec!["ZADD", DIRECTORY];
        words.extend(names.iter().flat_map(|name| ["0", name]));
        assert_eq!(ask(&mut stream, &words), format!(":{}", names.len()));
    }
    server
}

fn listed(server: &RedisServer, topic: &str) -> bool {
    server.command(&["ZSCORE", DIRECTORY, topic]) == "0"
}

/// The time is printed, for people: `cargo test -p dq-tests --test redis 20_000 -- --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_beside_20_000_names_takes_few_round_trips() {
    let server = with_names(20_000);
    let proxy = Proxy::slow(&server, Duration::from_millis(1));
    for has_listener in [true, false] {
        let (began, before) = (Instant::now(), proxy.writes());
        let factory = factory(&proxy.url());
        let node = match has_listener {
            true => factory.listener::<use_it>().start().await.unwrap(),
            false => factory.without_listeners().start().await.unwrap(),
        };
        let (took, writes) = (began.elapsed(), proxy.writes() - before);
        println!("listener: {has_listener}: {took:?}, {writes} writes");
        assert!((1..250).contains(&writes), "{writes} writes at the start");
        // On a slow machine the start gives its listing up, and a later one forgets the rest.
        let later = Topic::on(&server.url());
        while has_listener && server.command(&["EXISTS", DIRECTORY]) != ":0" {
            later.store.topics(&later.key.app).await.unwrap();
        }
        node.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn the_directory_forgets_a_topic_that_holds_nothing_and_keeps_the_others() {
    let server = with_names(1_500);
    let topic = Topic::named(&server.url(), "full");
    topic.add(vec![job("a")]).await;
    let broadcast = Topic::named(&server.url(), "broadcast");
    broadcast.add(vec![dq::store::NewJob { deliver: dq::job::Delivery::Broadcast, ..job("b") }]).await;
    let names = topic.store.topics(&topic.key.app).await.unwrap();
    assert_eq!(names.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["broadcast", "full"]);
    until(|| server.command(&["ZCARD", DIRECTORY]) == ":2").await;
    assert!(listed(&server, "full") && listed(&server, "broadcast"));
    assert_eq!(server.command(&["HLEN", ENTERED]), ":2");
}

/// An add may come between the look at the topic and the script that forgets it.
#[tokio::test]
async fn a_topic_that_was_entered_since_stays_in_the_directory() {
    let (server, topic) = Topic::entered().await;
    topic.add(vec![job("a")]).await;
    let claims = topic.claims().await;
    topic.try_settle(&claims, Change::Ack).await.unwrap();
    let lists = async || topic.store.topics(&topic.key.app).await.unwrap();
    assert!(lists().await.is_empty() && listed(&server, "t"), "it was entered just now");
    let now: u64 = server.command(&["HGET", ENTERED, "t"]).parse().unwrap();
    server.command(&["HSET", ENTERED, "t", &(now - 110).to_string()]);
    assert!(lists().await.is_empty() && listed(&server, "t"), "it was entered less than two minutes ago");
    server.command(&["HSET", ENTERED, "t", &(now - 121).to_string()]);
    assert!(lists().await.is_empty() && !listed(&server, "t"));
}

#[tokio::test]
async fn a_topic_is_listed_once_its_add_was_answered() {
    let (server, topic) = Topic::entered().await;
    // An entry that the server refuses does not fail the add, and is not tried with each one.
    server.command(&["SET", DIRECTORY, "mine"]);
    topic.add(vec![job("a")]).await;
    server.command(&["DEL", DIRECTORY]);
    topic.add(vec![job("b")]).await;
    assert!(!listed(&server, "t"), "its entry is due in a minute");
    let another = Topic::on(&server.url());
    another.add(vec![job("c")]).await;
    assert!(listed(&server, "t"));
    assert_eq!(topic.store.topics(&topic.key.app).await.unwrap(), std::slice::from_ref(&topic.key.topic));
}

#[tokio::test]
async fn a_directory_that_cannot_be_read_keeps_no_node_from_starting() {
    let server = RedisServer::start();
    server.command(&["SET", DIRECTORY, "mine"]);
    let factory = factory(&server.url());
    let node = factory.listener::<use_it>().start().await.unwrap();
    node.provider().add(Used).await.unwrap();
    node.shutdown(Duration::ZERO).await;
}
