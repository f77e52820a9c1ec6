//! What callers of a provider learn when the store cannot be reached, over a real line: a request that never left the
//! program was not done, and the error says why it did not leave.

use std::net::TcpListener;
use std::time::Duration;

use dq::config::NodeSettings;
use dq::provider::{CallError, TopicProvider};
use dq::store::redis::RedisStore;
use dq_tests::redis::RedisServer;
use tokio::net::TcpSocket;

use super::scripted::{Behaviour, start};
use super::topic::provider_on;

/// A provider of one topic whose calls end soon.
fn topic(url: &str) -> TopicProvider {
    let mut settings = NodeSettings::default();
    (settings.call_timeout, settings.call_total) = (Duration::from_millis(300), Duration::from_millis(1_500));
    provider_on(RedisStore::new(url).unwrap(), settings).topic("t").unwrap()
}

/// Asserts that an add, a command and a query fail, that neither of the first two was done, and that each says why.
async fn nothing_is_done(topic: &TopicProvider, why: &str) {
    let (add, delete, query) = tokio::join!(topic.add_json("1").id("a"), topic.delete("b"), topic.counts());
    let (add, delete, query) = (add.unwrap_err(), delete.unwrap_err(), query.unwrap_err());
    assert!(matches!(add, CallError::NotDone { .. }), "{add}");
    assert!(add.to_string().contains(why), "{add}");
    assert!(matches!(delete, CallError::NotDone { .. }), "{delete}");
    assert!(delete.to_string().contains(why), "{delete}");
    assert!(matches!(query, CallError::NotDone { .. }), "{query}");
    assert!(query.to_string().contains(why), "{query}");
}

const REFUSED: &str = "(is the server running, and are host and port in the URL right?)";

#[tokio::test]
async fn without_a_server_nothing_is_done() {
    // The socket holds the port without listening, so that no other program can listen there.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let port = taken.local_addr().unwrap().port();
    nothing_is_done(&topic(&format!("redis://127.0.0.1:{port}/")), REFUSED).await;
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
    topic.add_json("1").id("first").await.unwrap();
}

#[tokio::test]
async fn behind_a_proxy_that_accepts_and_closes_nothing_is_done() {
    let why = "(if that port expects TLS, write rediss:// in the URL)";
    nothing_is_done(&topic(&start(Behaviour::ClosesAtOnce)), why).await;
}

#[tokio::test]
async fn on_a_line_that_never_answers_nothing_is_done() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("redis://127.0.0.1:{}/", silent.local_addr().unwrap().port());
    nothing_is_done(&topic(&url), "firewall").await;
}

#[tokio::test]
async fn on_a_host_without_an_address_nothing_is_done() {
    nothing_is_done(&topic("redis://no-such-host.invalid/"), "in the URL right").await;
}

#[tokio::test]
async fn with_a_wrong_password_nothing_is_done() {
    let server = RedisServer::start();
    server.command(&["CONFIG", "SET", "requirepass", "right"]);
    nothing_is_done(&topic(&server.url_for(":wrong")), "(fix user and password in the URL)").await;
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
        let topic = topic(&start(Behaviour::Answers(line)));
        nothing_is_done(&topic, "redis+cluster:// in the URL").await;
        assert!(topic.add_json("1").await.unwrap_err().to_string().contains(&line[1..6]));
    }
}

#[tokio::test]
async fn a_request_that_was_sent_and_has_no_answer_stays_unknown() {
    let topic = topic(&start(Behaviour::Closes));
    let error = topic.add_json("1").id("a").await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    let error = topic.delete("a").await.unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
}
