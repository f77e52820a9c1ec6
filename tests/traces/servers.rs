//! What a server's settings and secrets leave in the log.

use std::fmt::Write;

use dq::job::{AppName, NodeId, ProducerId, TopicKey, TopicName};
use dq::store::redis::RedisStore;
use dq::store::step::Wake;
use dq::store::{Interest, Numbered, Store};
use dq_tests::redis::RedisServer;

use crate::recorder::subscribe;

fn topic() -> TopicKey {
    TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new("work").unwrap() }
}

#[tokio::test]
async fn an_unsuitable_server_is_warned_about_once_at_the_first_contact() {
    let (traces, _guard) = subscribe();
    let server = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru", "--appendonly", "no"]);
    let store = RedisStore::new(&server.url()).unwrap();
    for _ in 0..2 {
        store.topics(&topic().app).await.unwrap();
        store.open(&topic()).await.unwrap();
    }
    let lines = traces.lines();
    let logged = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!(logged("`maxmemory-policy` is `allkeys-lru`"), 1, "{lines:#?}");
    assert_eq!(logged("`appendonly` is off"), 1, "{lines:#?}");
    assert_eq!(logged(&format!("store=\"{}\"", server.url())), 2, "{lines:#?}");
}

/// Returns everything that a store logs and reports, and its own debug text.
async fn everything_reported(url: &str) -> String {
    let (traces, _guard) = subscribe();
    let store = RedisStore::new(url).unwrap();
    let mut said = format!("{} {store:?} ", store.url());
    let interest = Interest { node: Some(NodeId::new("n")), broadcasts: true, moves: false };
    let (link, producer) = (store.link(&topic(), &NodeId::new("n")), store.producer(&topic(), &ProducerId::new("p")));
    let errors: [Box<dyn std::error::Error>; 4] = [
        store.open(&topic()).await.unwrap_err().into(),
        link.step(Wake).await.unwrap_err().into(),
        producer.add(Numbered { number: 1, items: Vec::new() }).await.unwrap_err().into(),
        store.signals(&topic(), interest).await.unwrap_err().into(),
    ];
    errors.iter().for_each(|error| write!(said, "{error} {error:?} ").unwrap());
    write!(said, "{link:?} {producer:?} {:?}", traces.lines()).unwrap();
    said
}

#[tokio::test]
async fn a_password_is_in_no_log_no_error_and_no_debug_text() {
    let server = RedisServer::start_with(&["--user", "mallory", "on", ">s3cret", "-@all"]);
    for (password, says) in [("s3cret", "NOPERM"), ("gu3ssed", "WRONGPASS")] {
        let said = everything_reported(&server.url_for(&format!("mallory:{password}"))).await;
        assert!(said.contains(says) && said.contains("redis://***@127.0.0.1"), "{said}");
        assert!(!said.contains(password) && !said.contains("s3cret"), "{said}");
    }
    let unreachable = server.url_for("mallory:gu3ssed");
    drop(server);
    let said = everything_reported(&unreachable).await;
    assert!(said.contains("refused") && !said.contains("gu3ssed"), "{said}");
}
