//! Follow-ups whose topic is away for a time, or whose server fails over apart.

use std::time::{Duration, Instant};

use dq::context::Context;
use dq::prelude::*;
use dq::store::{HistorySetting, Limit, LimitKind, Store};
use dq_tests::redis::{ClusterServers, RedisServer};
use serde::{Deserialize, Serialize};

use super::topic::{Topic, factory, until};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "first")]
pub struct First(pub u32);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "second")]
struct Second(u32);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "third")]
struct Third(u32);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "next")]
struct Start(u32);

#[delay_listener(register = false)]
async fn start(job: Job<Start>, channel: Channel) -> Result<Decided, JobError> {
    Ok(channel.ack().then(|next| _ = next.add(Third(job.0)))?)
}

#[delay_listener(register = false)]
pub async fn first(job: Job<First>, channel: Channel) -> Result<Decided, JobError> {
    Ok(channel.ack().then(|next| _ = next.add(Second(job.0)))?)
}

/// The keys of the second topic go back to what they were before the first follow-up, as those on a server of their own do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follow_ups_arrive_after_one_that_a_failover_of_their_topic_took_back() {
    let server = RedisServer::start();
    let factory = factory(&server.url());
    let node = factory.listener::<first>().start().await.unwrap();
    let has_come = || server.command(&["HLEN", "dq:{shop:second}:jobs"]) == ":1";
    let is_removed = || server.command(&["EXISTS", "dq:{shop:first}:outbox"]) == ":0";
    for number in [1, 2] {
        node.provider().add(First(number)).await.unwrap();
        until(|| has_come() && is_removed()).await;
        for key in ["jobs", "delayed", "calls:outbox:first"] {
            server.command(&["DEL", &format!("dq:{{shop:second}}:{key}")]);
        }
    }
    node.shutdown(Duration::ZERO).await;
}

/// How many follow-ups wait for a topic that is away.
const WAIT: u32 = 100;

/// What makes an add to the topic need more keys than most.
#[derive(Debug, Clone, Copy)]
enum Has {
    History,
    Limit,
    Groups,
    Members,
}

impl Has {
    async fn set(self, server: &RedisServer) {
        let provider = factory(&server.url()).connect().await.unwrap();
        let third = provider.topic("third").unwrap();
        match self {
            Self::History => keep_histories(&server.url()).await,
            Self::Limit => drop(third.set_limit(Limit::MaxWaiting(10_000)).reason("test").await.unwrap()),
            Self::Groups => drop(third.add_json(serde_json::json!(0)).group("g").await.unwrap()),
            Self::Members => drop(server.command(&["HSET", "dq:{shop:third}:meta", "members", "1"])),
        }
    }
}

async fn keep_histories(url: &str) {
    let topic = Topic::named(url, "third");
    let setting = HistorySetting { moves: 5, after: Duration::from_secs(60) };
    topic.store.keep_history(&topic.key, setting).await.unwrap();
}

/// A node whose runs leave follow-ups for the topic `third`.
async fn node(url: &str) -> Context {
    factory(url).listener::<start>().start().await.unwrap()
}

/// Leaves follow-ups while their topic takes none, until `is_back` has ended that. Returns how long after it the last one had arrived.
async fn arrive_after(node: &Context, waits: impl Fn() -> bool, is_back: impl AsyncFnOnce()) -> Duration {
    node.provider().add_many((0..WAIT).map(Start)).await.unwrap().all().unwrap();
    until(|| node.health().topics[0].follow_ups == WAIT as usize).await;
    assert!(waits());
    is_back().await;
    let begin = Instant::now();
    until(|| !waits()).await;
    begin.elapsed()
}

/// Waits until the target has refused follow-ups twice more, so that it rests for long.
async fn is_refused(server: &RedisServer) {
    let rounds = || {
        let told = server.command(&["INFO", "errorstats"]);
        let counts = told.lines().filter_map(|line| line.strip_prefix("errorstat_DQ")?.split("count=").nth(1));
        counts.map(|count| count.trim().parse::<u32>().unwrap()).sum::<u32>()
    };
    let before = rounds();
    until(|| rounds() >= before + 2).await;
}

/// On an idle machine it is less than 2 s; each entry that came alone would take a quarter of a second at least.
fn is_soon(took: Duration, what: impl std::fmt::Debug) {
    println!("{what:?}: {took:?}");
    assert!(took < Duration::from_secs(8), "{what:?}: {took:?}");
}

fn waits_on(server: &RedisServer) -> bool {
    server.command(&["EXISTS", "dq:{shop:next}:outbox"]) == ":1"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follow_ups_arrive_soon_after_their_topic_has_drained_whatever_it_has() {
    for has in [Has::History, Has::Limit, Has::Groups, Has::Members] {
        let server = RedisServer::start();
        has.set(&server).await;
        let node = node(&server.url()).await;
        let third = node.provider().topic("third").unwrap();
        third.drain().reason("test").await.unwrap();
        let is_back = async || {
            is_refused(&server).await;
            third.undrain().await.unwrap();
        };
        is_soon(arrive_after(&node, || waits_on(&server), is_back).await, has);
        node.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follow_ups_arrive_soon_after_their_topic_was_full() {
    let server = RedisServer::start();
    let node = node(&server.url()).await;
    let third = node.provider().topic("third").unwrap();
    third.add_json(serde_json::json!(0)).await.unwrap();
    third.set_limit(Limit::MaxWaiting(1)).reason("test").await.unwrap();
    let is_back = async || {
        is_refused(&server).await;
        third.clear_limit(LimitKind::MaxWaiting).await.unwrap();
    };
    is_soon(arrive_after(&node, || waits_on(&server), is_back).await, "full");
    node.shutdown(Duration::ZERO).await;
}

/// The server stops while entries wait, and continues four seconds later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follow_ups_arrive_soon_after_an_outage() {
    let server = RedisServer::start();
    keep_histories(&server.url()).await;
    let node = node(&server.url()).await;
    let third = node.provider().topic("third").unwrap();
    third.drain().reason("test").await.unwrap();
    let is_back = async || {
        third.undrain().await.unwrap();
        server.pause();
        node.provider().add(Start(WAIT)).within("4s").await.unwrap_err();
        server.go_on();
    };
    is_soon(arrive_after(&node, || waits_on(&server), is_back).await, "outage");
    node.shutdown(Duration::ZERO).await;
}

/// The master of the target is killed while entries wait, and its replica takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follow_ups_arrive_soon_after_the_master_of_their_topic_has_changed() {
    const SOURCE: &str = "dq:{shop:next}:outbox";
    const TARGET: &str = "dq:{shop:third}:calls:outbox:next";
    let mut cluster = ClusterServers::start_with_replicas();
    keep_histories(&cluster.url()).await;
    let node = node(&cluster.url()).await;
    let third = node.provider().topic("third").unwrap();
    third.drain().reason("test").await.unwrap();
    let (source, target) = (cluster.owner(SOURCE), cluster.owner(TARGET));
    assert_ne!(source, target, "each has a master of its own");
    node.provider().add_many((0..WAIT).map(Start)).await.unwrap().all().unwrap();
    until(|| node.health().topics[0].follow_ups == WAIT as usize).await;
    cluster.replicate(target, TARGET);
    cluster.servers[target].kill();
    until(|| cluster.serving(TARGET).is_some()).await;
    while third.undrain().await.is_err() {}
    let begin = Instant::now();
    let waits = || cluster.servers[source].command(&["EXISTS", SOURCE]) == ":1";
    until(|| !waits()).await;
    is_soon(begin.elapsed(), "failover");
    node.shutdown(Duration::ZERO).await;
}
