//! What callers of a provider learn when the store cannot be reached, over a real line: a request that never left the
//! program was not done, and the error says why it did not leave.

use std::net::TcpListener;
use std::time::Duration;

use dq::config::NodeSettings;
use dq::provider::{CallError, TopicProvider};
use dq::store::redis::RedisStore;
use dq_tests::redis::RedisServer;
use futures_util::future::join_all;
use tokio::net::TcpSocket;

use super::scripted::{Behaviour, start};
use super::topic::provider_on;

/// A provider of one topic whose calls end soon.
fn topic(url: &str) -> TopicProvider {
    let mut settings = NodeSettings::default();
    (settings.call_timeout, settings.call_deadline) = (Duration::from_millis(300), Duration::from_millis(1_500));
    provider_on(RedisStore::new(url).unwrap(), settings).topic("t").unwrap()
}

/// Asserts that an add, a command and a query fail, that neither of the first two was done, and that each says why.
async fn nothing_is_done(topic: &TopicProvider, why: &str) {
    let (add, delete, query) = tokio::join!(topic.add_json("1").id("a"), topic.delete("b"), topic.counts());
    for error in [add.unwrap_err(), delete.unwrap_err(), query.unwrap_err()] {
        assert!(matches!(error, CallError::NotDone { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

const REFUSED: &str = "(is the server running, and are host and port in the URL right?)";

#[tokio::test]
async fn without_a_server_that_lets_the_program_in_nothing_is_done() {
    // The socket holds the port without listening, so that no other program can listen there.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let server = RedisServer::start();
    server.command(&["CONFIG", "SET", "requirepass", "right"]);
    let places = [
        (format!("redis://{}/", taken.local_addr().unwrap()), REFUSED),
        (start(Behaviour::ClosesAtOnce).url, "(if that port expects TLS, write rediss:// in the URL)"),
        (format!("redis://{}/", silent.local_addr().unwrap()), "firewall"),
        ("redis://no-such-host.invalid/".to_owned(), "in the URL right"),
        (server.url_for(":wrong"), "(fix user and password in the URL)"),
    ];
    join_all(places.iter().map(|(url, why)| async move { nothing_is_done(&topic(url), why).await })).await;
}

#[tokio::test]
async fn when_the_server_went_down_before_the_add_nothing_is_done() {
    let mut server = RedisServer::start();
    let topic = topic(&server.url());
    topic.add_json("1").id("first").await.unwrap();
    topic.counts().await.unwrap();
    server.kill();
    nothing_is_done(&topic, REFUSED).await;
    server.restart();
    topic.counts().await.unwrap();
    topic.add_json("1").id("first").await.unwrap();
}

#[tokio::test]
async fn on_a_replica_nothing_is_done() {
    let server = RedisServer::start();
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let topic = topic(&server.url());
    let error = topic.add_json("1").id("a").await.unwrap_err();
    assert!(matches!(error, CallError::NotDone { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("READONLY") && text.contains("point the URL at the master"), "{text}");
}

#[tokio::test]
async fn on_a_node_of_a_cluster_nothing_is_done_and_the_error_names_what_to_use() {
    for line in ["-MOVED 3999 127.0.0.1:6381", "-ASK 3999 127.0.0.1:6381", "-CROSSSLOT Keys in request don't hash"] {
        let topic = topic(&start(Behaviour::Answers(line)).url);
        nothing_is_done(&topic, "redis+cluster:// in the URL").await;
        assert!(topic.add_json("1").await.unwrap_err().to_string().contains(&line[1..6]));
    }
}

#[tokio::test]
async fn a_request_that_was_sent_and_has_no_answer_stays_unknown() {
    let topic = topic(&start(Behaviour::Closes).url);
    let error = topic.add_json("1").id("a").await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    let error = topic.delete("a").await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
}
