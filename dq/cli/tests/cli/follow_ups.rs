//! Follow-ups that have not arrived move with their app, each once.

use std::sync::Arc;
use std::time::Duration;

use dq::job::{Codec, JobId, Metadata, NodeId, ProducerId, Record, Sequence, TopicKey, TopicName};
use dq::store::step::{Change, Ending, Outcome, Reconcile, Sequenced, Settle, Transfer, USUAL_BYTES};
use dq::store::{BatchAnswer, Command, CommandKind, FollowUpBatch, FollowUps, NewJob, Numbered, Store, relay_of};
use dq_tests::redis::RedisServer;

use crate::round_trip::{exported, imported, key, keyspaces, memory};

const MINUTE: Duration = Duration::from_secs(60);

fn topic(name: &str) -> TopicKey {
    TopicKey { topic: TopicName::new(name).unwrap(), ..key() }
}

pub(super) fn job(name: &str) -> NewJob {
    NewJob::new(JobId::new(name).unwrap(), Record::new(&Metadata::default(), Codec::Json, b"7"))
}

fn delete_of(name: &str) -> Command {
    Command::new(CommandKind::Delete, JobId::new(name).unwrap())
}

/// A run of a job of `orders` ends with an ack, and these jobs follow it in these topics.
async fn run_with(store: &dyn Store, follow_ups: &[(&str, &str)]) {
    let node = store.link(&key(), &NodeId::new("n"));
    let add = Numbered { number: 1, items: vec![job("a")] };
    store.producer(&key(), &ProducerId::new("p")).add(add).await.unwrap();
    let reconcile = Reconcile { last_seen: Sequence(0), after: None, limit: 10 };
    let Sequenced::Done(page) = node.step(reconcile).await.unwrap() else { panic!("a first reconcile is let in") };
    let transfer = Transfer {
        last_seen: page.lease_status.sequence,
        limit: 1,
        bytes: USUAL_BYTES,
        lease: MINUTE,
        fallback: MINUTE,
        lookahead: Duration::ZERO,
    };
    let Sequenced::Done(transferred) = node.step(transfer).await.unwrap() else { panic!("the node is up to date") };
    let mut follows = FollowUps::default();
    for (target, name) in follow_ups {
        follows.push(topic(target).topic, &FollowUpBatch::Add(vec![job(name)]));
    }
    let claim = &transferred.claims[0];
    let change = Change::Then(Ending::Ack, Arc::new(follows));
    let outcomes = vec![Outcome { id: claim.id.clone(), token: claim.token, change, metadata: None }];
    let settle = Settle { last_seen: transferred.lease_status.sequence, lease: MINUTE, bytes: USUAL_BYTES, outcomes };
    node.step(settle).await.unwrap();
}

async fn has(store: &dyn Store, target: &str, name: &str) -> bool {
    store.get(&topic(target), &[JobId::new(name).unwrap()]).await.unwrap()[0].is_some()
}

async fn move_follow_ups(old: &dyn Store, new: &dyn Store) {
    run_with(old, &[("mail", "b"), ("mail", "c"), ("bill", "d")]).await;
    let first = old.follow_ups(&key(), Some((&topic("mail").topic, 0)), 1).await.unwrap().remove(0);
    old.producer(&topic("mail"), &relay_of(&key().topic)).relay(first).await.unwrap();
    let text = exported(old, &[]).await;
    assert_eq!(text.matches("{\"job\"").count(), 1, "one has arrived and is a job: {text}");
    assert_eq!(text.matches("{\"follow_ups\"").count(), 2, "{text}");
    assert!(text.ends_with("{\"end\":{\"jobs\":1,\"follow_ups\":2}}\n"), "{text}");
    let report = imported(new, &text, "p").await;
    assert_eq!((report.added, report.follow_ups), (1, 2));
    assert!(report.to_string().ends_with("; and the follow-ups of 2 outcomes"), "{report}");
    assert!(has(new, "mail", "b").await && has(new, "mail", "c").await && has(new, "bill", "d").await);

    let delete = Numbered { number: 1, items: vec![delete_of("c")] };
    let deleted = new.producer(&topic("mail"), &ProducerId::new("d")).command(delete).await.unwrap();
    assert!(matches!(deleted, BatchAnswer::Done(_)));
    let again = imported(new, &text, "q").await;
    assert_eq!((again.added, again.refused.len()), (0, 0));
    assert!(!has(new, "mail", "c").await, "a follow-up arrives once, also if an import is repeated");
    let dead_only = exported(old, &["--state", "dead", "--topic", "orders"]).await;
    assert_eq!(dead_only.matches("{\"follow_ups\"").count(), 0, "they are no DEAD jobs");
}

#[tokio::test]
async fn follow_ups_that_have_not_arrived_move_with_their_app() {
    move_follow_ups(&*memory(), &*memory()).await;
    let server = RedisServer::start();
    let redis = keyspaces(&server);
    move_follow_ups(&*redis(), &*redis()).await;
}

#[tokio::test]
async fn an_import_names_the_follow_ups_that_a_topic_refuses() {
    let (old, new) = (memory(), memory());
    run_with(&*old, &[("mail", "b")]).await;
    let text = exported(&*old, &[]).await;
    let add = Numbered { number: 1, items: vec![job("b")] };
    new.producer(&topic("mail"), &ProducerId::new("p")).add(add).await.unwrap();
    let report = imported(&*new, &text, "p").await;
    assert_eq!(report.refused, ["job `b` of topic `mail`: a job with this id exists, and is delayed"]);
}
