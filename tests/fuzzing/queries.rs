//! Requests to the dashboard and its API: nothing without a right, no panic, and no answer of 500.

use std::sync::{Arc, OnceLock};
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
use crate::target::Found;

/// How many requests a dashboard gets.
const REQUESTS: u64 = 40;
const CHANGES: &str = "a-token-of-one-who-may-change-things";
const LOOKS: &str = "a-token-of-one-who-may-only-look-at";
const ADDS: &str = "a-token-of-one-who-may-only-add-jobs";

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
    ("due", time),
    ("error", |draw| json!(draw.text())),
    ("expires_after", |draw| json!(grammar::duration(draw))),
    ("form_token", |draw| json!(draw.word())),
    ("from", time),
    ("group", |draw| json!(grammar::group(draw))),
    ("header", |draw| if draw.one_in(2) { json!([draw.text(), draw.text()]) } else { json!("a=b") }),
    ("headers", |draw| (0..draw.below(4)).map(|_| json!([draw.text(), draw.text()])).collect()),
    ("id", |draw| json!(if draw.one_in(2) { "kept".into() } else { grammar::id(draw) })),
    ("id_prefix", |draw| json!(draw.text())),
    ("if_version", |draw| json!(draw.number())),
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
    ("set", |draw| json!({ "topic": topic(draw), "name": draw.word(), "on_dead": draw.pick(&["count", "cancel_rest"]) })),
    ("state", |draw| json!(draw.pick(&["delayed", "running", "unacked", "dead", "done", "lost"]))),
    ("token", |draw| json!(draw.pick(&[CHANGES, LOOKS, ADDS, "no"]))),
    ("topic", |draw| json!(topic(draw))),
    ("unique_for", |draw| json!(grammar::duration(draw))),
    ("until", time),
    ("value", |draw| if draw.one_in(2) { json!(draw.below(100)) } else { json!(draw.pick(&["100/s", "none", ""])) }),
    ("version", |draw| json!(draw.number().to_string())),
    ("weight", |draw| json!(if draw.one_in(3) { draw.number() } else { 1 + draw.below(10_000) })),
    ("when", time),
];
const ACTIONS: [&str; 20] = [
    "pause", "resume", "drain", "undrain", "limit", "requeue", "delete", "ack", "run_now", "reschedule", "pause_group",
    "resume_group", "pass", "pause_schedule", "resume_schedule", "remove_schedule", "repair", "cancel", "close", "go",
];
const LIMITS: [&str; 8] = [
    "concurrency", "rate", "waiting", "group_concurrency", "group_rate", "group_waiting", "group_burst", "speed",
];
/// The routes of the pages. A test compares them with the router.
const PAGES: [&str; 22] = [
    "/", "/topic", "/jobs", "/job", "/dead", "/unacked", "/nodes", "/doctor", "/schedules", "/sets", "/set", "/settings",
    "/confirm", "/act", "/logout", "/live/topic", "/login", "/assets/dq.css", "/healthz", "/readyz", "/live/{page}",
    "/assets/{name}",
];

/// What the API describes: it is made from the table of its routes.
#[derive(Debug)]
struct Described {
    /// A method, and its path below `/api/v1`.
    routes: Vec<(Method, String)>,
    /// For each of these the names of its parameters, and of the fields of its body.
    fields: Vec<Vec<String>>,
}

static DESCRIBED: OnceLock<Described> = OnceLock::new();

impl Described {
    fn of(document: &Value) -> Self {
        let (mut routes, mut fields) = (Vec::new(), Vec::new());
        for (path, methods) in document["paths"].as_object().into_iter().flatten() {
            for (method, route) in methods.as_object().into_iter().flatten() {
                routes.push((method.to_uppercase().parse().expect("it is a method"), path.clone()));
                let parameters = route["parameters"].as_array().into_iter().flatten();
                let parameters = parameters.filter(|is| is["in"] == "query").filter_map(|is| is["name"].as_str());
                let body = &route["requestBody"]["content"]["application/json"]["schema"];
                fields.push(parameters.map(str::to_owned).chain(properties(document, body)).collect());
            }
        }
        Self { routes, fields }
    }

    /// Reads what a dashboard describes.
    async fn ask(router: &Router) -> &'static Self {
        if DESCRIBED.get().is_none() {
            let request = Request::get("/api/v1/openapi.json").header("host", "localhost");
            let request = request.header("authorization", format!("Bearer {LOOKS}")).body(Body::empty());
            let Ok(answer) = router.clone().oneshot(request.expect("it is a request")).await;
            let body = answer.into_body().collect().await.expect("it has a body").to_bytes();
            let document = serde_json::from_slice(&body).expect("it is a document");
            let _ = DESCRIBED.set(Self::of(&document)); // another run of this process was first
        }
        DESCRIBED.get().expect("it is set")
    }
}

/// The names of the fields of a schema, and of those in them.
fn properties(document: &Value, schema: &Value) -> Vec<String> {
    let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next());
    let schema = name.map_or(schema, |name| &document["components"]["schemas"][name]);
    let all = schema["properties"].as_object().into_iter().flatten();
    all.flat_map(|(name, of)| [vec![name.clone()], properties(document, of)].concat()).collect()
}

fn time(draw: &Draw) -> Value {
    match draw.below(4) {
        0 => json!(draw.number().to_string()),
        1 => json!(draw.text()),
        2 => json!(grammar::duration(draw)),
        _ => json!(draw.pick(&["2026-01-01T00:00:00Z", "2026-12-01T12:00:00.500000+05:30", "2026-01-01T00:00:00"])),
    }
}

fn topic(draw: &Draw) -> String {
    if draw.one_in(6) { draw.text() } else { "t".to_owned() }
}

/// The value of a field, if the grammar has the field.
fn value_of(draw: &Draw, name: &str) -> Option<Value> {
    let (_, value) = FIELDS.iter().find(|(known, _)| *known == name)?;
    Some(value(draw))
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// What stands in a URL or a form: a text without quotes.
fn pair(draw: &Draw, name: &str) -> String {
    let value = value_of(draw, name).unwrap_or_else(|| json!(draw.text()));
    format!("{name}={}", encoded(value.as_str().unwrap_or(&value.to_string())))
}

fn pairs<'a>(draw: &Draw, names: &[&'a str]) -> String {
    let any = |_| if names.is_empty() { FIELDS[draw.below(FIELDS.len() as u64) as usize].0 } else { draw.pick(names) };
    (0..draw.below(6)).map(any).map(|name: &'a str| pair(draw, name)).collect::<Vec<_>>().join("&")
}

/// A method, a path with its query, and a body.
fn api(draw: &Draw, described: &Described) -> (Method, String, String) {
    let number = draw.below(described.routes.len() as u64) as usize;
    let (method, path) = &described.routes[number];
    let names: Vec<&str> = described.fields[number].iter().map(String::as_str).collect();
    let id = if draw.one_in(2) { "kept".to_owned() } else { encoded(&grammar::id(draw)) };
    let path = path.replace("{topic}", &encoded(&topic(draw))).replace("{id}", &id);
    let mut body = json!({});
    for name in names.iter().filter(|_| draw.one_in(2)) {
        body[*name] = value_of(draw, name).unwrap_or_default();
    }
    if names.contains(&"payload") && !draw.one_in(12) {
        body["payload"] = grammar::value(draw, 2);
    }
    if draw.one_in(20) {
        body = grammar::value(draw, 3);
    }
    let text = body.to_string();
    let body = if draw.one_in(20) { draw.spoiled(&text) } else { text };
    let other = [Method::GET, Method::HEAD, Method::POST, Method::DELETE, Method::PUT];
    let method = match method {
        method if *method == Method::GET && draw.one_in(3) => Method::HEAD,
        _ if draw.one_in(8) => other[draw.below(5) as usize].clone(),
        method => method.clone(),
    };
    (method, format!("/api/v1{path}?{}", pairs(draw, &names)), body)
}

fn page(draw: &Draw) -> (Method, String, String) {
    let methods = [Method::GET, Method::GET, Method::POST, Method::POST, Method::HEAD];
    let method = methods[draw.below(5) as usize].clone();
    (method, format!("{}?{}", draw.pick(&PAGES).replace(['{', '}'], ""), pairs(draw, &[])), pairs(draw, &[]))
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Right {
    Nothing,
    Adds,
    Changes,
}

/// A request, and what it has the right to do.
fn request(draw: &Draw, described: &Described) -> Option<(Request<Body>, Right)> {
    let is_api = draw.one_in(2);
    let (method, mut path, body) = if is_api { api(draw, described) } else { page(draw) };
    if draw.one_in(30) {
        path = path.replacen('?', "/%FF%00..%2F?", 1);
    }
    let token = draw.pick(&[CHANGES, LOOKS, ADDS, "", "Bearer", CHANGES]);
    let host = draw.pick(&["localhost", "localhost", "localhost", "evil.example"]);
    let mut request = Request::builder().method(method).uri(path).header("host", host);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    if draw.one_in(12) {
        request = request.header("idempotency-key", draw.word());
    }
    let is_foreign = draw.one_in(4);
    if is_foreign {
        request = request.header("origin", "https://evil.example").header("sec-fetch-site", "cross-site");
    }
    let kind = if is_api { "application/json" } else { "application/x-www-form-urlencoded" };
    let request = request.header("content-type", kind).body(Body::from(body)).ok()?;
    // A token is enough under any name of the host: no page of another site has it.
    let right = match token {
        CHANGES if is_api && !is_foreign => Right::Changes,
        ADDS if is_api && !is_foreign => Right::Adds,
        _ => Right::Nothing,
    };
    Some((request, right))
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
        let described = Described::ask(&router).await;
        for _ in 0..REQUESTS {
            let Some((request, right)) = request(draw, described) else { continue };
            let what = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
            let reads = [Method::GET, Method::HEAD].contains(request.method()) && what.contains(" /api/v1/");
            let counts = async || {
                topic.counts().await.ok().map(|counts| (counts.delayed, counts.dead, counts.unacked))
            };
            let seen = async || (topic.state().await.ok(), topic.get("kept").await.ok().flatten().map(|job| job.place));
            let before = (counts().await, seen().await);
            let Ok(answer) = router.clone().oneshot(request).await;
            let status = answer.status();
            found.input(status.is_success());
            if !what.contains("/live/") {
                let _ = answer.into_body().collect().await;
            }
            if status == StatusCode::INTERNAL_SERVER_ERROR {
                found.lost(format!("{what}: {status}"));
            }
            let is_let_in = match right {
                Right::Changes => false,
                // It may add, and neither read what is there nor change it.
                Right::Adds => reads && status.is_success() || seen().await != before.1,
                Right::Nothing => (counts().await, seen().await) != before,
            };
            if is_let_in {
                found.let_in(format!("{what}: {status}"));
            }
            node.dq.advance(Duration::from_millis(50)).await;
        }
        let _ = topic.clear_default_delay().await;
        node.runs_innocent_jobs(found).await;
    });
}

fn router(provider: Provider) -> Router {
    let access = Access::token("ann", CHANGES)
        .or_token(User::new("bob").with_roles([Role::Look]), LOOKS)
        .or_token(User::new("shop").with_roles([Role::Add]), ADDS);
    Dashboard::new(provider, access).router().expect("it has a good token")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = include_str!("../../dq/dashboard/src/routes.rs");
    const FORM: &str = include_str!("../../dq/dashboard/src/act/mod.rs");
    const ASKED: &str = include_str!("../../dq/dashboard/src/asked.rs");

    fn is_known(name: &str) -> bool {
        FIELDS.iter().any(|(known, _)| *known == name)
    }

    #[test]
    fn each_field_of_a_route_of_the_api_is_generated() {
        paused(async {
            let store = Arc::new(MemoryStore::new(Arc::new(TokioClock::at(NOW * 1_000))));
            let node = Node::start(store).await;
            let described = Described::ask(&router(node.dq.provider().clone())).await;
            assert!(described.routes.len() > 25, "{described:?}");
            for (route, fields) in described.routes.iter().zip(&described.fields) {
                let missing: Vec<_> = fields.iter().filter(|name| !is_known(name)).collect();
                assert!(missing.is_empty(), "the grammar of requests has no {missing:?} of {route:?}");
            }
        });
    }

    #[test]
    fn each_page_and_each_field_of_a_form_is_generated() {
        let routes = ROUTES.split(".route(").skip(1).filter_map(|route| route.split('"').nth(1));
        let missing: Vec<_> = routes.filter(|route| !PAGES.contains(route)).collect();
        assert!(missing.is_empty(), "the grammar of requests has no {missing:?}");
        let fields = |source: &'static str, name: &str| {
            let (_, body) = source.split_once(&format!("struct {name} {{")).expect("it is there");
            let lines = body.split('}').next().unwrap_or_default().lines().map(str::trim);
            lines.filter_map(|line| line.strip_prefix("pub(crate) ")?.split_once(':')).map(|(name, _)| name)
        };
        let fields = fields(FORM, "Order").filter(|name| *name != "jobs").chain(fields(ASKED, "Asked"));
        let missing: Vec<_> = fields.filter(|name| !is_known(name)).collect();
        assert!(missing.is_empty(), "the grammar of requests has no {missing:?}");
    }
}
