//! The JSON API.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use dq::Provider;
use dq::config::NodeSettings;
use dq::environment::{Environment, StoreClock};
use dq::job::{AppName, limits};
use dq::store::memory::MemoryStore;
use dq::testing::ManualClock;
use dq_tests::limits::samples;
use serde_json::{Value, json};

use super::visitor::{Visitor, provider};

#[tokio::test]
async fn a_program_adds_looks_changes_and_deletes() {
    let provider = provider("api").await;
    let mut program = Visitor::free(provider.clone());
    let job = json!({ "payload": { "order": 7 }, "id": "o/7", "after": "1h", "headers": [["source", "test"]] });
    let added = program.call(Method::POST, "/topics/mail/jobs", &job).await;
    assert_eq!((added.status, added.json()), (StatusCode::CREATED, json!({ "id": "o/7", "how": "added" })));
    let again = program.call(Method::POST, "/topics/mail/jobs", &job).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let mut kept = job.clone();
    kept["on_duplicate"] = "keep".into();
    let kept = program.call(Method::POST, "/topics/mail/jobs", &kept).await;
    assert_eq!((kept.status, kept.json()["how"].clone()), (StatusCode::OK, json!("kept")));
    let topics = program.get("/api/v1/topics").await.json();
    assert_eq!((&topics["topics"][0]["topic"], &topics["topics"][0]["delayed"]), (&json!("mail"), &json!(1)));
    let page = program.get("/api/v1/topics/mail/jobs?header=source%3Dtest").await.json();
    assert_eq!((&page["jobs"][0]["id"], &page["looked_at"]), (&json!("o/7"), &json!(1)));
    let why = program.get("/api/v1/topics/mail/jobs/o%2F7/why").await.json();
    assert_eq!(why["reasons"][0]["reason"], "not_due_yet");
    let hours: u64 = program.get("/api/v1/topics/mail/timeline").await.json()["hours"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hour| hour["jobs"].as_u64().unwrap())
        .sum();
    assert_eq!(hours, 1);
    let moved = program.call(Method::POST, "/topics/mail/jobs/o%2F7/reschedule", &json!({ "when": "2h" })).await;
    assert!(moved.json()["changed"] == true && moved.json()["former"].as_u64() > Some(0), "{}", moved.body);
    let gone = program.call(Method::DELETE, "/topics/mail/jobs/o%2F7", &Value::Null).await;
    assert_eq!(gone.json(), json!({ "changed": true, "found": "delayed" }));
    assert_eq!(program.get("/api/v1/topics/mail/jobs/o%2F7").await.status, StatusCode::NOT_FOUND);
}

/// The header as the draft of the IETF writes it, and as most clients do; and bodies that say the same.
#[tokio::test]
async fn an_idempotency_key_adds_one_job_in_its_time_whatever_becomes_of_it() {
    let clock = Arc::new(ManualClock::at(1_763_000_000_000_000));
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn StoreClock>));
    let environment = Environment::of_this_runtime().unwrap();
    let provider = Provider::root(AppName::new("shop").unwrap(), store, environment, NodeSettings::default());
    let add = async |key: &str, body: Value| {
        let mut program = Visitor::free(provider.clone()).with("idempotency-key", key);
        let added = program.call(Method::POST, "/topics/mail/jobs", &body).await;
        (added.status.as_u16(), added.json())
    };
    let added = |id: &str| (201, json!({ "id": id, "how": "added" }));
    let kept = |id: &str, state: &str| (200, json!({ "id": id, "how": "kept", "state": state }));
    let job = || json!({ "payload": 1, "after": "1h" });
    assert_eq!(add("o-7", job()).await, added("o-7"));
    assert_eq!(add("\"o-7\"", job()).await, kept("o-7", "delayed"));
    assert_eq!(add(r#""a \"b\" \\ c""#, job()).await, added(r#"a "b" \ c"#));
    assert_eq!(add("long", json!({ "payload": 1, "unique_for": "30d" })).await, added("long"));
    assert_eq!(add("strict", json!({ "payload": 1, "on_duplicate": "fail", "id": "strict" })).await, added("strict"));
    let mut program = Visitor::free(provider.clone());
    for id in ["o-7", "long", "strict"] {
        program.call(Method::POST, &format!("/topics/mail/jobs/{id}/ack"), &json!({})).await;
    }
    program.call(Method::DELETE, "/topics/mail/jobs/a%20%22b%22%20%5C%20c", &Value::Null).await;
    for seconds in [1, 3_600, 23 * 3_600 - 3_602] {
        clock.advance(Duration::from_secs(seconds));
        assert_eq!(add("o-7", job()).await, kept("o-7", "done"));
        assert_eq!(add(r#""a \"b\" \\ c""#, job()).await, kept(r#"a "b" \ c"#, "deleted"));
        assert_eq!(add("strict", json!({ "payload": 1, "on_duplicate": "fail" })).await.0, 409);
    }
    clock.advance(Duration::from_secs(3_601));
    assert_eq!(add("o-7", job()).await, added("o-7"));
    assert_eq!(add("long", job()).await, kept("long", "done"));
    for (key, body, says) in [
        ("o-8", json!({ "payload": 1, "id": "o-9" }), "another one"),
        ("o-8", json!({ "payload": 1, "on_duplicate": "replace" }), "at each repeat"),
        ("\"o-8", json!({ "payload": 1 }), "has to end with one"),
        (r#""o\8""#, json!({ "payload": 1 }), "backslash"),
        ("", json!({ "payload": 1 }), "id"),
        ("o-8", json!({ "payload": 1, "unique_for": "1ms" }), "unique_for"),
    ] {
        let (status, answer) = add(key, body).await;
        assert!(status == 400 && answer["error"].as_str().unwrap().contains(says), "{key}: {answer}");
    }
    let twice = Visitor {
        headers: vec![("host", "localhost".into()), ("idempotency-key", "a".into()), ("idempotency-key", "b".into())],
        ..Visitor::free(provider.clone())
    };
    assert_eq!({ twice }.call(Method::POST, "/topics/mail/jobs", &job()).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_program_adds_members_to_a_set_and_closes_it() {
    let mut program = Visitor::free(provider("api-sets").await);
    let member =
        |id: &str| json!({ "payload": 1, "id": id, "after": "1h", "set": { "topic": "imported", "name": "import/7" } });
    for _ in 0..2 {
        let added = program.call(Method::POST, "/topics/row/jobs", &member("a")).await;
        assert_eq!((added.status, added.json()), (StatusCode::ACCEPTED, json!({ "id": "a", "how": "member" })));
    }
    let mut waits = member("b");
    (waits["set"]["on_dead"], waits["on_duplicate"]) = ("wait".into(), "replace".into());
    assert_eq!(program.call(Method::POST, "/topics/row/jobs", &waits).await.status, StatusCode::ACCEPTED);
    let list = program.get("/api/v1/topics/imported/sets").await.json();
    let counts = json!({ "members": 2, "acked": 0, "dead": 0, "left": 0 });
    assert_eq!((&list["sets"][0]["counts"], &list["next"]), (&counts, &Value::Null), "{list}");
    let set = "/topics/imported/sets/import%2F7";
    let seen = program.get(&format!("/api/v1{set}")).await.json();
    assert_eq!((&seen["state"], &seen["waits_for"]), (&json!("open"), &json!([["row", "a"], ["row", "b"]])), "{seen}");
    for _ in 0..2 {
        let closed = program.call(Method::POST, &format!("{set}/close"), &json!({ "payload": 2, "id": "then" })).await;
        assert_eq!((closed.status, &closed.json()["state"]), (StatusCode::OK, &json!("closed")), "{}", closed.body);
    }
    let mut without_id = member("c");
    without_id["id"] = Value::Null;
    let (mut eats, mut unknown, mut news) = (member("c"), member("c"), member("c"));
    eats["set"]["on_dead"] = "eat".into();
    unknown["on_duplicate"] = "eat".into();
    news["set"]["name"] = "".into();
    for (path, body, status, says) in [
        ("/topics/row/jobs", member("c"), 409, "the set is closed"),
        ("/topics/row/jobs", without_id, 400, "needs an `id`"),
        ("/topics/row/jobs", eats, 422, "eat"),
        ("/topics/row/jobs", unknown, 400, "fail, keep or replace"),
        ("/topics/row/jobs", news, 400, "empty"),
        ("/topics/imported/sets/import%2F7/close", member("c"), 400, "takes no `set`"),
    ] {
        let refused = program.call(Method::POST, path, &body).await;
        let error = refused.json()["error"].to_string();
        assert!(refused.status.as_u16() == status && error.contains(says), "{body}: {}", refused.body);
    }
    assert_eq!(program.get("/api/v1/topics/imported/sets/none").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_change_that_names_another_version_is_refused() {
    let provider = provider("versions").await;
    let mut program = Visitor::free(provider.clone());
    program.call(Method::POST, "/topics/mail/jobs", &json!({ "payload": 1, "id": "a", "after": "1h" })).await;
    program.call(Method::POST, "/topics/mail/jobs/a/reschedule", &json!({ "when": "2h", "if_version": 0 })).await;
    for (method, path, body) in [
        (Method::POST, "/topics/mail/jobs/a/reschedule", json!({ "when": "3h", "if_version": 0 })),
        (Method::POST, "/topics/mail/jobs/a/run-now", json!({ "if_version": 2 })),
        (Method::POST, "/topics/mail/jobs/a/requeue", json!({ "if_version": 2 })),
        (Method::POST, "/topics/mail/jobs/a/ack", json!({ "if_version": 0 })),
        (Method::DELETE, "/topics/mail/jobs/a?if_version=0", Value::Null),
    ] {
        let answer = program.call(method, path, &body).await;
        let says = answer.json()["error"].as_str().unwrap_or_default().contains("its version is 1");
        assert!(answer.status == StatusCode::CONFLICT && says, "{path}: {}", answer.body);
    }
    let answer = program.call(Method::DELETE, "/topics/mail/jobs/a?if_version=one", &Value::Null).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let gone = program.call(Method::DELETE, "/topics/mail/jobs/a?if_version=1", &Value::Null).await;
    assert_eq!(gone.json(), json!({ "changed": true, "found": "delayed" }));
}

/// A time with a fraction lost its offset: a job was due hours late, and a bulk delete took jobs that did not match.
#[tokio::test]
async fn a_time_keeps_its_offset_and_one_without_an_offset_is_refused() {
    let mut program = Visitor::free(provider("times").await);
    for (n, at, due) in [
        (0, "2027-01-01T12:00:00.500000+05:30", 1_798_785_000_500_u64),
        (1, "2027-01-01T12:00:00-08:00", 1_798_833_600_000),
        (2, "2027-01-01 12:00:00 UTC", 1_798_804_800_000),
        (3, "1798804800001", 1_798_804_800_001),
    ] {
        let job = json!({ "payload": n, "id": format!("t{n}"), "at": at });
        assert_eq!(program.call(Method::POST, "/topics/mail/jobs", &job).await.status, StatusCode::CREATED, "{at}");
        let seen = program.get(&format!("/api/v1/topics/mail/jobs/t{n}")).await;
        assert!(seen.body.contains(&due.to_string()), "{at}: {}", seen.body);
    }
    let until = |until: &str| json!({ "action": "delete", "state": "delayed", "until": until });
    let deleted = program.call(Method::POST, "/topics/mail/bulk", &until("2027-01-01T12:00:00.000+02:00")).await;
    assert_eq!(deleted.json()["changed"], 1, "{}", deleted.body);
    for (text, says) in [
        ("2027-01-01T12:00:00", "has no offset from UTC: write"),
        ("2027-01-01T12:00:00Zjunk", "is not a time with an offset"),
        ("1798804800", "write milliseconds, `1798804800000`, or `2027-01-01T12:00:00Z`"),
        ("1798804800000000", "too large for milliseconds"),
    ] {
        let pages = ["/api/v1/topics/mail/jobs", "/jobs"].map(|path| {
            let text = text.replace(':', "%3A");
            format!("{path}?topic=mail&state=delayed&until={text}")
        });
        let mut answers = vec![
            program.call(Method::POST, "/topics/mail/jobs", &json!({ "payload": 1, "at": text })).await,
            program.call(Method::POST, "/topics/mail/jobs/t1/reschedule", &json!({ "when": text })).await,
            program.call(Method::POST, "/topics/mail/bulk", &until(text)).await,
            program.get(&pages[0]).await,
            program.get(&pages[1]).await,
        ];
        for answer in answers.drain(..) {
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{text}: {}", answer.body);
            assert!(answer.body.contains(says), "{text}: {}", answer.body);
        }
    }
    let form = program.get("/jobs?topic=mail&state=delayed&from=+2027-01-01+12%3A00%3A00+UTC+").await;
    assert!(form.status == StatusCode::OK && form.body.contains("t3") && !form.body.contains("t0"), "{}", form.body);
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_told_what_is_wrong() {
    let mut program = Visitor::free(provider("nonsense").await);
    for (method, path, body, status, says) in [
        (Method::POST, "/topics/mail/jobs", json!({ "payload": 1, "affter": "1h" }), 422, "affter"),
        (Method::POST, "/topics/mail/jobs", json!({ "payload": 1, "after": "soon" }), 400, "after"),
        (Method::POST, "/topics/mail/jobs", json!({ "payload": 1, "after": "1h", "at": "1" }), 400, "not both"),
        (Method::POST, "/topics/ma%20il/jobs", json!({ "payload": 1 }), 400, "topic"),
        (Method::POST, "/topics/mail/pause", json!({ "reason": "" }), 400, "reason"),
        (
            Method::POST,
            "/topics/mail/limit",
            json!({ "kind": "cluster_concurrency", "value": 0 }),
            400,
            "the least is 1",
        ),
        (Method::POST, "/topics/mail/limit", json!({ "kind": "speed", "value": 1 }), 400, "a kind of limit"),
        (Method::POST, "/topics/mail/bulk", json!({ "action": "eat", "state": "dead" }), 400, "eat"),
        (Method::POST, "/topics/mail/jobs/a/run-now", json!({}), 404, "a"),
        (Method::POST, "/topics/mail/jobs/a/reschedule", json!({ "when": "never" }), 400, "never"),
        (Method::GET, "/nothing", Value::Null, 404, "path"),
        (Method::GET, "/topics?cursor=a&cursor=b", Value::Null, 400, "duplicate"),
        (Method::GET, "/topics/%FF", Value::Null, 400, "UTF-8"),
        (Method::PUT, "/topics", Value::Null, 405, "Not Allowed"),
    ] {
        let answer = program.call(method, path, &body).await;
        assert_eq!(answer.status.as_u16(), status, "{path} {body}: {}", answer.body);
        assert!(answer.json()["error"].as_str().unwrap().contains(says), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn orchestrators_learn_whether_it_lives_and_is_ready() {
    let server = dq_tests::redis::RedisServer::start();
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    let mut visitor = Visitor::free(provider);
    assert_eq!(visitor.get("/readyz").await.status, StatusCode::OK);
    drop(server);
    // The last answer is good for a second.
    while visitor.get("/readyz").await.status == StatusCode::OK {}
    assert_eq!(visitor.get("/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(visitor.get("/healthz").await.status, StatusCode::OK);
}

/// Any program may write a key of the topic that the probe asks about, and nothing else uses that topic.
#[tokio::test]
async fn a_key_of_a_wrong_type_in_the_topic_of_the_probe_is_an_answer_of_the_store() {
    let server = dq_tests::redis::RedisServer::start();
    for key in ["jobs", "delayed", "far-jobs"] {
        server.command(&["SET", &format!("dq:{{shop:dq-ready}}:{key}"), "mine"]);
    }
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    assert_eq!(Visitor::free(provider).get("/readyz").await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_add_keeps_to_every_limit_that_a_program_can_reach() {
    let provider = provider("api-limits").await;
    let mut program = Visitor::free(provider.clone());
    for sample in samples().into_iter().filter(|sample| sample.every().is_none()) {
        let is_reached = matches!(sample.limit, limits::ID | limits::HEADERS | limits::CONTROLS | limits::PAYLOAD);
        if !is_reached {
            continue; // no field of the body names a fence, a time of a record or an error, and no retry policy is so long
        }
        let payload: Value = serde_json::from_str(&sample.payload()).unwrap();
        let job = json!({ "payload": payload, "id": sample.id(), "after": "1h", "headers": sample.texts().headers });
        let added = program.call(Method::POST, "/topics/mail/jobs", &job).await;
        // A body has at most a megabyte, and a payload what the settings say.
        let is_large = sample.limit == limits::PAYLOAD && sample.size > 1 << 20;
        let wanted = match sample.is_within() {
            _ if is_large => StatusCode::PAYLOAD_TOO_LARGE,
            true => StatusCode::CREATED,
            false => StatusCode::BAD_REQUEST,
        };
        assert_eq!(added.status, wanted, "{}: {}", sample.name(), added.body);
        let found = provider.topic("mail").unwrap().get(sample.id()).await;
        assert_eq!(matches!(found, Ok(Some(_))), wanted == StatusCode::CREATED, "{}", sample.name());
    }
}
