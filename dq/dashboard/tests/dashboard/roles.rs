//! What a user who may only add can do: append, and nothing else.

use axum::http::{Method, StatusCode};
use dq::prelude::*;
use dq_dashboard::{Access, Dashboard, Role, User};
use serde_json::{Value, json};

use super::log::Log;
use super::visitor::{Answer, TOKEN, Visitor, provider};

const ADDS: &str = "a-token-that-may-only-add";
const SETS: &str = "a-token-that-may-add-and-operate";

/// Programs whose tokens may do everything, may only add, and may add and operate.
fn programs(provider: Provider) -> [Visitor; 3] {
    let user = |roles: &[Role]| User::new("shop").with_roles(roles.iter().copied());
    let access = Access::token("ann", TOKEN)
        .or_token(user(&[Role::Add]), ADDS)
        .or_token(user(&[Role::Add, Role::Operate]), SETS);
    let visitor = Visitor::of(Dashboard::new(provider, access));
    [TOKEN, ADDS, SETS].map(|token| visitor.clone().with("authorization", format!("Bearer {token}")))
}

/// The filter of a page finds a word of the last error or does not, and `HEAD` told which by the length of its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_length_of_an_answer_tells_no_one_who_may_only_add_anything() {
    let provider = provider("head").await;
    let node = ContextFactory::new("shop").store("memory:dashboard-head").start().await.unwrap();
    provider.topic("charge-card").unwrap().add_json(json!({ "n": 1 })).id("a").await.unwrap();
    while provider.topic("charge-card").unwrap().counts().await.unwrap().dead == 0 {
        tokio::task::yield_now().await;
    }
    let [mut all, mut adds, _] = programs(provider);
    let mut browser = adds.clone();
    browser.headers.retain(|(name, _)| *name != "authorization");
    assert_eq!(browser.log_in(ADDS).await, StatusCode::SEE_OTHER);
    let told = |answer: Answer| (answer.status, answer.header("content-length").to_owned(), answer.body);
    for path in ["/api/v1/topics/charge-card/jobs?state=dead&error=", "/jobs?topic=charge-card&state=dead&error="] {
        let visitor = if path.starts_with("/api") { &mut adds } else { &mut browser };
        for method in [Method::GET, Method::HEAD] {
            let mut ask = async |word: &str| {
                let path = format!("{path}{word}");
                told(visitor.ask(method.clone(), &path, "", String::new()).await)
            };
            let (found, missed) = (ask("bank").await, ask("tank").await);
            assert_eq!(found.0, StatusCode::FORBIDDEN, "{method} {path}");
            assert_eq!(found, missed, "{method} {path}");
        }
    }
    let path = "/api/v1/topics/charge-card/jobs?state=dead&error=bank";
    assert_eq!(all.ask(Method::HEAD, path, "", String::new()).await.status, StatusCode::OK);
    drop(node);
}

#[tokio::test]
async fn a_user_who_may_only_add_overwrites_nothing_and_touches_no_set() {
    let provider = provider("appends").await;
    let [_, mut adds, mut sets] = programs(provider.clone());
    let jobs = "/topics/mail/jobs";
    let mine = json!({ "payload": "mine", "id": "a", "after": "1h" });
    assert_eq!(sets.call(Method::POST, jobs, &mine).await.status, StatusCode::CREATED);
    let with = |more: Value| {
        let mut job = json!({ "payload": "theirs", "id": "a", "after": "2h" });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        job
    };
    let member = |on_dead: &str| with(json!({ "set": { "topic": "done", "name": "s", "on_dead": on_dead } }));
    for body in [with(json!({ "on_duplicate": "replace" })), member("count"), member("cancel_rest")] {
        let refused = adds.call(Method::POST, jobs, &body).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{body}: {}", refused.body);
        assert!(refused.body.contains("`operate`"), "{}", refused.body);
    }
    let close = "/topics/done/sets/s/close";
    assert_eq!(adds.call(Method::POST, close, &json!({ "payload": 1 })).await.status, StatusCode::FORBIDDEN);
    assert_eq!(provider.topic("done").unwrap().job_sets(0, 1).await.unwrap(), [], "no set was opened");
    for (body, status) in [(with(json!({ "on_duplicate": "keep" })), 200), (with(json!({})), 409)] {
        assert_eq!(adds.call(Method::POST, jobs, &body).await.status.as_u16(), status, "{body}");
    }
    let seen = provider.topic("mail").unwrap().get("a").await.unwrap().unwrap();
    assert_eq!(seen.raw_payload().unwrap().1, b"\"mine\"");
    for (path, body, status) in [
        (jobs, with(json!({ "on_duplicate": "replace" })), 201),
        ("/topics/row/jobs", member("cancel_rest"), 202),
        (close, json!({ "payload": 1 }), 200),
    ] {
        let done = sets.call(Method::POST, path, &body).await;
        assert_eq!(done.status.as_u16(), status, "{path}: {}", done.body);
    }
}

#[tokio::test]
async fn a_token_that_may_only_add_fills_no_app_with_topics() {
    let provider = provider("many-topics").await;
    let [all, adds, _] = programs(provider.clone());
    let add = async |visitor: &Visitor, n: usize| {
        // Each address has a rate of its own.
        let mut visitor = visitor.from(&format!("10.0.{}.1", n / 100));
        let job = json!({ "payload": 1, "after": "1h" });
        visitor.call(Method::POST, &format!("/topics/topic-{n}/jobs"), &job).await
    };
    for n in 0..1_000 {
        assert_eq!(add(&adds, n).await.status, StatusCode::CREATED, "{n}");
    }
    let refused = add(&adds, 1_000).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.body);
    assert!(refused.body.contains("1000 topics"), "{}", refused.body);
    assert_eq!(add(&adds, 7).await.status, StatusCode::CREATED, "a topic that it added to before");
    assert_eq!(add(&all, 1_000).await.status, StatusCode::CREATED, "another token");
}

#[tokio::test]
async fn a_change_that_a_role_does_not_allow_leaves_a_line() {
    let log = Log::of_this_test();
    let [_, mut adds, _] = programs(provider("refused-role").await);
    adds.call(Method::POST, "/topics/mail/pause", &json!({ "reason": "x" })).await;
    let audits = log.audits();
    let parts = ["who=\"shop\"", "pause", "outcome=\"refused: you lack the role `operate`"];
    assert!(audits.iter().any(|line| parts.iter().all(|part| line.contains(part))), "{audits:#?}");
}
