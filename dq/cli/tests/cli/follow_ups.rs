//! Follow-ups that have not arrived move with their app, each once.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use dq::job::{Codec, JobId, Metadata, NodeId, ProducerId, Record, Sequence, TopicKey, TopicName, limits};
use dq::store::step::{Change, DEFAULT_BYTES, Ending, Outcome, Reconcile, Sequenced, Settle, Transfer};
use dq::store::{
    BatchAnswer, Command, CommandKind, FollowUpBatch, FollowUpBatches, MAX_AHEAD, NewJob, Numbered, Store, relay_of,
};
use dq_cli::failure::Failure;
use dq_cli::import;
use dq_cli::progress::Progress;
use dq_tests::redis::RedisServer;

use crate::round_trip::{exported, imported, key, keyspaces, memory, options};

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
    let transfer = Transfer::new(page.lease_status.sequence, 1, MINUTE);
    let Sequenced::Done(transferred) = node.step(transfer).await.unwrap() else { panic!("the node is up to date") };
    let mut follows = FollowUpBatches::default();
    for (target, name) in follow_ups {
        follows.push(topic(target).topic, &FollowUpBatch::Add(vec![job(name)]));
    }
    let claim = &transferred.claims[0];
    let change = Change::Then(Ending::Ack, Arc::new(follows));
    let outcomes = vec![Outcome { id: claim.id.clone(), token: claim.token, change, metadata: None }];
    let settle = Settle { last_seen: transferred.lease_status.sequence, lease: MINUTE, bytes: DEFAULT_BYTES, outcomes };
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

/// An export with one line of follow-ups of `orders` for `mail`.
fn export_with(position: u64, after: u64, jobs: &[NewJob]) -> String {
    let mut follows = FollowUpBatches::default();
    follows.push(topic("mail").topic, &FollowUpBatch::Add(jobs.to_vec()));
    let batch = BASE64_STANDARD.encode(follows.parts()[0].1.as_bytes());
    let line = format!(
        "{{\"follow_ups\":{{\"topic\":\"orders\",\"target\":\"mail\",\"position\":{position},\"after\":{after},\"batch_base64\":\"{batch}\"}}}}"
    );
    format!("{{\"export\":{{\"format\":1,\"app\":\"shop\"}}}}\n{line}\n{{\"end\":{{\"jobs\":0,\"follow_ups\":1}}}}\n")
}

async fn tried(store: &dyn Store, text: &str, cut_ahead: bool) -> Result<import::Report, Failure> {
    let options = import::Options { cut_ahead, ..options("p") };
    import::import(store, &options, text.as_bytes(), &Progress::hidden()).await
}

#[tokio::test]
async fn an_import_refuses_follow_ups_at_a_position_that_no_clock_reaches_and_the_store_takes_later_ones() {
    for position in [0, limits::POSITION.most, limits::POSITION.last(), i64::MAX as u64, u64::MAX] {
        let store = memory();
        let refused = tried(&*store, &export_with(position, 0, &[job("b")]), false).await;
        assert!(matches!(refused, Err(Failure::Line { line: 2, .. })), "{position}: {refused:?}");
        assert_eq!(store.arrived(&topic("mail"), &key().topic).await.unwrap().at, 0);
        run_with(&*store, &[("mail", "c")]).await;
        let entry = store.follow_ups(&key(), None, 1).await.unwrap().remove(0);
        let answer = store.producer(&topic("mail"), &relay_of(&key().topic)).relay(entry).await.unwrap();
        assert!(matches!(answer, BatchAnswer::Done(_)), "{position}");
    }
    let backwards = tried(&*memory(), &export_with(7, 7, &[job("b")]), false).await;
    assert!(matches!(backwards, Err(Failure::Line { .. })), "{backwards:?}");
}

#[tokio::test]
async fn an_import_names_follow_ups_that_come_too_late_unless_an_earlier_one_brought_them() {
    let store = memory();
    let now = store.counts(&topic("mail")).await.unwrap().clock.as_millis() * 1_000;
    let text = export_with(now, 0, &[job("b")]);
    for try_ in 0..2 {
        let report = tried(&*store, &text, false).await.unwrap();
        assert_eq!((report.follow_ups, &report.late[..]), (1, &[][..]), "{try_}");
    }
    let report = tried(&*store, &export_with(now - 1, 0, &[job("c")]), false).await.unwrap();
    assert!(!has(&*store, "mail", "c").await);
    assert_eq!((report.follow_ups, report.late.len()), (0, 1));
    let says = format!(
        "of 1 outcome of topic `orders` did nothing: topic `mail` has had later ones from it, up to position {now}"
    );
    assert!(report.to_string().contains(&says), "{report}");
}

#[tokio::test]
async fn an_import_cuts_back_positions_that_are_ahead_of_the_clock_if_it_may_and_reports_it() {
    let store = memory();
    let ahead = store.counts(&topic("mail")).await.unwrap().clock.as_millis() * 1_000 + 400 * MAX_AHEAD;
    let text = export_with(ahead, 0, &[job("b")]);
    let Err(Failure::Line { why, .. }) = tried(&*store, &text, false).await else { panic!("it is ahead") };
    assert!(why.contains(&ahead.to_string()) && why.contains("--cut-ahead"), "{why}");
    let report = tried(&*store, &text, true).await.unwrap();
    assert_eq!((report.cut.numbers, report.follow_ups), (1, 1));
    assert!(report.to_string().contains("1 numbers (fences,"), "{report}");
    assert!(has(&*store, "mail", "b").await);
    let arrived = store.arrived(&topic("mail"), &key().topic).await.unwrap();
    assert!((1..ahead - 399 * MAX_AHEAD).contains(&arrived.at), "{arrived}");
}

#[tokio::test]
async fn an_import_passes_over_a_follow_up_over_a_limit_with_a_warning() {
    let header = |text: &str| Metadata { headers: vec![("h".into(), text.into())], ..Metadata::default() };
    let record = Record::new(&header("a\x1b[2Jb"), Codec::Json, b"7");
    let text = export_with(1_763_000_000_000_000, 0, &[job("b"), NewJob { record, ..job("bad") }, job("c")]);
    let server = RedisServer::start();
    for store in [memory(), keyspaces(&server)()] {
        let report = tried(&*store, &text, false).await.unwrap();
        assert_eq!(report.refused.len(), 1, "{report}");
        assert!(
            report.refused[0].starts_with("job `bad` of topic `mail`: the number of NUL, CR, LF and ESC"),
            "{report}"
        );
        assert!(
            has(&*store, "mail", "b").await && has(&*store, "mail", "c").await && !has(&*store, "mail", "bad").await
        );
    }
}
