//! What a page costs.

use std::time::Duration;

use dq::Provider;
use dq::job::{AppName, NodeId, Sequence, TopicKey, TopicName};
use dq::store::Store;
use dq::store::redis::RedisStore;
use dq::store::step::{Reconcile, Sequenced, Transfer};
use dq_tests::redis::RedisServer;
use serde_json::json;

use super::visitor::Visitor;

/// How many queries the store answers while a page is made: scripts, and the commands that no script sends. A page for people has one
/// heading.
async fn queries(server: &RedisServer, visitor: &mut Visitor, page: &str) -> (u64, usize) {
    server.command(&["CONFIG", "RESETSTAT"]);
    let answer = visitor.get(page).await;
    assert_eq!(answer.status.as_u16(), 200, "{page}: {}", answer.body);
    if !page.starts_with("/api/") {
        assert_eq!(answer.body.matches("<h1>").count(), 1, "{page}");
        assert!(answer.body.contains("<main") && answer.body.contains("lang=\"en\""), "{page}");
    }
    let calls = server.calls();
    let scripts = calls.get("evalsha").copied().unwrap_or(0) + calls.get("eval").copied().unwrap_or(0);
    // Without a script each command is a query.
    let is_ours = |name: &str| name.starts_with("config") || name == "info";
    let plain = calls.iter().filter(|(name, _)| !is_ours(name)).map(|(_, count)| count).sum();
    (if scripts == 0 { plain } else { scripts }, answer.body.len())
}

/// Nodes that hold a job each.
async fn claim(server: &RedisServer, topic: &str, nodes: usize) {
    let store = RedisStore::new(&server.url()).unwrap();
    let key = TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new(topic).unwrap() };
    for n in 0..nodes {
        let link = store.link(&key, &NodeId::new(format!("web-{n:03}-v1.2.3-692290e7-012ec2040ea64cf6")));
        let reconcile = Reconcile { last_seen: Sequence::default(), after: None, limit: 1 };
        let Sequenced::Done(reconciled) = link.step(reconcile).await.unwrap() else { panic!("a first page") };
        let last_seen = reconciled.lease_status.sequence;
        link.step(Transfer::new(last_seen, 1, Duration::from_secs(600))).await.unwrap();
    }
}

#[tokio::test]
async fn a_page_makes_at_most_20_queries_and_is_bounded() {
    let server = RedisServer::start();
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    for n in 0..40 {
        let topic = provider.topic(&format!("topic-{n:02}")).unwrap();
        let jobs: Vec<_> = (0..200).map(|n| json!({ "n": n })).collect();
        topic.add_many_json(jobs).after("30m").await.unwrap().all().unwrap();
    }
    // 100,000 jobs, 30,000 of them due.
    for hour in 0..100 {
        let jobs = (0..1_000).map(|n| json!({ "n": n }));
        let due = if hour < 30 { "0s".into() } else { format!("{hour}h") };
        provider.topic("topic-01").unwrap().add_many_json(jobs).after(due).await.unwrap().all().unwrap();
    }
    claim(&server, "topic-01", 120).await;
    let id = "x".repeat(256);
    provider.topic("topic-00").unwrap().add_json(json!(1)).id(&id).after("1h").await.unwrap();
    let (home, name) = (provider.topic("topic-02").unwrap(), "n".repeat(256));
    for n in 0..1_000 {
        let member = provider.topic("topic-03").unwrap().add_json(json!(n)).id(format!("{}{n:04}", "m".repeat(252)));
        member.member_of(&home, &name).await.unwrap();
    }
    for n in 0..110 {
        home.add_json(json!(n)).id("a").member_of(&home, format!("{}{n:03}", "s".repeat(253))).await.unwrap();
    }
    let mut visitor = Visitor::free(provider);
    queries(&server, &mut visitor, "/").await; // the server learns the scripts
    let mut unasked = Vec::new();
    for page in [
        "/?sort=late".to_owned(),
        "/?scale=hours&sort=late".into(),
        "/?scale=days&sort=dead".into(),
        "/?after=topic-10".into(),
        "/?after=topic-35&scale=days".into(),
        "/topic?topic=topic-01".into(),
        "/jobs?topic=topic-01".into(),
        "/jobs?topic=topic-01&error=none".into(),
        "/jobs?topic=topic-01&state=running&id_prefix=none".into(),
        "/jobs?topic=topic-01&state=dead&error=x&attempts=1&id_prefix=a&header=a%3Db&from=2026-11-23T14:05:00Z".into(),
        format!("/job?topic=topic-00&id={id}"),
        "/dead".into(),
        "/unacked".into(),
        "/nodes".into(),
        "/nodes?topic=topic-01".into(),
        "/doctor".into(),
        "/schedules".into(),
        "/schedules?topic=topic-01".into(),
        "/topic?topic=topic-02".into(),
        "/sets?topic=topic-02".into(),
        format!("/set?topic=topic-02&name={name}"),
        "/settings".into(),
        "/confirm?action=pause&topic=topic-01".into(),
        "/api/v1/topics".into(),
        "/api/v1/topics/topic-01/timeline".into(),
        "/api/v1/topics/topic-01/nodes".into(),
        format!("/api/v1/topics/topic-00/jobs/{id}/why"),
    ] {
        let (queries, bytes) = queries(&server, &mut visitor, &page).await;
        assert!(queries <= 20, "{page}: {queries} queries");
        if queries == 0 {
            unasked.push(page.clone());
        }
        assert!((100..150_000).contains(&bytes), "{page}: {bytes} bytes");
    }
    // The first four ask for a topic, the last one for a confirmation; the settings are what the program knows of itself.
    let asks_nothing =
        ["/dead", "/unacked", "/nodes", "/schedules", "/settings", "/confirm?action=pause&topic=topic-01"];
    assert_eq!(unasked, asks_nothing);
}

#[tokio::test]
async fn the_nodes_of_a_topic_come_page_after_page_with_their_versions() {
    let server = RedisServer::start();
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    provider.topic("mail").unwrap().add_many_json((0..120).map(|n| json!(n))).await.unwrap().all().unwrap();
    claim(&server, "mail", 120).await;
    let mut visitor = Visitor::free(provider);
    let first = visitor.get("/nodes?topic=mail").await.body;
    assert!(first.contains("120 nodes hold jobs") && first.contains("1.2.3") && first.contains("web-099"), "{first}");
    let (_, rest) = first.split_once("href=\"/nodes?topic=mail&amp;after=").unwrap();
    let next = rest.split('"').next().unwrap();
    let second = visitor.get(&format!("/nodes?topic=mail&after={next}")).await.body;
    assert!(second.contains("web-100") && !second.contains("web-099") && !second.contains("Next nodes"), "{second}");
    let answer = visitor.get("/api/v1/topics/mail/nodes").await.json();
    assert_eq!((answer["nodes"].as_array().unwrap().len(), &answer["nodes"][0]["version"]), (100, &json!("1.2.3")));
    assert_eq!(answer["nodes"][0]["started"], 1_763_872_999_000_u64);
}

#[tokio::test]
async fn the_outlook_of_a_long_page_of_topics_follows_with_the_next_read() {
    let server = RedisServer::start();
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    for n in 0..18 {
        provider.topic(&format!("topic-{n:02}")).unwrap().add_json(json!(n)).after("30m").await.unwrap();
    }
    let mut visitor = Visitor::free(provider);
    let first = visitor.get("/").await.body;
    assert!(first.contains("the others follow") && first.contains("http-equiv=\"refresh\""), "{first}");
    let second = visitor.get("/").await.body;
    assert!(
        !second.contains("the others follow") && second.contains("18 jobs fall due in the next 60 minutes"),
        "{second}"
    );
}

#[tokio::test]
async fn a_server_that_is_nearly_full_shows_on_the_overview_before_an_add_fails() {
    let server = RedisServer::start();
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    let mut visitor = Visitor::free(provider.clone());
    // So much that what the test itself needs is nothing beside it.
    server.command(&["EVAL", "return redis.call('SET', 'filler', string.rep('x', 80000000)) and 1", "0"]);
    server.command(&["CONFIG", "SET", "maxmemory", "95000000"]);
    let page = visitor.get("/").await.body;
    assert!(page.contains("% of its `maxmemory`") && page.contains("What to do"), "{page}");
    provider.topic("mail").unwrap().add_json(json!(1)).await.unwrap();
    let page = visitor.get("/doctor").await.body;
    for word in ["memory-nearly-full", "not-persistent", "set `appendonly` to `yes`"] {
        assert!(page.contains(word), "{word}: {page}");
    }
}
