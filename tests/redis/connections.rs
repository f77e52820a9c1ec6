//! Connections that break, slow answers and foreign messages.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dq::job::NodeId;
use dq::store::redis::RedisStore;
use dq::store::step::{Scan, Wake};
use dq::store::{RequestKind, Signal, Store};
use dq_tests::redis::RedisServer;
use futures_util::FutureExt;

use super::scripted::{self, Started};
use super::topic::{Topic, interest, job};

#[tokio::test]
async fn a_subscription_that_was_killed_is_restored_and_reports_it() {
    let (server, topic) = Topic::served();
    let mut signals = topic.store.signals(&topic.key, interest()).await.unwrap();
    topic.add(vec![job("a")]).await;
    assert_eq!(signals.next().await, Some(Signal::Due(None)));
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(signals.next().await, Some(Signal::Resubscribed));
    server.command(&["PUBLISH", "dq:{shop:t}:wake:n", "command cancel a b"]);
    let id = super::topic::id("a b");
    assert_eq!(signals.next().await, Some(Signal::Command(dq::store::CommandKind::Cancel, id)));
}

#[tokio::test]
async fn a_subscription_survives_a_restart_of_the_server() {
    let mut server = RedisServer::start();
    let topic = Topic::on(&server.url());
    let mut signals = topic.store.signals(&topic.key, interest()).await.unwrap();
    server.restart();
    assert_eq!(signals.next().await, Some(Signal::Resubscribed));
    server.command(&["PUBLISH", "dq:{shop:t}:broadcast", "1 id\nrecord"]);
    assert!(matches!(signals.next().await, Some(Signal::Broadcast(publish)) if publish.id.as_str() == "id"));
}

#[tokio::test]
async fn messages_that_dq_did_not_publish_are_ignored() {
    let (server, topic) = Topic::served();
    let mut signals = topic.store.signals(&topic.key, interest()).await.unwrap();
    for message in ["", "rubbish", "command", "command delete", "command what a", "due\n"] {
        server.command(&["PUBLISH", "dq:{shop:t}:wake", message]);
    }
    server.command(&["PUBLISH", "dq:{shop:t}:broadcast", "no line feed"]);
    server.command(&["PUBLISH", "dq:{shop:t}:wake", "broadcast"]);
    assert_eq!(signals.next().await, Some(Signal::BroadcastDue));
}

#[tokio::test]
async fn a_link_over_a_connection_that_broke_fails_until_it_is_replaced() {
    let (server, topic) = Topic::served();
    topic.add(vec![job("a")]).await;
    topic.reconcile().await;
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    for _ in 0..2 {
        let error = topic.link.step(Wake).await.unwrap_err();
        assert!(error.is_outage() && error.ends_connection(), "{error:?}");
    }
    let new = topic.store.link(&topic.key, &NodeId::new("n"));
    new.step(Wake).await.expect("a new link has a new connection");
}

#[tokio::test]
async fn a_producer_goes_on_over_a_new_connection() {
    let (server, topic) = Topic::served();
    topic.add(vec![job("a")]).await;
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    // The first one may be sent before the client knows that the connection is gone.
    if let Err(error) = topic.try_add(vec![job("b")]).await {
        assert!(error.is_outage() && error.ends_connection(), "{error:?}");
    }
    topic.add(vec![job("c")]).await;
}

/// The caller decides how long to wait, with `call_timeout`, which may be minutes.
#[tokio::test]
async fn a_slow_answer_is_awaited() {
    let (server, topic) = Topic::served();
    topic.add(vec![job("a")]).await;
    assert_eq!(topic.store.counts(&topic.key).await.unwrap().delayed, 1);
    server.command(&["CLIENT", "PAUSE", "10500", "ALL"]);
    let ((), counts) = tokio::join!(topic.add(vec![job("b")]), topic.store.counts(&topic.key));
    assert!(counts.is_ok(), "{counts:?}");
}

#[tokio::test]
async fn the_url_chooses_the_database() {
    let server = RedisServer::start();
    let topic = Topic::on(&format!("{}3", server.url()));
    topic.add(vec![job("a")]).await;
    assert_eq!(server.command(&["DBSIZE"]), ":0");
    let Topic { store, key, .. } = &topic;
    assert_eq!(store.topics(&key.app).await.unwrap(), std::slice::from_ref(&key.topic));
    assert!(server.command(&["INFO", "keyspace"]).contains("db3:"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_return_after_the_server_refused_to_renew_them() {
    let Started { url, connections, .. } = scripted::start(scripted::Behaviour::BusyAtResubscription);
    let (store, key) = (RedisStore::new(&url).unwrap(), super::topic::key("t"));
    let mut signals = store.signals(&key, interest()).await.unwrap();
    let interrupted = signals.next().await;
    assert!(matches!(&interrupted, Some(Signal::Interrupted(reason)) if reason.contains("BUSY")), "{interrupted:?}");
    assert_eq!(signals.next().await, Some(Signal::Resubscribed));
    assert_eq!(connections.load(SeqCst), 3, "the connection that was refused is dropped");
}

/// A node reads one answer after another, so it must not take those for late that are already there.
#[tokio::test]
async fn an_answer_that_is_there_is_not_late() {
    let (_server, topic) = Topic::served();
    topic.add(vec![job("a")]).await;
    let unread = topic.link.ask(Scan.into());
    topic.link.step(Scan).await.unwrap(); // behind it on the same connection
    assert_eq!(topic.link.silent_for(RequestKind::Scan), Some(Duration::ZERO));
    assert!(unread.now_or_never().is_some_and(|answer| answer.is_ok()));
}
