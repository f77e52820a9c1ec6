//! The errors of a server or a connection, and how dq classifies them (the table is in `store/redis/errors.rs`).

use std::net::TcpListener;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use dq::job::Delivery;
use dq::store::redis::RedisStore;
use dq::store::step::Change;
use dq::store::{Due, NewJob, Store, StoreError};
use dq_tests::redis::{RedisServer, ask};

use super::scripted::{Behaviour, Started, start};
use super::topic::{LEASE, Topic, generated, id, job};

async fn error_of_add(topic: &Topic) -> StoreError {
    topic.try_add(vec![job("a")]).await.unwrap_err()
}

#[tokio::test]
async fn a_temporary_server_error_means_nothing_was_done() {
    let lines = [
        "-LOADING Redis is loading the dataset in memory",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "-CLUSTERDOWN The cluster is down",
        "-TRYAGAIN Multiple keys request during rehashing of slot",
        "-BUSY Redis is busy running a script.",
        "-NOREPLICAS Not enough good replicas to write.",
        "-READONLY You can't write against a read only replica.",
    ];
    for line in lines {
        let error = refused_add(line).await;
        assert!(matches!(error, StoreError::Refused { operation: "add", .. }) && error.passes(), "{line}: {error:?}");
    }
}

#[tokio::test]
async fn a_request_whose_key_of_a_wrong_type_is_gone_meanwhile_was_not_done() {
    let error = error_of_add(&Topic::on(&start(Behaviour::WrongTypeIsGone).url)).await;
    assert!(matches!(error, StoreError::Refused { operation: "add", .. }) && error.passes(), "{error:?}");
    assert!(error.to_string().contains("the server changed during the request"), "{error}");
}

#[tokio::test]
async fn a_server_without_room_refuses_until_somebody_acts() {
    let lines = [
        "-OOM command not allowed when used memory > 'maxmemory'.",
        "-MISCONF Redis is configured to save RDB snapshots",
        "-ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -OOM command not allowed when used memory > 'maxmemory'.",
        "-ERR Error running script (call to f_0): @user_script:9: OOM command not allowed when used memory > 'maxmemory'.",
    ];
    for line in lines {
        let error = refused_add(line).await;
        assert!(matches!(error, StoreError::Full { operation: "add", .. }) && !error.passes(), "{line}: {error:?}");
    }
}

async fn refused_add(line: &'static str) -> StoreError {
    let topic = Topic::on(&start(Behaviour::Answers(line)).url);
    let error = error_of_add(&topic).await;
    assert!(error.nothing_done() && error.is_outage(), "{line}");
    assert!(error.to_string().ends_with(')'), "the error has no advice: {error}");
    let code = line[1..].split(' ').next().unwrap().replace("ERR", "OOM");
    assert!(error.to_string().contains(&code), "{error}");
    error
}

#[tokio::test]
async fn a_connection_to_a_replica_closes_so_that_the_next_one_finds_the_master() {
    let behaviour = Behaviour::Answers("-READONLY You can't write against a read only replica.");
    let Started { url, connections, .. } = start(behaviour);
    let topic = Topic::on(&url);
    for expected in 1..=3 {
        assert!(error_of_add(&topic).await.nothing_done());
        assert_eq!(connections.load(SeqCst), expected);
    }
}

#[tokio::test]
async fn a_connection_stays_open_after_any_other_error() {
    let topic = Topic::on(&start(Behaviour::Answers("-LOADING Redis is loading the dataset in memory")).url);
    for _ in 0..3 {
        assert!(matches!(error_of_add(&topic).await, StoreError::Refused { .. }));
    }
}

#[tokio::test]
async fn a_server_that_takes_no_more_clients_is_an_outage() {
    let server = RedisServer::start();
    let mut only = server.connect();
    assert_eq!(ask(&mut only, &["CONFIG", "SET", "maxclients", "1"]), "+OK");
    let error = error_of_add(&Topic::on(&server.url())).await;
    assert!(matches!(error, StoreError::NotSent { .. }) && error.is_outage(), "{error:?}");
    assert_eq!(ask(&mut only, &["CONFIG", "SET", "maxclients", "100"]), "+OK");
    Topic::on(&server.url()).add(vec![job("a")]).await;
}

#[tokio::test]
async fn a_missing_permission_is_an_error_that_names_it() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "guest", "on", ">secret", "~dq:*", "+@connection", "+ping", "+zadd"]);
    let url = server.url_for("guest:secret");
    let topic = Topic::on(&url);
    let error = error_of_add(&topic).await;
    assert!(matches!(error, StoreError::Other { .. }) && !error.is_outage(), "{error:?}");
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("NOPERM"), "{error:?}");
}

#[tokio::test]
async fn every_key_of_a_wrong_type_is_named_before_anything_is_written() {
    let plain = [("jobs", "hash"), ("delayed", "zset"), ("calls:p", "string"), ("meta", "hash")];
    let others = [
        ("unacked", "zset"),
        ("dead", "zset"),
        ("done", "zset"),
        ("broadcasts", "zset"),
        ("broadcast-jobs", "hash"),
        ("pending", "hash"),
        ("crashes", "hash"),
        ("metadata", "hash"),
        ("replacements", "hash"),
        ("leases", "zset"),
    ];
    let far = [
        ("delayed", "zset"),
        ("calls:p", "string"),
        ("meta", "hash"),
        ("far", "zset"),
        ("far-jobs", "hash"),
        ("far-leaves", "hash"),
    ];
    let special = NewJob { deliver: Delivery::Both, ..job("a") };
    let much_later = NewJob { due: Due::After(Duration::from_secs(3_600)), ..generated(1) };
    let adds = [
        (&plain[..], generated(1)),
        (&plain, job("a")),
        (&plain, special.clone()),
        (&others, special),
        (&far, much_later),
    ];
    for (keys, job) in adds {
        for (key, kind) in keys {
            let server = RedisServer::start();
            let (topic, name) = (Topic::on(&server.url()), format!("dq:{{shop:t}}:{key}"));
            server.command(&["LPUSH", &name, "mine"]);
            let error = topic.try_add(vec![job.clone()]).await.unwrap_err();
            let StoreError::WrongType { key, expected } = &error else { panic!("{error:?}") };
            assert_eq!((key, expected), (&name, kind));
            assert_eq!(server.command(&["DBSIZE"]), ":1", "that key");
        }
    }
    for key in ["jobs", "delayed", "running:n", "leases", "sequence:n", "crashes", "meta"] {
        let (server, topic) = Topic::entered().await;
        topic.add(vec![job("a")]).await;
        topic.ready().await;
        names_it_and_writes_nothing(&server, &topic, key, async |topic: &Topic| topic.try_transfer(10).await).await;
    }
}

/// Gives `key` a wrong type and asserts that `step` names it and writes nothing.
async fn names_it_and_writes_nothing<T: std::fmt::Debug>(
    server: &RedisServer,
    topic: &Topic,
    key: &str,
    step: impl AsyncFn(&Topic) -> Result<T, StoreError>,
) {
    let name = format!("dq:{{shop:t}}:{key}");
    server.command(&["DEL", &name]);
    server.command(&["LPUSH", &name, "mine"]);
    let before = server.changes();
    let error = step(topic).await.unwrap_err();
    assert!(matches!(&error, StoreError::WrongType { key, .. } if *key == name), "{key}: {error:?}");
    assert_eq!(server.changes(), before, "{key}: something was written");
}

#[tokio::test]
async fn a_settle_names_every_key_of_a_wrong_type_before_it_writes() {
    let plain = ["jobs", "running:n", "leases", "sequence:n", "meta"];
    let others = ["delayed", "unacked", "dead", "done", "broadcasts", "broadcast-jobs", "pending", "crashes"];
    for (keys, change) in [(&plain[..], Change::Ack), (&plain, Change::Retry(LEASE)), (&others, Change::Retry(LEASE))] {
        for key in keys {
            let (server, topic) = Topic::entered().await;
            topic.add(vec![job("a"), job("b")]).await;
            let claims = topic.claims().await;
            let settle = async |topic: &Topic| topic.try_settle(&claims, change.clone()).await;
            names_it_and_writes_nothing(&server, &topic, key, settle).await;
        }
    }
}

#[tokio::test]
async fn a_sweep_names_every_key_of_a_wrong_type_before_it_writes() {
    for key in ["jobs", "delayed", "unacked", "dead", "done", "running:n", "leases", "sequence:n", "crashes", "meta"] {
        let (server, topic) = Topic::entered().await;
        topic.add(vec![job("a"), job("b")]).await;
        let claims = topic.claims().await;
        topic.try_settle(&claims[..1], Change::Dead).await.unwrap();
        topic.try_settle(&claims[1..], Change::Park).await.unwrap();
        let sweep = async |topic: &Topic| topic.link.step(topic.sweep(Duration::ZERO, Duration::ZERO, 1)).await;
        names_it_and_writes_nothing(&server, &topic, key, sweep).await;
    }
}

#[tokio::test]
async fn a_query_names_a_key_of_a_wrong_type_that_it_reads_without_a_script() {
    let server = RedisServer::start();
    let Topic { store, key: topic, .. } = &Topic::on(&server.url());
    for (key, kind) in
        [("history", "hash"), ("statistics", "hash"), ("schedules", "zset"), ("taken", "zset"), ("outbox", "zset")]
    {
        let name = format!("dq:{{shop:t}}:{key}");
        server.command(&["SET", &name, "mine"]);
        let error = match key {
            "history" => store.history(topic, &id("a")).await.unwrap_err(),
            "statistics" => store.statistics(topic, 1, 2).await.unwrap_err(),
            "schedules" => store.schedules(topic, None, 10).await.unwrap_err(),
            "taken" => store.taken(topic, &id("a")).await.unwrap_err(),
            _ => store.follow_ups(topic, None, 10).await.unwrap_err(),
        };
        let StoreError::WrongType { key, expected } = &error else { panic!("{name}: {error:?}") };
        assert_eq!((key, *expected), (&name, kind));
    }
}

#[tokio::test]
async fn a_topic_of_another_protocol_version_is_refused_naming_both() {
    let server = RedisServer::start();
    server.command(&["HSET", "dq:{shop:t}:meta", "protocol", "7"]);
    let topic = Topic::on(&server.url());
    for error in [error_of_add(&topic).await, topic.store.open(&topic.key).await.unwrap_err()] {
        assert!(matches!(error, StoreError::Version { found: 7, ours: 2, .. }), "{error:?}");
    }
    assert_eq!(server.command(&["EXISTS", "dq:{shop:t}:jobs"]), ":0");
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let (server, topic) = Topic::served();
    topic.add(vec![job("a")]).await;
    server.command(&["SCRIPT", "FLUSH"]);
    topic.add(vec![job("b")]).await;
    server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(topic.store.counts(&topic.key).await.unwrap().delayed, 2);
}

#[tokio::test]
async fn a_server_that_speaks_something_else_is_said_to_be_no_redis_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            std::io::Read::read(&mut client, &mut [0; 512]).unwrap();
            std::io::Write::write_all(&mut client, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        }
    });
    let error = RedisStore::new(&format!("redis://127.0.0.1:{port}")).unwrap().contact().await.unwrap_err();
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error:?}");
    assert!(error.to_string().ends_with("is no Redis server: are host and port in the URL right?"), "{error}");
}

/// A server may say anything, and a start shows it on a terminal.
#[tokio::test]
async fn what_a_server_says_is_cut_and_has_no_control_character() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let said = format!("-ERR \x1b[2J \u{202e}it's {}\r\n", "x".repeat(10_000_000));
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let said = said.clone();
            std::thread::spawn(move || {
                let _ = std::io::Read::read(&mut client, &mut [0; 512]);
                let _ = std::io::Write::write_all(&mut client, said.as_bytes());
            });
        }
    });
    let url = format!("redis://127.0.0.1:{port}");
    let contact = RedisStore::new(&url).unwrap().contact().await.unwrap_err().to_string();
    let start = dq::Provider::connect("shop", &*url).await.unwrap_err().to_string();
    for text in [contact, start] {
        assert!(
            text.contains(r"ERR \u{1b}[2J \u{202e}it's xxx") && text.len() < 5_000,
            "{} bytes: {text:.300}",
            text.len()
        );
        assert!(!text.contains(['\x1b', '\u{202e}']), "{text:.300}");
    }
}
