//! Callers that do not wait for `call_deadline`: they set a time for themselves, or the server has no room.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use dq::provider::{CallError, FailureReason};
use dq::store::StoreError;
use dq_tests::redis::RedisServer;

use super::scripted::{Behaviour, Started, start};
use super::topic::provider;

#[tokio::test]
async fn an_add_that_a_full_server_refuses_is_sent_twice() {
    for line in ["-OOM command not allowed when used memory > 'maxmemory'.", "-MISCONF Redis is configured to save RDB"]
    {
        let Started { url, scripts, .. } = start(Behaviour::Answers(line));
        let topic = provider(&url).topic("t").unwrap();
        let error = topic.add_json("1").within("1h").await.unwrap_err();
        let CallError::NotDone { reason: FailureReason::Store(reason), .. } = &error else { panic!("{error:?}") };
        assert!(matches!(**reason, StoreError::Full { .. }), "{reason:?}");
        assert_eq!(scripts.load(SeqCst), 2);
    }
}

#[tokio::test]
async fn a_caller_of_a_full_server_learns_what_to_do_and_succeeds_once_there_is_room() {
    let server = RedisServer::start();
    let topic = provider(&server.url()).topic("t").unwrap();
    topic.add_json("1").id("before").await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = topic.add_json("1").id("full").within("1h").await.unwrap_err();
    assert!(matches!(error, CallError::NotDone { .. }), "{error:?}");
    assert!(error.to_string().contains("raise `maxmemory`"), "{error}");
    assert!(topic.delete("before").within("1h").await.unwrap().changed, "what needs no room goes on");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    topic.add_json("1").id("full").await.unwrap();
}

/// Otherwise callers that wait for less than a connection takes would never get one.
#[tokio::test]
async fn callers_that_go_early_share_the_connections_that_are_being_made() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    std::thread::spawn(move || {
        let mut silent = Vec::new(); // accepted, and never answered
        while let Ok((stream, _)) = listener.accept() {
            counted.fetch_add(1, SeqCst);
            silent.push(stream);
        }
    });
    let topic = provider(&url).topic("t").unwrap();
    for number in 0..12 {
        let error = topic.add_json("1").id(number).within("20ms").await.unwrap_err();
        assert!(matches!(error, CallError::NotDone { .. }), "nothing has left: {error:?}");
    }
    let made = connections.load(SeqCst);
    assert!((1..=4).contains(&made), "one for each line of producers at most, and not {made}");
}
