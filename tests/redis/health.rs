//! `health()` reports each error of the server with a fix, and the node recovers once the server is fixed.

use std::sync::Arc;
use std::time::Duration;

use dq::context::Condition;
use dq::prelude::*;
use dq::provider::{CallError, FailureReason};
use dq::store::StoreError;
use dq::store::redis::RedisStore;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};

use super::scripted::{Behaviour, start};
use super::topic::{provider_on, until};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work")]
struct Work;

#[delay_listener(register = false)]
async fn work(_job: Job<Work>) -> Result<(), JobError> {
    Ok(())
}

/// A node with a short fallback scan, on a server where its user is `dq`.
struct Watched {
    server: RedisServer,
    node: Context,
}

impl Watched {
    async fn start() -> Self {
        let user = ["--user", "dq", "on", ">secret", "~*", "&*", "+@all"];
        let server = RedisServer::start_with(&[&["--save", ""], &user[..]].concat());
        let short = [("DQ_POLL_INTERVAL", "50ms"), ("DQ_CALL_TIMEOUT", "500ms")];
        let factory = ContextFactory::new("shop").store(server.url_for("dq:secret")).variables(short);
        let node = factory.without_inventory().listener::<work>().start().await.unwrap();
        node.ready().await;
        Self { server, node }
    }

    fn command(&self, command: &[&str]) {
        let said = self.server.command(command);
        assert!(!said.starts_with('-'), "{command:?}: {said}");
    }

    /// Waits until the condition of the topic satisfies `is`.
    async fn until(&self, is: impl Fn(&Condition) -> bool) -> Condition {
        loop {
            let condition = self.node.health().topics.remove(0).condition;
            if is(&condition) {
                return condition;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn works_again(self) {
        self.until(|condition| *condition == Condition::Working).await;
        self.node.provider().add(Work).await.unwrap();
    }

    /// Waits until the topic is recovering and reports this text.
    async fn recovers(&self, says: &str) {
        self.until(|condition| matches!(condition, Condition::Recovering(text) if text.contains(says))).await;
        assert!(!self.node.health().ready);
    }

    /// Waits until the topic has stopped and reports this text.
    async fn stopped(&self, says: &str) {
        self.until(|condition| matches!(condition, Condition::Stopped(text) if text.contains(says))).await;
        assert!(!self.node.health().ready);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_recovers_from_a_server_that_is_a_replica_or_has_too_few_replicas() {
    let watched = Watched::start().await;
    watched.command(&["REPLICAOF", "127.0.0.1", "1"]);
    watched.recovers("READONLY").await;
    watched.recovers("(the server is a replica: point the URL at the master)").await;
    watched.command(&["REPLICAOF", "NO", "ONE"]);
    watched.until(|condition| *condition == Condition::Working).await;
    if watched.server.command(&["INFO", "server"]).contains("redis_version:6.") {
        // This version ignores the setting for writes by scripts.
        return watched.works_again().await;
    }
    watched.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    watched.recovers("(connect more replicas, or lower the server's `min-replicas-to-write`)").await;
    watched.command(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    watched.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_recovers_from_a_server_that_cannot_save() {
    let watched = Watched::start().await;
    watched.command(&["CONFIG", "SET", "save", "3600 1"]);
    watched.server.break_snapshots();
    watched.recovers("(the server cannot save to its disk: see its log)").await;
    watched.command(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]);
    watched.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_stops_until_its_password_and_permissions_are_restored() {
    let watched = Watched::start().await;
    watched.command(&["ACL", "SETUSER", "dq", "-zrange"]);
    watched.stopped("(give the user the permissions in docs/guide/deploying-on-redis.md)").await;
    watched.command(&["ACL", "SETUSER", "dq", "+zrange", "resetpass", ">other"]);
    watched.command(&["CLIENT", "KILL", "USER", "dq"]);
    watched.stopped("the store does not let this program in: WRONGPASS").await;
    watched.stopped("(fix user and password in the URL)").await;
    let error = watched.node.provider().add(Work).await.unwrap_err();
    let CallError::NotDone { reason: FailureReason::Store(said), .. } = &error else { panic!("{error:?}") };
    assert!(matches!(&**said, StoreError::Denied { .. }), "{said:?}");
    watched.command(&["ACL", "SETUSER", "dq", ">secret"]);
    watched.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_stops_while_a_key_has_a_wrong_type_or_the_protocol_version_differs() {
    let watched = Watched::start().await;
    watched.command(&["SET", "dq:{shop:work}:delayed", "mine"]);
    watched.stopped("key `dq:{shop:work}:delayed` has the wrong type: expected zset; rename or delete it").await;
    watched.command(&["DEL", "dq:{shop:work}:delayed"]);
    watched.until(|condition| *condition == Condition::Working).await;
    watched.command(&["HSET", "dq:{shop:work}:meta", "protocol", "7"]);
    watched.stopped("protocol version 7, but this version of dq speaks version 2: upgrade the older program").await;
    watched.command(&["HSET", "dq:{shop:work}:meta", "protocol", "2"]);
    watched.works_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_recovers_from_a_server_that_hangs_or_is_gone() {
    let mut watched = Watched::start().await;
    watched.server.pause();
    watched.recovers("no answer within 500ms (`call_timeout`): the store or the network hangs").await;
    watched.server.go_on();
    watched.until(|condition| *condition == Condition::Working).await;
    watched.server.kill();
    watched.recovers("(is the server running, and are host and port in the URL right?)").await;
    watched.server.restart();
    watched.works_again().await;
}

#[tokio::test]
async fn calls_to_a_server_that_never_answers_end_at_their_timeouts() {
    let store = RedisStore::new(&start(Behaviour::NeverAnswers).url).unwrap();
    let mut settings = dq::config::NodeSettings::default();
    (settings.call_timeout, settings.call_deadline) = (Duration::from_millis(500), Duration::from_secs(2));
    let provider = provider_on(store, settings);
    let error = provider.add(Work).await.unwrap_err();
    let CallError::Unknown { reason: FailureReason::NoAnswer { waited, .. }, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*waited, Duration::from_secs(2));
    let query = provider.counts::<Work>().await.unwrap_err();
    let CallError::NotDone { reason: FailureReason::Store(source), .. } = &query else { panic!("{query:?}") };
    let StoreError::Unavailable { reason, .. } = &**source else { panic!("{query:?}") };
    assert!(reason.starts_with("no answer within 500ms (`call_timeout`)"), "{reason}");
    provider.close().await;
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "mangle", retry = "1h")]
struct Mangle(#[job(id)] u8);

/// Removes the record of the job, as another program might, and fails.
#[delay_listener(register = false)]
async fn mangle(job: Job<Mangle>, server: &Arc<RedisServer>) -> Result<(), JobError> {
    server.command(&["HDEL", "dq:{shop:mangle}:jobs", &job.0.to_string()]);
    Err("no".into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_another_program_removed_are_counted() {
    let server = Arc::new(RedisServer::start());
    let factory = ContextFactory::new("shop").store(server.url()).variables([("DQ_POLL_INTERVAL", "50ms")]);
    let node = factory.without_inventory().listener::<mangle>().provide(server.clone()).start().await.unwrap();
    let counters = || node.health().topics.remove(0).counters;
    node.provider().add(Mangle(1)).await.unwrap();
    until(|| counters().dropped >= 1).await;
    assert_eq!((counters().claimed, counters().failed, counters().retried), (1, 1, 0));
    server.command(&["ZADD", "dq:{shop:mangle}:delayed", "1", "nothing", "1", "line\nfeed"]);
    server.command(&["HSET", "dq:{shop:mangle}:jobs", "line\nfeed", "mine"]);
    until(|| counters().dropped >= 3).await;
    assert_eq!((counters().claimed, counters().dropped, counters().stale_outcomes), (1, 3, 0));
    node.shutdown(Duration::from_secs(1)).await;
}
