//! The commands that idle nodes send to a server, counted with `MONITOR`.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use dq::environment::TokioClock;
use dq::prelude::*;
use dq::provider::Limit;
use dq::testing::Harness;
use dq_tests::redis::RedisServer;
use dq_tests::{Monitor, PacedStore};

use super::listeners::{One, TOPICS, ten_topics};

const SECOND: Duration = Duration::from_secs(1);

fn factory(server: &RedisServer) -> ContextFactory {
    ContextFactory::new("idle").store(server.url()).without_inventory().variables([("", ""); 0])
}

#[tokio::test(start_paused = true)]
async fn a_node_with_ten_idle_topics_sends_seven_commands_in_ten_seconds_for_hours() {
    const HOURS: u32 = 2;
    let store = PacedStore::start(std::sync::Arc::new(TokioClock::new()));
    let dq = Harness::start_on(store.clone(), 1, ten_topics).await;
    dq.advance(60 * SECOND).await;
    let mut monitor = Monitor::start(store.keyspace().server());
    dq.advance(HOURS * 3600 * SECOND).await;
    store.keyspace().server().command(&["ECHO", "the end"]);
    let seen = monitor.until("the end");
    // A topic sends a transfer each 12 to 15 s.
    let (fewest, most) = (HOURS as usize * 3600 * 10 / 15, HOURS as usize * 3600 * 7 / 10);
    assert!((fewest..=most).contains(&seen.len()), "{} commands in {HOURS} hours: {fewest} to {most}", seen.len());
    assert!(seen.iter().all(|line| line.contains("\"EVALSHA\"")), "{:?}", seen.iter().find(|l| !l.contains("EVALSHA")));
    println!("{} commands in {HOURS} hours of an idle node with ten topics", seen.len());
}

/// Jobs are due in each topic, and none of them may start.
#[tokio::test(start_paused = true)]
async fn a_node_whose_ten_topics_have_spent_their_rate_claims_no_more_often_than_an_idle_one() {
    let store = PacedStore::start(std::sync::Arc::new(TokioClock::new()));
    let dq = Harness::start_on(store.clone(), 1, ten_topics).await;
    for topic in TOPICS {
        let topic = dq.provider().topic(topic).unwrap();
        topic.set_limit(Limit::Rate("1/d".parse().unwrap())).await.unwrap();
        topic.add_many_json((0..100).map(|_| serde_json::Value::Null)).await.unwrap().all().unwrap();
    }
    dq.advance(60 * SECOND).await;
    let waiting: u64 = dq.health().topics.iter().map(|topic| topic.counters.acked).sum();
    assert_eq!(waiting, TOPICS.len() as u64, "one of each topic");
    let mut monitor = Monitor::start(store.keyspace().server());
    dq.advance(3600 * SECOND).await;
    store.keyspace().server().command(&["ECHO", "the end"]);
    let seen = monitor.until("the end");
    let transfers = seen.iter().filter(|line| line.contains(":sequence:") && line.contains(":far\"")).count();
    assert!((3600 * 10 / 15..=3600 * 7 / 10).contains(&transfers), "{transfers} transfers in an hour");
    // A topic that has jobs is also audited once a minute and swept each five minutes.
    let others = seen.len() - transfers;
    assert!(
        (10 * 60..=10 * (60 + 12 + 1)).contains(&others),
        "{others} commands beside {transfers} transfers in an hour"
    );
    println!("{transfers} transfers and {others} other commands in an hour");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_ten_idle_topics_sends_no_more_than_a_command_a_second() {
    let server = RedisServer::start();
    let mut monitor = Monitor::start(&server);
    let dq = ten_topics(factory(&server)).start().await.unwrap();
    dq.ready().await;
    monitor.until_silent_for(SECOND);
    let seen = monitor.within(20 * SECOND);
    // A topic sends a transfer every 12 to 15 s. What it does every one to five minutes may or may not fall into this time.
    let is_transfer = |line: &&String| line.contains(":sequence:") && line.contains(":far\"");
    let transfers = seen.iter().filter(is_transfer).count();
    assert!((1..=20).contains(&transfers), "{transfers} transfers in 20 s: {seen:#?}");
    assert!(seen.len() - transfers <= 20, "{} commands in 20 s: {seen:#?}", seen.len());
    println!("{} commands in 20 s of an idle node with ten topics", seen.len());
    dq.shutdown(SECOND).await;
}

#[delay_listener(register = false)]
async fn report(_job: Job<One>, ran: &Sender<()>) -> Result<(), JobError> {
    Ok(ran.send(())?)
}

/// The fallback is an hour, so that no command comes from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_due_job_wakes_few_of_fifty_idle_nodes() {
    let server = RedisServer::start();
    let (ran, received) = channel::<()>();
    let mut nodes = Vec::new();
    for _ in 0..50 {
        let node = factory(&server).poll_interval("1h").listener::<report>().provide(ran.clone());
        let node = node.start().await.unwrap();
        node.ready().await;
        nodes.push(node);
    }
    let mut monitor = Monitor::start(&server);
    monitor.until_silent_for(SECOND);
    nodes[7].provider().add(One).after("500ms").await.unwrap();
    received.recv().unwrap();
    let seen = monitor.until_silent_for(SECOND);
    assert!(received.try_recv().is_err(), "the job ran once");
    // Its add, a transfer and a settle at least.
    assert!((3..=10).contains(&seen.len()), "{} commands: {seen:#?}", seen.len());
    println!("{} commands of fifty idle nodes for one job, its add included", seen.len());
    for node in nodes {
        node.shutdown(SECOND).await;
    }
}
