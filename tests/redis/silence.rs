//! Connections that break silently or again and again, and users without permission to subscribe.

use std::time::{Duration, Instant};

use dq::context::Condition;
use dq::prelude::*;
use dq::store::redis::RedisStore;
use dq::store::{Signal, Store, StoreError};
use dq_tests::Proxy;
use dq_tests::redis::RedisServer;
use tokio::time::timeout;

use super::listeners::PricesListener;

use super::scripted::{self, Behaviour, Started};
use super::topic::{Topic, interest, job, key, until};

/// Longer than anything here takes, and shorter than a test may take.
const LIMIT: Duration = Duration::from_secs(20);

/// How long a subscription receives nothing before it sends a `PING`, and how long it then waits for the answer.
const SILENCE: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_subscription_on_a_silently_broken_connection_is_made_again() {
    let server = RedisServer::start();
    let proxy = Proxy::to(&server);
    let store = RedisStore::new(&proxy.url()).unwrap().with_check_period(SILENCE);
    let topic = Topic::of(store, "t");
    let mut signals = topic.store.signals(&topic.key, interest()).await.unwrap();
    topic.add(vec![job("a")]).await;
    assert_eq!(signals.next().await, Some(Signal::Due(None)));
    proxy.fall_silent();
    let received = timeout(LIMIT, signals.next()).await.expect("the subscription is made again");
    assert_eq!(received, Some(Signal::Resubscribed));
    server.command(&["PUBLISH", "dq:{shop:t}:wake", "broadcast"]);
    assert_eq!(signals.next().await, Some(Signal::BroadcastDue));
}

#[tokio::test]
async fn a_quiet_subscription_on_a_working_connection_stays() {
    let server = RedisServer::start();
    let store = RedisStore::new(&server.url()).unwrap().with_check_period(SILENCE);
    let mut signals = store.signals(&key("t"), interest()).await.unwrap();
    until(|| server.calls().get("ping").is_some_and(|pings| *pings >= 3)).await;
    server.command(&["PUBLISH", "dq:{shop:t}:wake", "due"]);
    assert_eq!(signals.next().await, Some(Signal::Due(None)), "and nothing before");
}

#[tokio::test]
async fn queries_leave_a_silently_broken_connection() {
    let server = RedisServer::start();
    let proxy = Proxy::to(&server);
    let topic = Topic::on(&proxy.url());
    topic.store.counts(&topic.key).await.unwrap();
    proxy.fall_silent();
    let query = || timeout(Duration::from_millis(500), topic.store.counts(&topic.key));
    assert!(query().await.is_err(), "no answer arrives, and the caller gives up");
    assert!(timeout(LIMIT, topic.store.counts(&topic.key)).await.expect("over a new connection").is_ok());
    proxy.fall_silent();
    assert!(query().await.is_err());
    assert!(
        timeout(LIMIT, topic.store.counts(&topic.key))
            .await
            .expect("the query itself moves to a new connection")
            .is_ok()
    );
}

#[tokio::test]
async fn a_subscription_that_keeps_breaking_is_retried_less_and_less_often() {
    let Started { url, connections, .. } = scripted::start(Behaviour::ClosesSubscriptions);
    let store = RedisStore::new(&url).unwrap();
    let began = Instant::now();
    let _signals = store.signals(&key("t"), interest()).await.unwrap();
    until(|| connections.load(std::sync::atomic::Ordering::SeqCst) >= 6).await;
    // 50 ms, 100, 200, 400, 800
    assert!(began.elapsed() > Duration::from_millis(1_000), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_user_who_may_not_subscribe_to_one_topic_still_receives_signals_of_others() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "onetopic", "on", ">secret", "~*", "+@all", "resetchannels", "&dq:{shop:t}:*"]);
    let store = RedisStore::new(&server.url_for("onetopic:secret")).unwrap();
    let mut signals = store.signals(&key("t"), interest()).await.unwrap();
    for _ in 0..3 {
        let error = store.signals(&key("other"), interest()).await.unwrap_err();
        assert!(matches!(&error, StoreError::Other { .. }) && !error.is_outage(), "{error:?}");
        let said = std::error::Error::source(&error).unwrap().to_string();
        assert!(said.contains("(give the user the permissions in docs/guide/deploying-on-redis.md)"), "{said}");
    }
    server.command(&["PUBLISH", "dq:{shop:t}:wake", "due"]);
    assert_eq!(signals.next().await, Some(Signal::Due(None)), "the subscription stayed intact");
}

/// Waits until the condition of the node's channel satisfies `is`.
async fn until_channel(node: &Context, is: impl Fn(&Condition) -> bool) {
    until(|| is(&node.health().channels[0].condition)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_may_not_subscribe_reports_it_until_it_may() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "nochannels", "on", ">secret", "~*", "+@all", "resetchannels"]);
    let factory = ContextFactory::new("shop").store(server.url_for("nochannels:secret"));
    let factory = factory.variables([("DQ_CALL_TIMEOUT", "500ms")]).without_inventory();
    let node = factory.broadcast_listener::<PricesListener>().start().await.unwrap();
    let is_denied = |condition: &Condition| matches!(condition, Condition::Stopped(text) if text.contains("docs/guide/deploying-on-redis.md"));
    until_channel(&node, is_denied).await;
    assert!(!node.health().ready);
    server.command(&["ACL", "SETUSER", "nochannels", "&*"]);
    until_channel(&node, |condition| *condition == Condition::Working).await;
    // The permission is revoked; servers before 7 keep existing subscriptions, so their connections are killed.
    server.command(&["ACL", "SETUSER", "nochannels", "resetchannels"]);
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    until_channel(&node, is_denied).await;
    node.shutdown(Duration::ZERO).await;
}
