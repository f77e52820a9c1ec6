//! What a user of the server must be allowed: the rules of the guide are enough, and not more than what they are for.

use std::time::Duration;

use dq::inspect::JobFilter;
use dq::job::{AppName, Delivery, State};
use dq::store::redis::RedisStore;
use dq::store::step::{self, Change, DEFAULT_BYTES, Sequenced};
use dq::store::{CommandKind, Durability, Interest, JobCopy, NewJob, PageRequest, Signal, Store, StoreError};
use dq_tests::redis::RedisServer;

use super::topic::{LEASE, Topic, job, key, provider};

const WAITING: Durability = Durability::Wait { replicas: 1, timeout: Duration::from_millis(1) };

/// The page with the users.
const GUIDE: &str = include_str!("../../docs/guide/deploying-on-redis.md");

/// A server with a user of the guide, and the URL for that user.
fn server_with(user: &str) -> (RedisServer, String) {
    let start = format!("ACL SETUSER {user} ");
    let rule = GUIDE.lines().find_map(|line| line.strip_prefix(&*start)).expect("the guide has the rule");
    let server = RedisServer::start();
    let words: Vec<&str> = ["ACL", "SETUSER", user].into_iter().chain(rule.split_whitespace()).collect();
    assert_eq!(server.command(&words), "+OK");
    let url = server.url_for(&format!("{user}:SECRET"));
    (server, url)
}

/// Does what nodes, producers and people do to a topic of the app `shop`.
async fn works(server: &RedisServer, url: &str) {
    // No replica confirms anything here; it is enough that the user may send `WAIT`.
    let asking = Topic::of(RedisStore::new(url).unwrap().with_durability(WAITING), "asking");
    assert!(matches!(asking.try_add(vec![job("a")]).await.unwrap_err(), StoreError::NotReplicated { .. }));
    let topic = Topic::on(url);
    let interest = Interest { node: Some(dq::job::NodeId::new("n")), broadcasts: true, moves: false };
    topic.store.open(&topic.key).await.unwrap();
    let mut signals = topic.store.signals(&topic.key, interest).await.unwrap();
    topic.reconcile().await;
    let both = NewJob { deliver: Delivery::Both, ..job("b") };
    topic.add(vec![job("a"), both]).await;
    assert!(matches!(signals.next().await, Some(Signal::Due(_) | Signal::BroadcastDue)));
    let claims = topic.claims().await;
    assert!(topic.command(CommandKind::Cancel, "a").await.changed);
    topic.try_settle(&claims, Change::Retry(LEASE)).await.unwrap();
    let request = step::Publish { limit: 10, bytes: DEFAULT_BYTES, fallback: LEASE, expires_after: LEASE };
    assert_eq!(topic.link.step(request).await.unwrap().published, 1);
    let sweep = topic.sweep(LEASE, LEASE, 10);
    assert!(matches!(topic.link.step(sweep).await.unwrap(), Sequenced::Done(_)));
    topic.reconcile().await;
    topic.link.step(step::Scan).await.unwrap();
    topic.link.step(step::Wake).await.unwrap();
    topic.link.step(step::Release { last_seen: topic.last_seen() }).await.unwrap();
    for state in State::ALL {
        topic
            .store
            .page(&topic.key, PageRequest { state, after: None, limit: 10, bytes: DEFAULT_BYTES })
            .await
            .unwrap();
    }
    assert_eq!(topic.store.topics(&topic.key.app).await.unwrap().len(), 2);
    assert_eq!(server.command(&["ACL", "LOG"]), "*0", "nothing was refused");
}

#[tokio::test]
async fn the_least_permissions_in_the_guide_are_enough() {
    let (server, url) = server_with("dq");
    works(&server, &url).await;
}

#[tokio::test]
async fn a_user_of_one_app_does_everything_there_and_reaches_no_other() {
    let (server, url) = server_with("shop");
    works(&server, &url).await;
    let mut doctor = provider(&url).inspect().doctor(None).unwrap();
    while doctor.step().await.unwrap().is_some() {}
    assert_eq!(server.command(&["ACL", "LOG"]), "*0", "nothing was refused");
    let other = RedisStore::new(&url).unwrap();
    let app = AppName::new("shop2").unwrap();
    let other_key = dq::job::TopicKey { app: app.clone(), ..key("t") };
    assert!(other.open(&other_key).await.is_err() && other.topics(&app).await.is_err());
    let interest = Interest { node: Some(dq::job::NodeId::new("n")), broadcasts: false, moves: false };
    assert!(other.signals(&other_key, interest).await.is_err());
}

#[tokio::test]
async fn a_user_who_only_reads_sees_everything_and_changes_nothing() {
    let (server, url) = server_with("look");
    let topic = Topic::on(&server.url());
    topic.reconcile().await;
    topic.add(vec![job("a"), job("b"), job("c")]).await;
    let claims = topic.claims().await;
    topic.try_settle(&claims[..1], Change::Dead).await.unwrap();
    topic.try_settle(&claims[1..2], Change::Park).await.unwrap();
    let before = server.changes();

    let look = provider(&url).inspect();
    assert_eq!(look.topics(None).await.unwrap().topics.len(), 1);
    look.topic("t").await.unwrap();
    look.nodes("t", None).await.unwrap();
    look.timeline("t").await.unwrap();
    look.run_stats("t").await.unwrap();
    look.history("t", "a").await.unwrap();
    assert!(look.job("t", "a").await.unwrap().is_some());
    look.why("t", "c").await.unwrap();
    let seen = RedisStore::new(&url).unwrap();
    for state in State::ALL {
        look.jobs("t", state, &JobFilter::default(), None).await.unwrap();
    }
    for (broadcasts, state) in JobCopy::parts() {
        let request = PageRequest { state, after: None, limit: 10, bytes: DEFAULT_BYTES };
        seen.export(&topic.key, request, broadcasts).await.unwrap();
    }
    let mut doctor = look.doctor(None).unwrap();
    while doctor.step().await.unwrap().is_some() {}
    assert_eq!(server.command(&["ACL", "LOG"]), "*0", "nothing was refused");

    let sees = Topic::on(&url);
    assert!(sees.try_add(vec![job("d")]).await.is_err());
    let items = vec![dq::store::Command::new(CommandKind::Delete, job("a").id)];
    assert!(sees.producer.command(dq::store::Numbered { number: 9, items }).await.is_err());
    assert_eq!(server.changes(), before);
}
