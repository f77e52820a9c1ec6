//! Jobs whose place another program removed (rule 2): an add does not guess about them, and the audit puts them back.

use std::sync::Arc;
use std::time::Duration;

use dq::environment::TokioClock;
use dq::job::{Cause, JobId, NodeId, State};
use dq::prelude::*;
use dq::store::step::{Audit, Change, DEFAULT_BYTES, Recover, Recovered, Renew, Scan};
use dq::store::{AddOutcome, BatchAnswer, CommandKind, Due, NewJob, OnDuplicate, Store};
use dq::testing::Harness;
use dq_tests::PacedStore;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};

use super::topic::{LEASE, Topic, id, job};

/// Returns a topic with the jobs `a`, `b` and `c`, of which `b` has lost its place.
async fn lost() -> (RedisServer, Topic) {
    let (server, topic) = Topic::entered().await;
    topic.add(vec![job("a"), job("b"), job("c")]).await;
    topic.ready().await;
    server.command(&["ZREM", "dq:{shop:t}:delayed", "b"]);
    (server, topic)
}

async fn outcome_of(topic: &Topic, job: NewJob) -> AddOutcome {
    match topic.try_add(vec![job]).await.unwrap() {
        BatchAnswer::Done(mut outcomes) => outcomes.remove(0),
        BatchAnswer::Late => panic!("the call numbers increase"),
    }
}

async fn audited(topic: &Topic, limit: usize) -> Vec<JobId> {
    let (mut lost, mut after) = (Vec::new(), None);
    loop {
        let page = topic.link.step(Audit { after, limit, bytes: DEFAULT_BYTES }).await.unwrap();
        lost.extend(page.lost);
        after = page.next;
        if after.is_none() {
            return lost;
        }
    }
}

async fn recover(topic: &Topic, ids: &[&str]) -> Recovered {
    let ids = ids.iter().map(|name| id(name)).collect();
    topic.link.step(Recover { ids, bytes: DEFAULT_BYTES }).await.unwrap()
}

async fn state_of(topic: &Topic, name: &str) -> Option<State> {
    let found = topic.store.get(&topic.key, &[id(name)]).await.unwrap().remove(0);
    found.map(|job| job.place.state())
}

/// Checks that every record has a place.
async fn is_whole(topic: &Topic) {
    let scanned = topic.link.step(Scan).await.unwrap();
    assert_eq!(scanned.records, scanned.places);
}

#[tokio::test]
async fn two_records_of_a_far_job_are_left_to_the_doctor() {
    for record in ["", "another"] {
        let (server, topic) = Topic::entered().await;
        topic.add(vec![NewJob { due: Due::After(Duration::from_secs(7_200)), ..job("far") }]).await;
        let copy = "return redis.call('HSET', KEYS[1], 'far', ARGV[1] ~= '' and ARGV[1] or string.sub(redis.call('HGET', KEYS[2], 'far'), 7))";
        server.command(&["EVAL", copy, "2", "dq:{shop:t}:jobs", "dq:{shop:t}:far-jobs", record]);
        let changes = server.changes();
        assert_eq!(audited(&topic, 10).await, [id("far")]);
        assert_eq!(recover(&topic, &["far"]).await, Recovered { recovered: vec![], examined: 1 });
        assert_eq!(server.changes(), changes);
    }
}

#[tokio::test]
async fn an_add_finds_that_the_id_of_a_lost_job_is_free() {
    for on_duplicate in [OnDuplicate::Reject, OnDuplicate::Keep, OnDuplicate::Replace] {
        let (_server, topic) = lost().await;
        assert_eq!(
            outcome_of(&topic, NewJob { on_duplicate, ..job("b") }).await,
            AddOutcome::Added,
            "{on_duplicate:?}"
        );
        assert_eq!(topic.claims().await.len(), 3, "{on_duplicate:?}");
        is_whole(&topic).await;
    }
}

#[tokio::test]
async fn an_add_leaves_a_job_that_runs_on_any_node() {
    let (_server, topic) = lost().await;
    assert_eq!(topic.claims().await.len(), 2);
    let other = topic.store.link(&topic.key, &NodeId::new("m"));
    topic.add(vec![job("d")]).await;
    topic.ready().await;
    let first = dq::store::step::Reconcile { last_seen: dq::job::Sequence(0), after: None, limit: 1 };
    let dq::store::step::Sequenced::Done(page) = other.step(first).await.unwrap() else {
        panic!("it is the first page")
    };
    other.step(dq::store::step::Transfer::new(page.lease_status.sequence, 9, LEASE)).await.unwrap();
    for (name, wanted) in [("a", AddOutcome::Exists(State::Running)), ("d", AddOutcome::Exists(State::Running))] {
        assert_eq!(outcome_of(&topic, job(name)).await, wanted, "{name}");
    }
    let replacing = |name| NewJob { on_duplicate: OnDuplicate::Replace, ..job(name) };
    assert_eq!(outcome_of(&topic, replacing("d")).await, AddOutcome::ReplacementWaits);
    assert_eq!(outcome_of(&topic, replacing("b")).await, AddOutcome::Added);
}

#[tokio::test]
async fn adds_ask_for_the_nodes_once_and_remember_them() {
    let (server, topic) = lost().await;
    topic.claims().await;
    let added = async |name: &str| {
        server.command(&["CONFIG", "RESETSTAT"]);
        outcome_of(&topic, job(name)).await;
        server.calls()["evalsha"]
    };
    assert_eq!([added("new").await, added("a").await, added("a").await, added("c").await], [1, 2, 1, 1]);
}

#[tokio::test]
async fn a_lost_job_becomes_dead_and_can_be_requeued() {
    let (_server, topic) = lost().await;
    assert_eq!(audited(&topic, 1).await, [id("b")]);
    assert_eq!(recover(&topic, &["a", "b"]).await, Recovered { recovered: vec![id("b")], examined: 2 });
    let found = topic.store.get(&topic.key, &[id("b")]).await.unwrap().remove(0).unwrap();
    assert_eq!((found.place.state(), found.record.metadata().unwrap().cause), (State::Dead, Some(Cause::PlaceLost)));
    is_whole(&topic).await;
    assert_eq!(recover(&topic, &["b"]).await.recovered, [], "it has a place now");
    assert!(topic.command(CommandKind::Requeue, "b").await.changed);
    let claims = topic.claims().await;
    assert_eq!(claims.len(), 3);
    assert!(claims.iter().all(|claim| !claim.record.metadata().unwrap().exhausted), "it runs `on_due`");
}

#[tokio::test]
async fn a_lost_job_that_was_parked_is_parked_again() {
    let (server, topic) = lost().await;
    let claims = topic.claims().await;
    topic.try_settle(&claims[..1], Change::Park).await.unwrap();
    server.command(&["DEL", "dq:{shop:t}:unacked"]);
    let name = claims[0].id.as_str();
    assert_eq!(recover(&topic, &[name]).await.recovered, [id(name)]);
    assert_eq!(state_of(&topic, name).await, Some(State::Unacked));
    let metadata = topic.store.get(&topic.key, &[id(name)]).await.unwrap().remove(0).unwrap().record.metadata();
    assert_eq!(metadata.unwrap().parked_by, Some(claims[0].token.fence), "and an ack may still name its run");
}

#[tokio::test]
async fn pending_commands_of_a_lost_job_take_effect() {
    let (server, topic) = lost().await;
    topic.claims().await;
    assert_eq!(
        outcome_of(&topic, NewJob { on_duplicate: OnDuplicate::Replace, ..job("c") }).await,
        AddOutcome::ReplacementWaits
    );
    topic.command(CommandKind::Delete, "a").await;
    server.command(&["DEL", "dq:{shop:t}:running:n", "dq:{shop:t}:leases"]);
    assert_eq!(
        outcome_of(&topic, job("c")).await,
        AddOutcome::Exists(State::Running),
        "a replacement waits for this id"
    );
    let mut lost = audited(&topic, 10).await;
    lost.sort();
    assert_eq!(lost, [id("a"), id("b"), id("c")]);
    recover(&topic, &["a", "b", "c"]).await;
    assert_eq!(state_of(&topic, "a").await, None, "it was deleted");
    assert_eq!(state_of(&topic, "b").await, Some(State::Dead));
    assert_eq!(state_of(&topic, "c").await, Some(State::Delayed), "it is the replacement");
    is_whole(&topic).await;
}

#[tokio::test]
async fn a_living_node_whose_lease_was_removed_keeps_its_jobs() {
    let (server, topic) = lost().await;
    let claims = topic.claims().await;
    server.command(&["DEL", "dq:{shop:t}:leases"]);
    assert_eq!(audited(&topic, 10).await.len(), 3, "its rows do not count");
    topic.link.step(Renew { last_seen: topic.last_seen(), lease: LEASE }).await.unwrap();
    assert_eq!(recover(&topic, &["a", "b", "c"]).await.recovered, [id("b")]);
    let settled = topic.try_settle(&claims, Change::Ack).await.unwrap();
    assert!(settled.verdicts.iter().all(|verdict| *verdict == dq::store::step::Verdict::Done));
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work")]
struct Work(#[job(id)] u8);

#[delay_listener(register = false)]
async fn work(_job: Job<Work>) -> Result<(), JobError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_node_puts_lost_jobs_back_and_counts_them() {
    let store = PacedStore::start(Arc::new(TokioClock::new()));
    let dq = Harness::start_on(store.clone(), 1, |factory| factory.listener::<work>()).await;
    for n in 0..3 {
        dq.provider().add(Work(n)).after("4m").await.unwrap();
    }
    let delayed = store.keyspace().key(format!("{}:work", dq.provider().app()), "delayed");
    store.keyspace().connect().command(&["ZREM", &delayed, "1"]);
    dq.advance(Duration::from_secs(50)).await;
    assert_eq!(dq.health().topics[0].counters.place_lost, 0);
    dq.advance(Duration::from_secs(35)).await;
    let health = dq.health().topics.remove(0);
    assert_eq!((health.counters.place_lost, health.audit_difference), (0, 1), "the scan has found it");
    dq.advance(Duration::from_secs(215)).await;
    let health = dq.health().topics.remove(0);
    assert_eq!((health.counters.place_lost, health.audit_difference), (1, 0));
    let seen = dq.job::<Work>(1).await.unwrap();
    assert_eq!((seen.state(), seen.details.unwrap().cause), (State::Dead, Some(Cause::PlaceLost)));
    assert!(dq.provider().requeue::<Work>(1).await.unwrap().changed);
    dq.advance(Duration::from_secs(7_200)).await;
    assert!(dq.job::<Work>(1).await.is_none());
    assert_eq!(dq.health().topics[0].counters.acked, 3);
}
