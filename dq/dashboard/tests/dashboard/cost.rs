//! What a page costs.

use dq::Provider;
use dq_tests::redis::RedisServer;
use serde_json::json;

use super::visitor::Visitor;

/// How many queries the store answers while a page is made: scripts, and the commands that no script sends.
async fn queries(server: &RedisServer, visitor: &mut Visitor, page: &str) -> (u64, usize) {
    server.command(&["CONFIG", "RESETSTAT"]);
    let answer = visitor.get(page).await;
    assert_eq!(answer.status.as_u16(), 200, "{page}: {}", answer.body);
    let calls = server.calls();
    (calls.get("evalsha").copied().unwrap_or(0) + calls.get("eval").copied().unwrap_or(0), answer.body.len())
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
    let id = "x".repeat(256);
    provider.topic("topic-00").unwrap().add_json(json!(1)).id(&id).after("1h").await.unwrap();
    let mut visitor = Visitor::free(provider);
    visitor.get("/").await; // the server learns the scripts
    for page in [
        "/?sort=late".to_owned(),
        "/?after=topic-10".into(),
        "/?after=topic-35&scale=days".into(),
        "/topic?topic=topic-01".into(),
        "/jobs?topic=topic-01".into(),
        "/jobs?topic=topic-01&error=none".into(),
        format!("/job?topic=topic-00&id={id}"),
        "/dead".into(),
        "/unacked".into(),
        "/nodes".into(),
        "/doctor".into(),
        "/schedules".into(),
        "/schedules?topic=topic-01".into(),
        "/settings".into(),
        "/api/v1/topics".into(),
        "/api/v1/topics/topic-01/timeline".into(),
    ] {
        let (queries, bytes) = queries(&server, &mut visitor, &page).await;
        assert!(queries <= 20, "{page}: {queries} queries");
        assert!(bytes < 150_000, "{page}: {bytes} bytes");
    }
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
