//! What ran, and how late, left of now.

use dq::Provider;
use dq_tests::redis::{RedisServer, ask};
use serde_json::json;

use super::visitor::Visitor;

/// Two minutes ago three jobs were claimed, up to 20 ms late; three runs ended, two with an ack, and one failed for good.
const PLANT: &str = "local minute = math.floor(redis.call('TIME')[1] / 60) - 2 redis.call('HSET', KEYS[1], minute % 1440, \
    struct.pack('<I4I4I4I4I4I4I8I6I4I4I4I4I4I4I4I4', minute, 3, 3, 2, 1, 1, 30, 20, 2, 1, 0, 0, 0, 0, 0, 0))";

#[tokio::test]
async fn a_topic_that_keeps_statistics_shows_what_ran_beside_what_falls_due() {
    let server = RedisServer::start();
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    provider.topic("orders").unwrap().add_many_json([json!(1), json!(2)]).after("10m").await.unwrap().all().unwrap();
    provider.topic("mail").unwrap().add_json(json!(1)).after("10m").await.unwrap();
    ask(&mut server.connect(), &["EVAL", PLANT, "1", "dq:{shop:orders}:statistics"]);
    let mut visitor = Visitor::free(provider);
    for scale in ["minutes", "hours"] {
        let page = visitor.get(&format!("/topic?topic=orders&scale={scale}")).await.body;
        let span = if scale == "hours" { "24 hours" } else { "60 minutes" };
        for text in [
            "What ran, and what falls due".to_owned(),
            format!(
                "3 jobs ran in the last {span}, 1 of them failed; half were claimed at most 10 ms late, 99 of 100 at most 20 ms, the latest 20 ms"
            ),
            format!("2 jobs fall due in the next {span}"),
            "ran late, 5 s or more <b>0</b>".into(),
            "<line class=\"now\"".into(),
            "What ran, and how late</caption>".into(),
            "<td>3</td> <td>1</td> <td>1</td>".replace("> <", "><"),
            "In the last five minutes".into(),
        ] {
            assert!(page.contains(&text), "{text}: {page}");
        }
        assert!(page.len() < 150_000, "{}", page.len());
    }
    let days = visitor.get("/topic?topic=orders&scale=days").await.body;
    assert!(!days.contains("What ran") && days.contains("2 jobs fall due in the next 30 days"), "{days}");
    let other = visitor.get("/topic?topic=mail").await.body;
    assert!(!other.contains("jobs ran") && other.contains("What falls due"), "{other}");
    let overview = visitor.get("/").await.body;
    for text in ["Ran a minute", "99 of 100 at most 20 ms late"] {
        assert!(overview.contains(text), "{text}: {overview}");
    }
    let past = visitor.get("/api/v1/topics/orders/past").await.json();
    assert_eq!(
        (&past["past"]["hours"]["whole"]["ran"], &past["past"]["hours"]["whole"]["failed"]),
        (&json!(3), &json!(1))
    );
    assert!(visitor.get("/api/v1/topics/mail/past").await.json()["past"].is_null());
}
