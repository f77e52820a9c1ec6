//! Who gets in, and what browsers are told.

use axum::http::{Method, StatusCode};
use dq::Provider;
use dq_dashboard::{Access, Dashboard, User};
use dq_tests::redis::RedisServer;
use serde_json::json;

use super::log::Log;
use super::visitor::{TOKEN, Visitor, provider};

/// A page, one about a topic, and one that lives. The unit tests of the routes ask all.
const PAGES: [&str; 3] = ["/", "/topic?topic=a", "/live/overview"];

#[tokio::test]
async fn nothing_is_shown_without_the_token() {
    let provider = provider("token").await;
    provider.topic("secret-topic").unwrap().add_json(json!(1)).after("1h").await.unwrap();
    let mut visitor = Visitor::of(Dashboard::new(provider, Access::token("ann", TOKEN)));
    for page in PAGES {
        let answer = visitor.get(page).await;
        let refused = [StatusCode::SEE_OTHER, StatusCode::UNAUTHORIZED].contains(&answer.status);
        assert!(refused && !answer.body.contains("secret"), "{page}: {} {}", answer.status, answer.body);
    }
    assert_eq!(visitor.post("/act", "action=pause&topic=a&reason=x").await.status, StatusCode::UNAUTHORIZED);
    let wrong = visitor.post("/login", "token=another-token-for-tests").await;
    assert_eq!((wrong.status, wrong.header("set-cookie")), (StatusCode::UNAUTHORIZED, ""));
    let right = visitor.post("/login", &format!("token={TOKEN}")).await;
    assert_eq!((right.status, right.header("location")), (StatusCode::SEE_OTHER, "/"));
    let cookie = right.header("set-cookie").to_owned();
    assert!(
        cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict") && !cookie.contains(TOKEN),
        "{cookie}"
    );
    assert!(visitor.get("/").await.body.contains("secret-topic"));
    let ours = visitor.cookie.clone();
    for changed in [ours.replace('=', "=9"), format!("{}AAA", &ours[..ours.len() - 3])] {
        visitor.cookie = changed;
        assert_eq!(
            visitor.get("/").await.status,
            StatusCode::SEE_OTHER,
            "a changed cookie is none: {}",
            visitor.cookie
        );
    }
}

#[tokio::test]
async fn nobody_else_logs_a_browser_in_or_out_and_its_cookie_stays_with_https() {
    let provider = provider("log-in-out").await;
    let mut visitor = Visitor::of(Dashboard::new(provider.clone(), Access::token("ann", TOKEN)));
    let form = format!("token={TOKEN}");
    let foreign = visitor.clone().with("origin", "https://evil.example").post("/login", &form).await;
    assert_eq!((foreign.status, foreign.header("set-cookie")), (StatusCode::FORBIDDEN, ""));
    let plain = visitor.clone().post("/login", &form).await;
    assert!(!plain.header("set-cookie").contains("Secure"), "{}", plain.header("set-cookie"));
    let safe = visitor.clone().with("x-forwarded-proto", "https").post("/login", &form).await;
    assert!(safe.header("set-cookie").ends_with("; Secure"), "{}", safe.header("set-cookie"));
    let mut told = Visitor::of(Dashboard::new(provider, Access::token("ann", TOKEN)).https());
    assert!(told.post("/login", &form).await.header("set-cookie").ends_with("; Secure"));
    visitor.post("/login", &form).await;
    assert_eq!(visitor.post("/logout", "form_token=x").await.status, StatusCode::FORBIDDEN);
    let token = visitor.get("/").await.field("form_token");
    let out = visitor.post("/logout", &format!("form_token={token}")).await;
    assert!(out.header("set-cookie").contains("Max-Age=0"), "{}", out.header("set-cookie"));
    assert_eq!(visitor.get("/").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_token_that_can_be_guessed_is_refused() {
    let provider = provider("short").await;
    let made = Dashboard::new(provider, Access::token("ann", "short")).router();
    assert!(made.unwrap_err().to_string().contains("openssl rand -hex 32"));
}

#[tokio::test]
async fn the_api_asks_for_the_token_and_no_cookie_counts() {
    let mut visitor = Visitor::of(Dashboard::new(provider("bearer").await, Access::token("ann", TOKEN)));
    visitor.post("/login", &format!("token={TOKEN}")).await;
    assert_eq!(visitor.get("/api/v1/topics").await.status, StatusCode::UNAUTHORIZED);
    for wrong in ["Bearer nothing", TOKEN, "Basic x"] {
        assert_eq!(
            visitor.clone().with("authorization", wrong).get("/api/v1/topics").await.status,
            StatusCode::UNAUTHORIZED
        );
    }
    let mut program = visitor.with("authorization", format!("Bearer {TOKEN}"));
    assert_eq!(program.get("/api/v1/topics").await.status, StatusCode::OK);
    let form = program.post("/api/v1/topics/mail/pause", "reason=x").await;
    assert_eq!(form.status, StatusCode::BAD_REQUEST, "a form is no JSON");
}

#[tokio::test]
async fn a_hook_decides_and_names_who_it_was() {
    let provider = provider("hook").await;
    let who = |parts: &axum::http::request::Parts| parts.headers.get("x-user")?.to_str().ok().map(User::new);
    let mut visitor = Visitor::of(Dashboard::new(provider.clone(), Access::check(who)));
    for page in PAGES.into_iter().chain(["/api/v1/topics"]) {
        assert_eq!(visitor.get(page).await.status, StatusCode::UNAUTHORIZED, "{page}");
    }
    let mut ann = visitor.with("x-user", "ann");
    ann.confirm("action=pause&topic=mail", "reason=x").await;
    assert_eq!(provider.topic("mail").unwrap().state().await.unwrap().pause.unwrap().by, "ann (dashboard)");
}

#[tokio::test]
async fn a_form_from_elsewhere_does_nothing() {
    let provider = provider("forged").await;
    let mut visitor = Visitor::free(provider.clone());
    let token = visitor.get("/confirm?action=pause&topic=mail").await.field("form_token");
    let form = |token: &str| format!("action=pause&topic=mail&reason=x&form_token={token}");
    for forged in ["", "x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        assert_eq!(visitor.post("/act", &form(forged)).await.status, StatusCode::FORBIDDEN, "{forged}");
    }
    let mut other = visitor.clone();
    other.cookie.clear();
    assert_eq!(other.post("/act", &form(&token)).await.status, StatusCode::FORBIDDEN, "the token of another session");
    let foreign = [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ];
    for (name, value) in foreign {
        let answer = visitor.clone().with(name, value).post("/act", &form(&token)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name}: {value}");
        let answer =
            visitor.clone().with(name, value).call(Method::POST, "/topics/mail/pause", &json!({ "reason": "x" })).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name}: {value}");
    }
    assert_eq!(provider.topic("mail").unwrap().state().await.unwrap().pause, None);
    let own = visitor.with("origin", "http://localhost").post("/act", &form(&token)).await;
    assert_eq!(own.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_foreign_name_of_this_machine_is_refused() {
    let provider = provider("hosts").await;
    let free = Visitor::free(provider.clone());
    for (host, status) in [
        ("evil.example", 421),
        ("evil.example:8080", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("10.0.0.7", 421),
        ("localhost:8080", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("LOCALHOST", 200),
    ] {
        assert_eq!(free.clone().with("host", host).get("/").await.status.as_u16(), status, "{host}");
        assert_eq!(free.clone().with("host", host).get("/api/v1/topics").await.status.as_u16(), status, "{host}");
    }
    let named = Visitor::of(Dashboard::new(provider, Access::token("ann", TOKEN)).hosts(["Jobs.example"]));
    assert_eq!(named.clone().with("host", "evil.example").get("/login").await.status, StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(named.with("host", "jobs.example:443").get("/login").await.status, StatusCode::OK);
}

#[tokio::test]
async fn every_answer_tells_browsers_to_be_strict() {
    let mut visitor = Visitor::free(provider("strict").await);
    for path in ["/", "/login", "/assets/dq.js", "/nothing", "/api/v1/topics", "/healthz", "/job?topic=a&id=b"] {
        let answer = visitor.get(path).await;
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        let others = [
            answer.header("x-content-type-options"),
            answer.header("referrer-policy"),
            answer.header("x-frame-options"),
        ];
        assert_eq!(others, ["nosniff", "same-origin", "DENY"], "{path}");
        assert!(
            !answer.body.contains("<style") && !answer.body.contains("style=\"") && !answer.body.contains(" onclick"),
            "{path}"
        );
        let inline =
            answer.body.matches("<script").count() - answer.body.matches("<script defer src=\"/assets/").count();
        assert_eq!(inline, 0, "{path}");
    }
}

#[tokio::test]
async fn a_read_only_dashboard_changes_nothing() {
    let provider = provider("read-only").await;
    let topic = provider.topic("mail").unwrap();
    topic.add_json(json!(1)).id("a").after("1h").await.unwrap();
    let mut visitor = Visitor::of(Dashboard::new(provider.clone(), Access::everyone_who_reaches_it()).read_only());
    for page in ["/topic?topic=mail", "/jobs?topic=mail", "/job?topic=mail&id=a"] {
        assert!(!visitor.get(page).await.body.contains("/confirm?"), "{page}");
    }
    assert_eq!(visitor.get("/confirm?action=delete&topic=mail&id=a").await.status, StatusCode::FORBIDDEN);
    // The token of a form of another dashboard over the same app.
    let mut other = Visitor::free(provider);
    let token = other.get("/confirm?action=delete&topic=mail&id=a").await.field("form_token");
    visitor.cookie = other.cookie;
    for what in ["action=delete&id=a", "action=delete&state=delayed", "action=pause&reason=x"] {
        assert_eq!(
            visitor.post("/act", &format!("{what}&topic=mail&form_token={token}")).await.status,
            StatusCode::FORBIDDEN,
            "{what}"
        );
    }
    for (method, path) in [
        (Method::DELETE, "/topics/mail/jobs/a"),
        (Method::POST, "/topics/mail/jobs"),
        (Method::POST, "/topics/mail/bulk"),
    ] {
        assert_eq!(visitor.call(method, path, &json!({})).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(topic.counts().await.unwrap().delayed, 1);
    assert_eq!(topic.state().await.unwrap().pause, None);
}

#[tokio::test]
async fn requests_are_bounded_in_size_and_rate() {
    let mut visitor = Visitor::free(provider("bounded").await);
    let large = visitor.post("/act", &format!("reason={}", "x".repeat(20_000))).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    for (path, field) in [("/topics/mail/jobs", "payload"), ("/topics/mail/pause", "reason")] {
        let large = visitor.call(Method::POST, path, &json!({ field: "x".repeat(2 << 20) })).await;
        assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
    let mut refused = 0;
    for _ in 0..1_000 {
        refused += usize::from(visitor.get("/assets/dq.svg").await.status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(refused > 0);
    let mut guesser = Visitor::of(Dashboard::new(provider("guessed").await, Access::token("ann", TOKEN)));
    let mut looked_at = 0;
    for n in 0..100 {
        looked_at += usize::from(
            guesser.post("/login", &format!("token=guess-number-{n}")).await.status == StatusCode::UNAUTHORIZED,
        );
    }
    assert!((20..=25).contains(&looked_at), "{looked_at}");
}

#[tokio::test]
async fn every_action_leaves_a_line_that_says_who_and_what() {
    let log = Log::of_this_test();
    let provider = provider("audit").await;
    provider.topic("mail").unwrap().add_json(json!(1)).id("a").after("1h").await.unwrap();
    let mut visitor = Visitor::free(provider);
    visitor.confirm("action=pause&topic=mail", "reason=x").await;
    visitor.confirm("action=delete&topic=mail&id=a", "").await;
    visitor.confirm("action=delete&topic=mail&id=a", "").await;
    visitor.post("/act", "action=delete&topic=mail&id=b&form_token=x").await;
    visitor.call(Method::POST, "/topics/mail/jobs", &json!({ "payload": 1, "id": "c", "after": "1h" })).await;
    visitor.confirm("action=delete&topic=mail&state=delayed", "").await;
    let audits = log.audits();
    for part in [
        "action=\"pause\" topic=\"mail\" job.id=\"\" outcome=\"done\"",
        "action=\"delete\" topic=\"mail\" job.id=\"a\" outcome=\"done\"",
        "action=\"delete\" topic=\"mail\" job.id=\"a\" outcome=\"nothing changed\"",
        "job.id=\"b\" outcome=\"refused",
        "action=\"add\" topic=\"mail\" job.id=\"c\" outcome=\"added\"",
        "action=\"bulk delete\" topic=\"mail\" job.id=\"\" outcome=\"1 delayed jobs changed\"",
    ] {
        assert!(
            audits.iter().any(|line| line.contains(part) && line.contains("who=\"everyone\"")),
            "{part}: {audits:#?}"
        );
    }
}

#[tokio::test]
async fn probes_are_answered_by_any_name_and_beside_a_flood_and_ask_the_store_once_a_second() {
    let server = RedisServer::start();
    let provider = Provider::connect("shop", server.url()).await.unwrap();
    let mut visitor = Visitor::free(provider).with("host", "10.0.0.7:8080");
    assert_eq!(visitor.get("/").await.status, StatusCode::MISDIRECTED_REQUEST);
    let (mut flooded, mut flood) = (false, visitor.clone().with("host", "localhost"));
    for _ in 0..400 {
        flooded |= flood.get("/dead").await.status == StatusCode::TOO_MANY_REQUESTS;
    }
    assert!(flooded);
    let asked = || server.calls().get("evalsha").copied().unwrap_or(0);
    server.command(&["CONFIG", "RESETSTAT"]);
    visitor.get("/readyz").await; // the server learns the script
    assert!(asked() > 0, "the first probe asks the store");
    server.command(&["CONFIG", "RESETSTAT"]);
    for _ in 0..400 {
        assert_eq!(visitor.get("/healthz").await.status, StatusCode::OK);
        assert_eq!(visitor.get("/readyz").await.status, StatusCode::OK);
    }
    // None, if they take less than a second together.
    assert!(asked() < 40, "400 probes asked the store {} times", asked());
}
