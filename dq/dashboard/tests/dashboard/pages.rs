//! What the pages show and do, without scripts.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use dq::Provider;
use dq::environment::WallClock;
use dq::job::{AppName, TopicKey, TopicName};
use dq::store::memory::MemoryStore;
use dq::store::{HistorySetting, Store};
use dq_dashboard::{Access, Dashboard};
use dq_tests::redis::RedisServer;
use serde_json::json;

use super::visitor::{Visitor, provider};

#[tokio::test]
async fn hostile_ids_headers_and_topics_are_text() {
    let provider = provider("hostile").await;
    let (id, header) = ("<script>alert(1)</script>'\"/&", "\"><img src=x onerror=alert(1)>");
    let add = provider.topic("mail").unwrap().add_json(json!("x")).id(id).after("1h").header("note", header);
    add.await.unwrap();
    let mut visitor = Visitor::free(provider);
    let id = "%3Cscript%3Ealert%281%29%3C%2Fscript%3E%27%22%2F%26";
    for page in [
        "/jobs?topic=mail".to_owned(),
        format!("/job?topic=mail&id={id}"),
        format!("/confirm?action=delete&topic=mail&id={id}"),
    ] {
        let answer = visitor.get(&page).await;
        assert!(answer.body.contains("&lt;script&gt;alert(1)"), "{page}: {}", answer.body);
        assert!(!answer.body.contains("<script>alert") && !answer.body.contains("<img src=x"), "{page}");
    }
    for page in [
        "/topic?topic=%3Cscript%3E",
        "/jobs?topic=mail&state=%3Cscript%3E",
        "/job?topic=mail&id=%00",
        "/jobs?topic=mail&from=%3Cb%3E",
    ] {
        let answer = visitor.get(page).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{page}");
        assert!(!answer.body.contains("<script>") && !answer.body.contains("<b>"), "{page}");
    }
}

#[tokio::test]
async fn actions_ask_first_and_say_what_they_did() {
    let provider = provider("actions").await;
    let topic = provider.topic("mail").unwrap();
    topic.add_json(json!(1)).id("a").after("1h").await.unwrap();
    let mut visitor = Visitor::free(provider.clone());
    let done = visitor.confirm("action=pause&topic=mail", "reason=the+bank+is+down").await;
    assert_eq!(
        (done.status, done.header("location")),
        (StatusCode::SEE_OTHER, "/topic?topic=mail&done=pause&undo=resume")
    );
    let page = visitor.get(done.header("location")).await;
    assert!(page.body.contains("The topic is paused.") && page.body.contains("the bank is down"), "{}", page.body);
    assert!(page.body.contains("Undo: Resume the topic"), "{}", page.body);
    let pause = topic.state().await.unwrap().pause.unwrap();
    assert_eq!((pause.by.as_str(), pause.reason.as_str()), ("everyone (dashboard)", "the bank is down"));
    visitor.confirm("action=resume&topic=mail", "").await;
    assert_eq!(topic.state().await.unwrap().pause, None);
    let before = topic.get("a").await.unwrap().unwrap().place;
    let moved = visitor.confirm("action=reschedule&topic=mail&id=a", "due=2h").await;
    let to = moved.header("location");
    assert!(to.starts_with("/job?topic=mail&id=a&done=reschedule&undo=reschedule&former=1"), "{to}");
    assert_ne!(topic.get("a").await.unwrap().unwrap().place, before);
    let asked = visitor.get("/confirm?action=delete&topic=mail&id=a").await;
    assert!(asked.body.contains("This cannot be undone."), "{}", asked.body);
    visitor.confirm("action=delete&topic=mail&id=a", "").await;
    assert!(topic.get("a").await.unwrap().is_none());
    let again = visitor.confirm("action=delete&topic=mail&id=a", "").await;
    assert_eq!(again.header("location"), "/job?topic=mail&id=a&done=nothing");
}

#[tokio::test]
async fn links_fit_to_wherever_it_is_nested() {
    let provider = provider("nested").await;
    provider.topic("mail").unwrap().add_json(json!(1)).after("1h").await.unwrap();
    let dashboard = || Dashboard::new(provider.clone(), Access::everyone_who_reaches_it());
    let app = Router::new().nest("/ops", Router::new().merge(dashboard().at("/admin/dq").unwrap()));
    let mut visitor = Visitor::free(provider.clone());
    visitor.router = app;
    let page = visitor.get("/ops/admin/dq").await;
    assert!(page.body.contains("href=\"/ops/admin/dq/topic?topic=mail\""), "{}", page.body);
    assert!(page.header("set-cookie").contains("Path=/ops/admin/dq;"), "{}", page.header("set-cookie"));
    let slash = visitor.get("/ops/admin/dq/").await;
    assert_eq!((slash.status, slash.header("location")), (StatusCode::PERMANENT_REDIRECT, "../dq"));
    let asset = visitor.get("/ops/admin/dq/assets/dq.css").await;
    assert_eq!((asset.status, asset.header("content-type")), (StatusCode::OK, "text/css; charset=utf-8"));
    let known = visitor.clone().with("if-none-match", asset.header("etag")).get("/ops/admin/dq/assets/dq.css").await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
    for path in ["", "/", "admin", "/admin/", "/{topic}"] {
        assert!(dashboard().at(path).is_err(), "{path}");
    }
}

#[tokio::test]
async fn payloads_are_hidden_unless_the_program_shows_them() {
    let provider = provider("payloads").await;
    let topic = provider.topic("mail").unwrap();
    let add = topic.add_json(json!({ "card": "4111", "to": "<b>ann</b>" }));
    add.id("a").after("1h").await.unwrap();
    let page = Visitor::free(provider.clone()).get("/job?topic=mail&id=a").await;
    assert!(page.body.contains("Payloads are hidden") && !page.body.contains("4111"), "{}", page.body);
    let redact =
        |topic: &str, payload: &[u8]| format!("{topic} {}", String::from_utf8_lossy(payload).replace("4111", "…"));
    let shows = Dashboard::new(provider, Access::everyone_who_reaches_it()).show_payloads(redact);
    topic.add_json(json!("ü".repeat(50_000))).id("large").after("1h").await.unwrap();
    let mut visitor = Visitor::of(shows);
    let large = visitor.get("/api/v1/topics/mail/jobs/large").await.json();
    let shown = large["payload"].as_str().unwrap();
    assert!(shown.len() <= (64 << 10) + 3 && shown.ends_with("ü…"), "{} bytes are shown", shown.len());
    let page = visitor.get("/job?topic=mail&id=a").await;
    assert!(page.body.contains("&lt;b&gt;ann") && !page.body.contains("4111"), "{}", page.body);
    let job = visitor.get("/api/v1/topics/mail/jobs/a").await.json();
    assert_eq!(job["payload"], "mail {\"card\":\"…\",\"to\":\"<b>ann</b>\"}");
}

#[tokio::test]
async fn the_sets_of_a_topic_have_their_progress_and_what_they_wait_for() {
    let provider = provider("sets").await;
    let (home, rows) = (provider.topic("imported").unwrap(), provider.topic("row").unwrap());
    let mut visitor = Visitor::free(provider);
    let empty = visitor.get("/sets?topic=imported").await;
    assert!(empty.body.contains("No job set lives in this topic."), "{}", empty.body);
    assert!(!visitor.get("/topic?topic=imported").await.body.contains("Job sets"));
    let name = "<b>import</b>";
    for id in ["<i>1</i>", "2"] {
        rows.add_json(json!(1)).id(id).after("1h").member_of(&home, name).await.unwrap();
    }
    for n in 0..105 {
        rows.add_json(json!(1)).id(format!("{n:03}")).after("1h").member_of(&home, "large").await.unwrap();
        home.add_json(json!(1)).last_of(format!("ended-{n}")).await.unwrap();
    }
    home.add_json(json!(1)).last_of(name).await.unwrap();
    let link = "href=\"/set?topic=imported&amp;name=%3Cb%3Eimport%3C%2Fb%3E\"";
    for page in ["/sets?topic=imported", "/topic?topic=imported"] {
        let body = visitor.get(page).await.body;
        assert!(body.contains(link) && body.contains("&lt;b&gt;import&lt;/b&gt;"), "{page}: {body}");
        assert!(body.contains("<progress max=\"2\" value=\"0\"") && body.contains("closed"), "{page}: {body}");
        assert!(body.contains("href=\"/sets?topic=imported"), "there are more: {page}: {body}");
    }
    let rest = visitor.get("/sets?topic=imported&from=100").await.body;
    assert!(rest.contains("ended-") && !rest.contains("Next page"), "{rest}");
    let set = visitor.get("/set?topic=imported&name=%3Cb%3Eimport%3C%2Fb%3E").await.body;
    let member = "href=\"/job?topic=row&amp;id=%3Ci%3E1%3C%2Fi%3E\"";
    assert!(set.contains(member) && set.contains("2 of 2 members that have not ended"), "{set}");
    let large = visitor.get("/set?topic=imported&name=large").await.body;
    assert!(large.contains("100 of 105 members") && large.contains("It takes members until"), "{large}");
    let ended = visitor.get("/set?topic=imported&name=ended-1").await.body;
    assert!(ended.contains("its last job was added") && !ended.contains("What it waits for"), "{ended}");
    let none = visitor.get("/set?topic=imported&name=none").await;
    assert!(none.status == StatusCode::NOT_FOUND && none.body.contains("there is no such job set"), "{}", none.body);
}

#[tokio::test]
async fn the_page_of_a_job_shows_its_history_and_who_deleted_it() {
    let provider = provider("history").await;
    let store = MemoryStore::named("dashboard-history", Arc::new(WallClock));
    let key = TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new("mail").unwrap() };
    let setting = HistorySetting { moves: 20, after: Duration::from_secs(60) };
    store.keep_history(&key, setting).await.unwrap();
    for id in ["a", "b"] {
        provider.topic("mail").unwrap().add_json(json!(1)).id(id).after("1h").await.unwrap();
    }
    provider.by("<b>eve</b>").topic("mail").unwrap().extend_by("a", "1m").await.unwrap();
    let mut visitor = Visitor::of(Dashboard::new(provider, Access::check(|_| Some("anna".into()))));
    let page = visitor.get("/job?topic=mail&id=a").await;
    assert!(page.body.contains("<h2>History</h2>") && page.body.contains("added, due "), "{}", page.body);
    assert!(page.body.contains(", by &lt;b&gt;eve&lt;/b&gt;"), "{}", page.body);
    visitor.confirm("action=delete&topic=mail&id=a", "").await;
    visitor.confirm("action=delete&topic=mail&state=delayed&id_prefix=b", "").await;
    for id in ["a", "b"] {
        let page = visitor.get(&format!("/job?topic=mail&id={id}")).await;
        assert!(page.body.contains("it was deleted by anna (dashboard) at "), "{id}: {}", page.body);
        assert!(page.body.contains("deleted, by anna (dashboard)"), "{id}: {}", page.body);
    }
}

#[tokio::test]
async fn a_topic_with_a_key_of_a_wrong_type_is_a_row_with_its_error_and_the_others_are_shown() {
    let server = RedisServer::start();
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    for name in ["mail", "orders"] {
        provider.topic(name).unwrap().add_json(json!(1)).after("1h").await.unwrap();
    }
    server.command(&["SET", "dq:{shop:mail}:dead", "of another program"]);
    let mut visitor = Visitor::free(provider);
    for page in ["/", "/dead", "/unacked", "/nodes"] {
        let answer = visitor.get(page).await;
        let says = "key `dq:{shop:mail}:dead` has the wrong type";
        assert!(answer.status == StatusCode::OK && answer.body.contains(says), "{page}: {}", answer.body);
    }
    for page in ["/", "/nodes", "/schedules"] {
        assert!(visitor.get(page).await.body.contains("topic=orders"), "{page}");
    }
    let topics = visitor.get("/api/v1/topics").await.json();
    assert!(topics["topics"][0]["error"].as_str().unwrap().contains("wrong type"), "{topics}");
    assert_eq!((&topics["topics"][1]["delayed"], &topics["topics"][1]["error"]), (&json!(1), &json!(null)));
}
