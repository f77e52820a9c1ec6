//! Where connections come from, if the URL does not say all: a prefix, credentials that rotate, and streams of the program's own.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::job::NodeId;
use dq::store::redis::{Login, RedisStore};
use dq::store::step::Change;
use dq::store::{Interest, Signal, Store};
use dq_tests::redis::RedisServer;
use tokio::net::UnixStream;

use super::topic::{Topic, job, key};

/// Adds, claims and acks a job, with a signal on the way.
async fn one_life(topic: &Topic) {
    topic.reconcile().await;
    topic.add(vec![job("a")]).await;
    topic.ready().await;
    let claims = topic.claims().await;
    assert_eq!(claims.len(), 1);
    topic.try_settle(&claims, Change::Ack).await.unwrap();
}

#[tokio::test]
async fn all_keys_and_channels_begin_with_the_prefix_of_the_url() {
    let server = RedisServer::start();
    let ours = Topic::on(&format!("{}/0?prefix=shop-eu", server.url()));
    let theirs = Topic::on(&format!("{}/0?prefix=shop-us", server.url()));
    let mut monitor = dq_tests::Monitor::start(&server);
    let mut signals = ours
        .store
        .signals(&ours.key, Interest { node: Some(NodeId::new("n")), broadcasts: true, moves: false })
        .await
        .unwrap();
    one_life(&ours).await;
    ours.add(vec![job("b")]).await;
    assert!(matches!(signals.next().await.unwrap(), Signal::Due { .. }), "the channels are the same on both ends");
    theirs.reconcile().await;
    assert_eq!(theirs.store.counts(&theirs.key).await.unwrap().delayed, 0);
    assert_eq!(theirs.store.topics(&theirs.key.app).await.unwrap(), []);
    assert_eq!(ours.store.topics(&ours.key.app).await.unwrap(), [key("t").topic]);
    server.command(&["ECHO", "the end"]);
    let seen = monitor.all_until("the end");
    assert!(seen.iter().any(|line| line.contains("\"shop-eu:{shop:t}:wake")), "{seen:#?}");
    let foreign: Vec<_> = seen.iter().filter(|line| line.contains("\"dq:")).collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
    assert_eq!(server.command(&["DBSIZE"]), format!(":{}", keys(&server, "shop-eu:*") + keys(&server, "shop-us:*")));
}

fn keys(server: &RedisServer, pattern: &str) -> usize {
    let count = format!("return #redis.call('KEYS', '{pattern}')");
    server.command(&["EVAL", &count, "0"]).trim_start_matches(':').parse().unwrap()
}

#[tokio::test]
async fn a_new_connection_asks_for_its_login_so_that_passwords_rotate() {
    // Redis 6 gives a new user all channels, and refuses a pattern beside them.
    let rule = ["~dq:*", "resetchannels", "&dq:*", "+@all"];
    let server = RedisServer::start_with(&[&["--user", "rota", "on", ">s3cret-1"], &rule[..]].concat());
    let (password, asked) = (Arc::new(Mutex::new("s3cret-1")), Arc::new(AtomicUsize::new(0)));
    let (current, count) = (password.clone(), asked.clone());
    let store = RedisStore::new(&server.url()).unwrap().with_login(move || {
        count.fetch_add(1, Ordering::Relaxed);
        let login = Login::new("rota", *current.lock().unwrap());
        async { Ok(login) }
    });
    assert!(!format!("{store:?}").contains("s3cret-1"));
    let topic = Topic::of(store, "t");
    one_life(&topic).await;
    let before = asked.load(Ordering::Relaxed);
    assert!(before > 0);
    server.command(&["ACL", "SETUSER", "rota", "resetpass", ">s3cret-2"]);
    server.command(&["CLIENT", "KILL", "USER", "rota"]);
    // Until the program knows the new password, nobody is let in; then the same store works again.
    while !matches!(topic.store.contact().await, Err(dq::store::StoreError::Denied { .. })) {}
    *password.lock().unwrap() = "s3cret-2";
    let again = async { while topic.store.contact().await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(30), again).await.expect("each new connection asks for the password");
    assert!(asked.load(Ordering::Relaxed) > before);
}

#[tokio::test]
async fn a_login_that_fails_is_an_outage_with_its_reason() {
    let server = RedisServer::start();
    let store = RedisStore::new(&server.url()).unwrap();
    let store = store.with_login(|| async { Err(io::Error::other("the vault is sealed")) });
    let error = store.contact().await.unwrap_err();
    assert!(matches!(error, dq::store::StoreError::NotSent { .. }), "{error:?}");
    assert!(error.to_string().contains("the vault is sealed"), "{error}");
}

#[tokio::test]
async fn a_store_works_over_streams_of_the_programs_own() {
    let socket = std::env::temp_dir().join(format!("dq-socket-{}", std::process::id()));
    let path = socket.display().to_string();
    let server = RedisServer::start_with(&["--unixsocket", &path]);
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    // The URL leads nowhere, so all connections are streams of this test.
    let store = RedisStore::new("redis://nowhere.invalid:1/0").unwrap().with_streams(move || {
        count.fetch_add(1, Ordering::Relaxed);
        UnixStream::connect(socket.clone())
    });
    one_life(&Topic::of(store, "t")).await;
    assert!(made.load(Ordering::Relaxed) > 1);
    drop(server);
}
