//! `durability = wait(replicas, timeout)` on a primary and its replica: confirmed writes survive a failover.

use std::time::Duration;

use dq::job::{JobId, ProducerId, TopicName};
use dq::prelude::*;
use dq::provider::{CallError, FailureReason};
use dq::store::redis::RedisStore;
use dq::store::{
    AddOutcome, BatchAnswer, CommandKind, Durability, FollowUpBatch, FollowUpBatches, Numbered, OutboxEntry,
    OutboxPosition, Producer, Store, StoreError, relay_of,
};
use dq_tests::redis::{RedisServer, ask};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};

use super::topic::{Topic, generated, id, job};

/// A primary and its replica.
struct Pair {
    primary: RedisServer,
    replica: RedisServer,
}

impl Pair {
    fn start() -> Self {
        let in_memory = ["--save", "", "--appendonly", "no", "--repl-diskless-sync", "no"];
        let primary = RedisServer::start_with(&in_memory);
        let port = primary.port().to_string();
        let replica = RedisServer::start_with(&[&in_memory[..], &["--replicaof", "127.0.0.1", &port]].concat());
        let pair = Self { primary, replica };
        pair.wait_until_joined();
        pair
    }

    /// Waits until the replica has confirmed a write: the primary may call it online up to a second before that.
    fn wait_until_joined(&self) {
        let joined = |line: &str| line.contains("state=online") && !line.contains("offset=0,");
        let mut primary = self.primary.connect();
        while !ask(&mut primary, &["INFO", "replication"]).lines().any(joined) {
            ask(&mut primary, &["SET", "joining", "1"]);
        }
    }

    /// Makes the replica a primary, as a failover does.
    fn promote(&self) {
        assert_eq!(self.replica.command(&["REPLICAOF", "NO", "ONE"]), "+OK");
    }

    /// Returns a topic on the primary whose producer waits for the replica.
    fn topic(&self, timeout: Duration) -> Topic {
        Topic::of(self.store(timeout), "t")
    }

    fn store(&self, timeout: Duration) -> RedisStore {
        let durability = Durability::Wait { replicas: 1, timeout };
        RedisStore::new(&self.primary.url()).unwrap().with_durability(durability)
    }
}

const LONG: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(20);

fn is_unconfirmed(error: &StoreError) -> bool {
    matches!(error, StoreError::NotReplicated { confirmed: 0, wanted: 1, .. })
}

/// Adds batches until the server is gone, and sends the ids that were confirmed.
async fn add_until_it_ends(topic: Topic, confirmed: tokio::sync::watch::Sender<Vec<JobId>>) {
    for batch in 0..u16::MAX / 10 {
        let jobs: Vec<_> = (batch * 10..batch * 10 + 10).map(generated).collect();
        let ids: Vec<_> = jobs.iter().map(|job| job.id.clone()).collect();
        match topic.try_add(jobs).await {
            Ok(answer) => assert_eq!(answer, BatchAnswer::Done(vec![AddOutcome::Added; 10])),
            Err(_) => return,
        }
        confirmed.send_modify(|all| all.extend(ids));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_confirmed_is_lost_when_the_primary_is_killed() {
    for round in 0..3 {
        let mut pair = Pair::start();
        let (confirmed, mut watched) = tokio::sync::watch::channel(Vec::new());
        let adding = tokio::spawn(add_until_it_ends(pair.topic(LONG), confirmed));
        watched.wait_for(|ids| ids.len() >= 100 * (round + 1)).await.unwrap();
        pair.primary.kill();
        adding.await.unwrap();
        pair.promote();
        let ids = watched.borrow().clone();
        let promoted = Topic::on(&pair.replica.url());
        for ids in ids.chunks(1_000) {
            let found = promoted.store.get(&promoted.key, ids).await.unwrap();
            let found = found.iter().flatten().count();
            assert_eq!(found, ids.len(), "round {round}: a confirmed job is lost");
        }
    }
}

#[tokio::test]
async fn a_write_is_confirmed_only_once_the_replica_has_it() {
    let pair = Pair::start();
    pair.topic(LONG).add(vec![job("a")]).await;
    let topic = pair.topic(SHORT);
    pair.promote();
    let add = || topic.producer.add(Numbered { number: 7, items: vec![job("b")] });
    assert!(is_unconfirmed(&add().await.unwrap_err()), "only the primary has it");
    assert!(is_unconfirmed(&add().await.unwrap_err()), "a repeat is not confirmed either");
    let promoted = Topic::on(&pair.replica.url());
    let found = promoted.store.get(&promoted.key, &[id("a"), id("b")]).await.unwrap();
    assert!(found[0].is_some() && found[1].is_none());
    pair.replica.command(&["REPLICAOF", "127.0.0.1", &pair.primary.port().to_string()]);
    let answer = loop {
        match add().await {
            Ok(answer) => break answer,
            Err(error) => assert!(is_unconfirmed(&error), "{error:?}"),
        }
    };
    assert_eq!(answer, BatchAnswer::Done(vec![AddOutcome::Added]), "the same call, executed once");
    assert_eq!(topic.store.counts(&topic.key).await.unwrap().delayed, 2);
}

/// Newer servers confirm only what the connection itself has written, and a new connection has written nothing.
#[tokio::test]
async fn a_repeat_on_a_new_connection_is_not_confirmed_either() {
    let pair = Pair::start();
    pair.topic(LONG).add(vec![job("a")]).await;
    let topic = pair.topic(SHORT);
    pair.replica.pause();
    let add = |producer: &dyn Producer| producer.add(Numbered { number: 7, items: vec![job("b")] });
    assert!(is_unconfirmed(&add(&*topic.producer).await.unwrap_err()));
    let again = topic.store.producer(&topic.key, &ProducerId::new("p"));
    assert!(is_unconfirmed(&add(&*again).await.unwrap_err()));
    pair.replica.go_on();
    while add(&*again).await.is_err() {}
}

/// Another node may have sent it before, without an answer.
#[tokio::test]
async fn an_entry_that_comes_again_waits_for_the_replicas() {
    let pair = Pair::start();
    pair.topic(LONG).add(vec![job("a")]).await;
    let (topic, again) = (pair.topic(SHORT), pair.topic(SHORT));
    let relay = relay_of(&TopicName::new("source").unwrap());
    let entry = |position, after| {
        let (mut follow_ups, target) = (FollowUpBatches::default(), topic.key.topic.clone());
        follow_ups.push(target.clone(), &FollowUpBatch::Add(vec![job(&format!("after-{position}"))]));
        let [position, after] = [position, after].map(OutboxPosition::clock);
        OutboxEntry { target, position, after, batch: follow_ups.parts()[0].1.clone() }
    };
    pair.replica.pause();
    let first = topic.store.producer(&topic.key, &relay);
    for entry in [entry(5, 0), entry(7, 5)] {
        assert!(is_unconfirmed(&first.relay(entry).await.unwrap_err()));
    }
    let second = again.store.producer(&again.key, &relay);
    for position in [5, 7] {
        assert!(is_unconfirmed(&second.relay(entry(position, 0)).await.unwrap_err()));
    }
    pair.replica.go_on();
    let answer = loop {
        match second.relay(entry(5, 0)).await {
            Ok(answer) => break answer,
            Err(error) => assert!(is_unconfirmed(&error), "{error:?}"),
        }
    };
    assert_eq!(answer, BatchAnswer::Late);
}

#[tokio::test]
async fn commands_wait_for_the_replica_as_adds_do() {
    let pair = Pair::start();
    let topic = pair.topic(LONG);
    topic.add(vec![job("a")]).await;
    assert!(topic.command(CommandKind::Delete, "a").await.changed);
    pair.promote();
    let promoted = Topic::on(&pair.replica.url());
    assert!(promoted.store.get(&promoted.key, &[id("a")]).await.unwrap()[0].is_none());
}

#[tokio::test]
async fn only_the_waiting_producer_is_delayed() {
    let pair = Pair::start();
    let topic = pair.topic(LONG);
    topic.reconcile().await;
    topic.add(vec![job("a")]).await;
    pair.replica.pause();
    let mut add = Box::pin(topic.try_add(vec![job("b")]));
    // The store has the job as soon as the step is executed, while its caller still waits for the answer.
    while topic.store.counts(&topic.key).await.unwrap().delayed < 2 {
        assert!((&mut add).now_or_never().is_none());
    }
    assert_eq!(topic.claims().await.len(), 2);
    assert!((&mut add).now_or_never().is_none());
    pair.replica.go_on();
    assert_eq!(add.await.unwrap(), BatchAnswer::Done(vec![AddOutcome::Added]));
}

#[tokio::test]
async fn a_batch_costs_one_wait_and_none_without_durability() {
    let pair = Pair::start();
    let waits = || pair.primary.calls().get("wait").copied().unwrap_or_default();
    let joined = waits();
    let plain = Topic::named(&pair.primary.url(), "plain");
    plain.reconcile().await;
    plain.add((0..100).map(generated).collect()).await;
    plain.command(CommandKind::Delete, "nobody").await;
    assert_eq!(waits(), joined);
    let topic = pair.topic(LONG);
    topic.reconcile().await;
    topic.add((100..200).map(generated).collect()).await;
    topic.add((200..300).map(generated).collect()).await;
    topic.command(CommandKind::Delete, "nobody").await;
    assert_eq!(waits(), joined + 3);
    let claims = topic.claims().await;
    topic.try_settle(&claims, dq::store::step::Change::Ack).await.unwrap();
    assert_eq!(waits(), joined + 3, "nodes do not wait for replicas");
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order", delay = "1h")]
struct Order {
    #[job(id)]
    n: u64,
}

#[tokio::test]
async fn a_caller_learns_within_call_total_that_no_replica_has_the_job() {
    let pair = Pair::start();
    let variables = [
        ("DQ_DURABILITY", "wait(1, 50ms)"),
        ("DQ_CALL_TIMEOUT", "500ms"),
        ("DQ_CALL_DEADLINE", "3s"),
        ("DQ_HEARTBEAT_INTERVAL", "1s"),
    ];
    let factory = ContextFactory::new("shop").store(pair.primary.url()).variables(variables).without_listeners();
    let context = factory.start().await.unwrap();
    let jobs = context.provider();
    jobs.add(Order { n: 1 }).await.unwrap();
    pair.replica.pause();
    // The replica resumes only after this, so a caller that waited longer than `call_deadline` would wait forever.
    let error = jobs.add(Order { n: 2 }).await.unwrap_err();
    let CallError::Unknown { reason: FailureReason::Store(said), .. } = &error else { panic!("{error:?}") };
    assert!(is_unconfirmed(said), "{said:?}");
    assert!(
        error
            .to_string()
            .ends_with("the store has done add, but 0 of 1 replicas confirmed it within 50ms: a failover may undo it"),
        "{error}"
    );
    let error = jobs.delete::<Order>(1).await.unwrap_err();
    assert!(matches!(&error, CallError::Unknown { reason: FailureReason::Store(said), .. } if is_unconfirmed(said)));
    pair.replica.go_on();
    _ = jobs.add(Order { n: 2 }).keep_existing().await.unwrap();
    assert!(jobs.get::<Order>(1).await.unwrap().is_none());
}
