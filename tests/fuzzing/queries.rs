//! Requests to the dashboard and its API: nothing without a right, no panic, and no answer of 500.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use dq::Provider;
use dq::environment::TokioClock;
use dq::store::memory::MemoryStore;
use dq_dashboard::{Access, Dashboard, Role, User};
use http_body_util::BodyExt;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::draw::{Draw, NOW};
use crate::grammar;
use crate::node::{Node, paused};
use crate::routes::{PAGES, Route, filled, roles};
use crate::target::Found;

/// How many requests a dashboard gets.
const REQUESTS: u64 = 40;
const CHANGES: &str = "a-token-of-one-who-may-do-everything";
const OPERATES: &str = "a-token-of-one-who-may-change-things";
pub const LOOKS: &str = "a-token-of-one-who-may-only-look-at";
const ADDS: &str = "a-token-of-one-who-may-only-add-jobs";
const LOOKS_AND_ADDS: &str = "a-token-of-one-who-may-look-and-add";

/// The tokens with their roles.
const USERS: [(&str, &[Role]); 5] = [
    (CHANGES, &[Role::Look, Role::Operate, Role::Add]),
    (OPERATES, &[Role::Look, Role::Operate]),
    (LOOKS, &[Role::Look]),
    (ADDS, &[Role::Add]),
    (LOOKS_AND_ADDS, &[Role::Look, Role::Add]),
];

/// A field of a body or of a form.
type Field = (&'static str, fn(&Draw) -> Value);

/// What a request may have, by its name. A test compares them with what the API describes and with the fields of forms.
const FIELDS: &[Field] = &[
    ("action", |draw| json!(draw.pick(&ACTIONS))),
    ("after", |draw| json!(grammar::duration(draw))),
    ("after_at", |draw| json!(draw.number())),
    ("after_id", |draw| json!(grammar::id(draw))),
    ("all", |draw| json!(draw.number().to_string())),
    ("at", time),
    ("attempts", |draw| json!(draw.below(9))),
    ("changed", |draw| json!(draw.number().to_string())),
    (
        "cursor",
        |draw| if draw.one_in(2) { json!(grammar::id(draw)) } else { json!([draw.number(), grammar::id(draw)]) },
    ),
    ("due", time),
    ("error", |draw| json!(draw.text())),
    ("everywhere", |draw| json!(draw.pick(&["", "1"]))),
    ("expires_after", |draw| json!(grammar::duration(draw))),
    ("form_token", |draw| json!(draw.word())),
    ("from", time),
    ("group", |draw| json!(grammar::group(draw))),
    ("header", |draw| if draw.one_in(2) { json!([draw.text(), draw.text()]) } else { json!("a=b") }),
    ("headers", |draw| (0..draw.below(4)).map(|_| json!([draw.text(), draw.text()])).collect()),
    ("id", |draw| json!(if draw.one_in(2) { "kept".into() } else { grammar::id(draw) })),
    ("id_prefix", |draw| json!(draw.text())),
    ("if_version", |draw| json!(draw.number())),
    ("key", |draw| json!(draw.word())),
    ("kind", |draw| json!(draw.pick(&LIMITS))),
    ("lasting", |draw| json!(grammar::duration(draw))),
    ("limit", |draw| json!(draw.pick(&LIMITS))),
    ("looked_at", |draw| json!(draw.number().to_string())),
    ("name", |draw| json!(draw.pick(&["s", "import-7", ""]))),
    ("on_dead", |draw| json!(draw.pick(&["count", "wait", "cancel_rest", "die"]))),
    ("on_duplicate", |draw| json!(draw.pick(&["fail", "keep", "replace", "extend"]))),
    ("payload", |draw| grammar::value(draw, 2)),
    ("priority", |draw| json!(draw.pick(&["high", "normal", "low", "urgent"]))),
    ("reason", |draw| json!(draw.text())),
    ("retain", |draw| json!(grammar::duration(draw))),
    ("retry", |draw| json!(grammar::retry(draw))),
    (
        "set",
        |draw| json!({ "topic": topic(draw), "name": draw.word(), "on_dead": draw.pick(&["count", "cancel_rest"]) }),
    ),
    ("state", |draw| json!(draw.pick(&["delayed", "running", "unacked", "dead", "done", "lost"]))),
    ("token", |draw| json!(draw.pick(&[CHANGES, OPERATES, LOOKS, ADDS, "no"]))),
    ("topic", |draw| json!(topic(draw))),
    ("unique_for", |draw| json!(grammar::duration(draw))),
    ("until", time),
    ("value", |draw| if draw.one_in(2) { json!(draw.below(100)) } else { json!(draw.pick(&["100/s", "none", ""])) }),
    ("version", |draw| if draw.one_in(2) { json!("0") } else { json!(draw.number().to_string()) }),
    ("weight", |draw| json!(if draw.one_in(3) { draw.number() } else { 1 + draw.below(10_000) })),
    ("when", time),
];
const ACTIONS: [&str; 20] = [
    "pause",
    "resume",
    "drain",
    "undrain",
    "limit",
    "requeue",
    "delete",
    "ack",
    "run_now",
    "reschedule",
    "pause_group",
    "resume_group",
    "pass",
    "pause_schedule",
    "resume_schedule",
    "remove_schedule",
    "repair",
    "cancel",
    "close",
    "go",
];
const LIMITS: [&str; 8] = [
    "cluster_concurrency",
    "rate",
    "max_waiting",
    "group_concurrency",
    "group_rate",
    "group_max_waiting",
    "group_burst",
    "speed",
];

fn time(draw: &Draw) -> Value {
    match draw.below(4) {
        0 => json!(draw.number().to_string()),
        1 => json!(draw.text()),
        2 => json!(grammar::duration(draw)),
        _ => json!(draw.pick(&["2026-01-01T00:00:00Z", "2026-12-01T12:00:00.500000+05:30", "2026-01-01T00:00:00"])),
    }
}

pub fn topic(draw: &Draw) -> String {
    if draw.one_in(6) { draw.text() } else { "t".to_owned() }
}

/// The value of a field, if the grammar has the field.
fn value_of(draw: &Draw, name: &str) -> Option<Value> {
    let (_, value) = FIELDS.iter().find(|(known, _)| *known == name)?;
    Some(value(draw))
}

pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// What stands in a URL or a form: a text without quotes.
fn pair(draw: &Draw, name: &str) -> String {
    let value = value_of(draw, name).unwrap_or_else(|| json!(draw.text()));
    format!("{name}={}", encoded(value.as_str().unwrap_or(&value.to_string())))
}

/// Some of these, each once, or, rarely, twice.
fn pairs<'a>(draw: &Draw, names: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<String> = names.map(|name| pair(draw, name)).collect();
    if draw.one_in(30) {
        all.push(pair(draw, FIELDS[draw.below(FIELDS.len() as u64) as usize].0));
    }
    all.join("&")
}

/// A method, a path with its query, and a body.
type Asks = (Method, String, String);

fn api(draw: &Draw, route: &Route) -> Asks {
    let often = if route.body.len() > 6 { 5 } else { 2 };
    let mut body = json!({});
    for name in route.body.iter().filter(|name| draw.one_in(often) || *name == "payload" && !draw.one_in(12)) {
        body[name] = value_of(draw, name).unwrap_or_default();
    }
    // Fields of fields in the place of fields are refused.
    for name in route.inner.iter().filter(|_| draw.one_in(60)) {
        body[name] = value_of(draw, name).unwrap_or_default();
    }
    if draw.one_in(20) {
        body = grammar::value(draw, 3);
    }
    let text = body.to_string();
    let body = if draw.one_in(20) { draw.spoiled(&text) } else { text };
    let names = route.parameters.iter().map(String::as_str).filter(|_| draw.one_in(3));
    (route.method.clone(), format!("/api/v1{}?{}", filled(draw, &route.path), pairs(draw, names)), body)
}

fn page(draw: &Draw, (method, path, _): (&str, &str, &str), session: Option<&Session>) -> Asks {
    let mut names = vec!["action", "topic"];
    names.extend(FIELDS.iter().map(|(name, _)| *name).filter(|name| draw.one_in(if *name == "id" { 2 } else { 12 })));
    let from = if draw.one_in(12) { 1 } else { 0 };
    names[from..].sort_unstable();
    names.dedup();
    names.retain(|name| session.is_none() || !["form_token", "key"].contains(name));
    if path == "/login" && !draw.one_in(6) {
        names.push("token");
    }
    let mut text = pairs(draw, names[from..].iter().copied());
    let method: Method = method.parse().expect("it is a method");
    match session {
        Some(session) if method == Method::POST && !draw.one_in(8) => {
            text += &format!("&form_token={}&key={}", encoded(&session.form_token), session.key);
        }
        _ => {}
    }
    let path = filled(draw, path);
    if method == Method::GET {
        (method, format!("{path}?{text}"), String::new())
    } else {
        (method, format!("{path}?"), text)
    }
}

/// What a login leaves with a browser.
#[derive(Debug)]
struct Session {
    cookie: String,
    form_token: String,
    key: &'static str,
}

impl Session {
    async fn begin(draw: &Draw, router: &Router, token: &str) -> Self {
        let key = draw.pick(&["", "a-key-of-this-origin"]);
        let form = "application/x-www-form-urlencoded";
        let request = Request::post("/login").header("host", "localhost").header("content-type", form);
        let request = request.body(Body::from(format!("token={token}&key={key}"))).expect("it is a request");
        let Ok(answer) = router.clone().oneshot(request).await;
        let cookie = answer.headers()["set-cookie"].to_str().expect("it is text");
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let request = Request::get("/").header("host", "localhost").header("cookie", &cookie).body(Body::empty());
        let page = text(router, request.expect("it is a request")).await.1;
        let form_token = page.split_once("name=\"form_token\" value=\"").and_then(|(_, rest)| rest.split('"').next());
        Self { form_token: form_token.unwrap_or("none").to_owned(), cookie, key }
    }
}

/// What an answer may have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Right {
    /// It must not succeed.
    Nothing,
    Look,
    /// Jobs may be new; those that were there and the topic are as they were.
    Append,
    Change,
}

impl Right {
    /// Of a user with these roles, on a route that needs those. A request of a foreign page may only look.
    fn of(has: Option<&[Role]>, needs: Option<&[Role]>, reads: bool, is_foreign: bool) -> Self {
        let has_all = |needs: &[Role]| has.is_some_and(|has| needs.iter().all(|role| has.contains(role)));
        match needs {
            Some(needs) if !has_all(needs) || is_foreign && !reads => Self::Nothing,
            Some(needs) if !reads && needs.contains(&Role::Operate) => Self::Change,
            Some(needs) if !reads && needs.contains(&Role::Add) && has_all(&[Role::Operate]) => Self::Change,
            Some(needs) if !reads && needs.contains(&Role::Add) => Self::Append,
            _ => Self::Look,
        }
    }
}

/// A request, and what it has the right to do.
fn request(draw: &Draw, routes: &[Route], sessions: &[Session]) -> Option<(Request<Body>, Right)> {
    let user = (!draw.one_in(8)).then(|| draw.below(USERS.len() as u64 + 1) as usize % USERS.len());
    let session = user.map(|user| &sessions[user]);
    let is_api = draw.one_in(2);
    let ((method, mut path, body), mut needs) = if is_api {
        let route = &routes[draw.below(routes.len() as u64) as usize];
        (api(draw, route), Some(&route.roles[..]))
    } else {
        // Many of the requests to pages are forms.
        let page_of =
            if draw.one_in(3) { ("POST", "/act", "OPERATE") } else { PAGES[draw.below(PAGES.len() as u64) as usize] };
        (page(draw, page_of, session), roles(page_of.2))
    };
    let reads = method == Method::GET;
    let (method, mut is_served) = match draw.below(16) {
        0 | 1 if reads => (Method::HEAD, true),
        // No route has these methods.
        2 => ([Method::PUT, Method::PATCH, Method::OPTIONS, Method::TRACE][draw.below(4) as usize].clone(), false),
        _ => (method, true),
    };
    if draw.one_in(30) {
        path = path.replacen('?', "/%FF%00..%2F?", 1);
        (is_served, needs) = (is_served && reads, Some(&[Role::Look][..]));
    }
    let host = draw.pick(&["localhost", "localhost", "localhost", "evil.example"]);
    let mut request = Request::builder().method(method).uri(path).header("host", host);
    match (user, session) {
        // A token is of no use in pages, and a cookie of none in the API.
        (Some(user), Some(session)) if draw.one_in(20) => {
            request = request.header("cookie", &session.cookie);
            request = request.header("authorization", format!("Bearer {}", USERS[user].0));
        }
        (Some(user), _) if is_api => request = request.header("authorization", format!("Bearer {}", USERS[user].0)),
        (_, Some(session)) => request = request.header("cookie", &session.cookie),
        _ if draw.one_in(2) => {
            request = request.header("authorization", draw.pick(&["Bearer", "Bearer x", "", "Basic"]))
        }
        _ => {}
    }
    if draw.one_in(12) {
        request = request.header("idempotency-key", draw.word());
    }
    let is_foreign = draw.one_in(6);
    if is_foreign {
        request = request.header("origin", "https://evil.example").header("sec-fetch-site", "cross-site");
    }
    let kind = if is_api { "application/json" } else { "application/x-www-form-urlencoded" };
    let request = request.header("content-type", kind).body(Body::from(body)).ok()?;
    let right = Right::of(user.map(|user| USERS[user].1), needs, reads, is_foreign);
    Some((request, if is_served { right } else { Right::Nothing }))
}

/// The status and the body of an answer.
pub async fn text(router: &Router, request: Request<Body>) -> (StatusCode, String) {
    let is_live = request.uri().path().starts_with("/live/");
    let Ok(answer) = router.clone().oneshot(request).await;
    let status = answer.status();
    // A live page has no end.
    let body = if is_live { None } else { answer.into_body().collect().await.ok() };
    (status, body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned()).unwrap_or_default())
}

/// A dashboard gets requests, beside a node.
pub fn queries(draw: &Draw, found: &mut Found) {
    paused(async {
        let store = Arc::new(MemoryStore::new(Arc::new(TokioClock::at(NOW * 1_000))));
        let node = Node::start(store.clone()).await;
        let provider = node.dq.provider();
        let topic = provider.topic("t").expect("it is a topic");
        topic.add_json(json!(0)).id("kept").after("100d").await.expect("a memory store takes it");
        let router = router(provider.clone());
        let routes = Route::ask(&router).await;
        let mut sessions = Vec::new();
        for (token, _) in USERS {
            sessions.push(Session::begin(draw, &router, token).await);
        }
        for _ in 0..REQUESTS {
            let Some((request, right)) = request(draw, routes, &sessions) else { continue };
            let what = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
            let counts = async || topic.counts().await.ok().map(|counts| (counts.delayed, counts.dead, counts.unacked));
            let seen = async || (topic.state().await.ok(), topic.get("kept").await.ok().flatten().map(|job| job.place));
            let before = (counts().await, seen().await);
            let (status, _) = text(&router, request).await;
            found.input(status.is_success());
            if status == StatusCode::INTERNAL_SERVER_ERROR {
                found.lost(format!("{what}: {status}"));
            }
            let after = (counts().await, seen().await);
            let is_there = before.1.1.is_some();
            let is_let_in = match right {
                Right::Change => false,
                Right::Append => after.1.0 != before.1.0 || is_there && after.1.1 != before.1.1,
                Right::Look => after != before,
                Right::Nothing => after != before || status.is_success(),
            };
            if is_let_in {
                found.let_in(format!("{what}: {status}, {right:?}, {before:?}, {after:?}"));
            }
            node.dq.advance(Duration::from_millis(50)).await;
        }
        let _ = topic.clear_default_delay().await;
        node.runs_innocent_jobs(found).await;
    });
}

pub fn router(provider: Provider) -> Router {
    let user = |number: usize| User::new(format!("user {number}")).with_roles(USERS[number].1.iter().copied());
    let access = Access::token(user(0), USERS[0].0);
    let access = (1..USERS.len()).fold(access, |access, number| access.or_token(user(number), USERS[number].0));
    Dashboard::new(provider, access).router().expect("it has a good token")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::routes::tests::described;

    const FORM: &str = include_str!("../../dq/dashboard/src/act/mod.rs");
    const LOGIN: &str = include_str!("../../dq/dashboard/src/pages/login.rs");
    const ASKED: &str = include_str!("../../dq/dashboard/src/asked.rs");

    fn is_known(name: &str) -> bool {
        FIELDS.iter().any(|(known, _)| *known == name)
    }

    #[test]
    fn each_field_of_a_route_is_generated() {
        for route in described() {
            let names = route.parameters.iter().chain(&route.body).chain(&route.inner);
            let missing: Vec<_> = names.filter(|name| !is_known(name)).collect();
            assert!(missing.is_empty(), "the grammar of requests has no {missing:?} of {route:?}");
        }
        let forms = [(FORM, "Order"), (ASKED, "Asked"), (LOGIN, "Login"), (LOGIN, "Logout")];
        let fields = forms.into_iter().flat_map(|(source, name)| {
            let (_, body) = source.split_once(&format!("struct {name} {{")).expect("it is there");
            let lines = body.split('}').next().unwrap_or_default().lines().map(str::trim);
            let lines = lines.filter(|line| !line.starts_with("//") && !line.starts_with('#'));
            lines.filter_map(|line| Some(line.split_once(':')?.0.trim_start_matches("pub(crate) ")))
        });
        let missing: Vec<_> = fields.filter(|name| *name != "jobs" && !is_known(name)).collect();
        assert!(missing.is_empty(), "the grammar of requests has no {missing:?}");
    }

    /// Each kind of request is let in by some token, so no grammar generates only what is refused.
    #[test]
    fn requests_of_each_right_are_generated() {
        let described = described();
        let session = || Session { cookie: "a=b".into(), form_token: "x".into(), key: "" };
        let sessions: Vec<_> = USERS.iter().map(|_| session()).collect();
        let (mut rights, mut methods, mut paths) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for seed in 0..3_000 {
            let Some((request, right)) = request(&Draw::new(seed), described, &sessions) else { continue };
            rights.insert(right);
            methods.insert(request.method().to_string());
            paths.insert(request.uri().path().to_owned());
        }
        assert_eq!(rights.len(), 4, "{rights:?}");
        for method in ["GET", "HEAD", "POST", "DELETE", "PUT"] {
            assert!(methods.contains(method), "{method} is in none of {methods:?}");
        }
        let missing: Vec<_> = PAGES.iter().filter(|page| !page.1.contains('{') && !paths.contains(page.1)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
