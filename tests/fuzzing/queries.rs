//! Requests to the dashboard and its API: nothing without a right, no panic, and no answer of 500.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use dq::environment::TokioClock;
use dq::store::memory::MemoryStore;
use dq_dashboard::{Access, Dashboard, Role, User};
use http_body_util::BodyExt;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use tower::ServiceExt;

use crate::draw::{Draw, NOW};
use crate::grammar;
use crate::node::{Node, paused};
use crate::target::Found;

/// How many requests a dashboard gets.
const REQUESTS: u64 = 40;
const CHANGES: &str = "a-token-of-one-who-may-change-things";
const LOOKS: &str = "a-token-of-one-who-may-only-look-at";

const API: [&str; 14] = [
    "",
    "/T",
    "/T/nodes",
    "/T/timeline",
    "/T/past",
    "/T/jobs",
    "/T/jobs/I",
    "/T/jobs/I/why",
    "/T/schedules",
    "/T/schedules/I",
    "/T/bulk",
    "/T/pause",
    "/T/jobs/I/requeue",
    "/T/jobs/I/reschedule",
];
const PAGES: [&str; 12] = [
    "/",
    "/topic",
    "/jobs",
    "/job",
    "/dead",
    "/unacked",
    "/nodes",
    "/doctor",
    "/schedules",
    "/confirm",
    "/act",
    "/live/topic",
];
const KEYS: [&str; 16] = [
    "topic",
    "id",
    "state",
    "id_prefix",
    "header",
    "error",
    "attempts",
    "from",
    "until",
    "after",
    "after_at",
    "after_id",
    "action",
    "reason",
    "when",
    "form_token",
];

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn word(draw: &Draw) -> String {
    let known = ["t", "kept", "delayed", "dead", "pause", "delete", "1h", "2026-01-01T00:00:00Z", "a=b"];
    match draw.below(4) {
        0 => draw.text(),
        1 => draw.number().to_string(),
        _ => draw.pick(&known).to_owned(),
    }
}

fn path(draw: &Draw, is_api: bool) -> String {
    let id = if draw.one_in(2) { "kept".to_owned() } else { encoded(&grammar::id(draw)) };
    let topic = if draw.one_in(6) { encoded(&draw.text()) } else { "t".to_owned() };
    let mut path = match is_api {
        true => format!("/api/v1/topics{}", draw.pick(&API)).replace('T', &topic).replace('I', &id),
        false => draw.pick(&PAGES).to_owned(),
    };
    if draw.one_in(30) {
        path.push_str("/%FF%00..%2F");
    }
    let pairs = (0..draw.below(5)).map(|_| format!("{}={}", draw.pick(&KEYS), encoded(&word(draw))));
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

fn body(draw: &Draw, is_api: bool) -> String {
    if !is_api {
        return (0..draw.below(6))
            .map(|_| format!("{}={}", draw.pick(&KEYS), encoded(&word(draw))))
            .collect::<Vec<_>>()
            .join("&");
    }
    let body = match draw.below(6) {
        0 => json!({}),
        1 => json!({ "payload": grammar::value(draw, 2), "id": grammar::id(draw), "after": grammar::duration(draw) }),
        2 => json!({ "payload": 1, "retry": grammar::retry(draw), "headers": [[draw.text(), draw.text()]] }),
        3 => json!({ "reason": draw.text(), "lasting": grammar::duration(draw) }),
        4 => {
            json!({ "action": word(draw), "state": word(draw), "error": draw.text(), "from": word(draw), "after": [draw.number(), draw.text()] })
        }
        _ => grammar::value(draw, 3),
    };
    let text = body.to_string();
    if draw.one_in(20) { draw.spoiled(&text) } else { text }
}

/// A request, and whether it has the right to change anything.
fn request(draw: &Draw) -> Option<(Request<Body>, bool)> {
    let is_api = draw.one_in(2);
    let methods = [Method::GET, Method::POST, Method::POST, Method::DELETE, Method::PUT];
    let method = methods[draw.below(5) as usize].clone();
    let token = draw.pick(&[CHANGES, LOOKS, "", "Bearer", CHANGES]);
    let host = draw.pick(&["localhost", "localhost", "localhost", "evil.example"]);
    let mut request = Request::builder().method(method).uri(path(draw, is_api)).header("host", host);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let is_foreign = draw.one_in(4);
    if is_foreign {
        request = request.header("origin", "https://evil.example").header("sec-fetch-site", "cross-site");
    }
    let kind = if is_api { "application/json" } else { "application/x-www-form-urlencoded" };
    let request = request.header("content-type", kind).body(Body::from(body(draw, is_api))).ok()?;
    // A token is enough under any name of the host: no page of another site has it.
    Some((request, is_api && token == CHANGES && !is_foreign))
}

/// A dashboard gets requests, beside a node.
pub fn queries(draw: &Draw, found: &mut Found) {
    paused(async {
        let store = Arc::new(MemoryStore::new(Arc::new(TokioClock::at(NOW * 1_000))));
        let node = Node::start(store.clone()).await;
        let provider = node.dq.provider();
        let topic = provider.topic("t").expect("it is a topic");
        topic.add_json(json!(0)).id("kept").after("100d").await.expect("a memory store takes it");
        let access = Access::token("ann", CHANGES).or_token(User::new("bob").with_roles([Role::Look]), LOOKS);
        let router = Dashboard::new(provider.clone(), access).router().expect("it has a good token");
        for _ in 0..REQUESTS {
            let Some((request, may_change)) = request(draw) else { continue };
            let what = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
            let seen = async || {
                (
                    topic.counts().await.ok().map(|counts| (counts.delayed, counts.dead, counts.unacked)),
                    topic.state().await.ok(),
                    topic.get("kept").await.ok().flatten().map(|job| job.place),
                )
            };
            let before = seen().await;
            let Ok(answer) = router.clone().oneshot(request).await;
            let status = answer.status();
            found.input(status.is_success());
            if !what.contains("/live/") {
                let _ = answer.into_body().collect().await;
            }
            if status == StatusCode::INTERNAL_SERVER_ERROR {
                found.lost(format!("{what}: {status}"));
            }
            if !may_change && seen().await != before {
                found.let_in(format!("{what}: {status}"));
            }
            node.dq.advance(Duration::from_millis(50)).await;
        }
        let _ = topic.clear_default_delay().await;
        node.runs_innocent_jobs(found).await;
    });
}
