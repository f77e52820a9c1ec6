//! Another port of the same host: browsers send it the cookie of the session, since a cookie knows no port.

use axum::http::StatusCode;
use dq_dashboard::{Access, Dashboard};

use super::visitor::{TOKEN, Visitor, provider};

/// What the script of the login page makes, and no request to another port has.
const KEY: &str = "4Yk2mXq0nq9T7c1s3b5d8f6hJkLmNpQrStUvWxYzABE";

#[tokio::test]
async fn another_port_that_gets_the_cookie_changes_nothing() {
    let provider = provider("port").await;
    let mut browser = Visitor::of(Dashboard::new(provider.clone(), Access::token("ann", TOKEN)));
    browser.post("/login", &format!("token={TOKEN}&key={KEY}")).await;
    assert!(!browser.cookie.contains(KEY), "the cookie does not tell the key");
    let mut thief = browser.clone();
    let asked = thief.get("/confirm?action=pause&topic=mail").await;
    let form = format!("action=pause&topic=mail&reason=x&form_token={}", asked.field("form_token"));
    let is_paused = async || provider.topic("mail").unwrap().state().await.unwrap().pause.is_some();
    for (path, form) in [("/act", &form), ("/logout", &form), ("/logout", &format!("{form}&everywhere=1"))] {
        for key in ["", "&key=", "&key=guessed"] {
            let refused = thief.post(path, &format!("{form}{key}")).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path} {key}");
            assert!(refused.body.contains("log in again"), "{path}: {}", refused.body);
        }
    }
    assert!(!is_paused().await);
    // The session is one with a key, whatever the thief makes of its cookie.
    let parts: Vec<_> = browser.cookie.split('.').map(str::to_owned).collect();
    for at in 0..parts.len() {
        let mut changed = parts.clone();
        changed[at].clear();
        thief.cookie = changed.join(".");
        assert_eq!(thief.post("/act", &form).await.status, StatusCode::UNAUTHORIZED, "{}", thief.cookie);
    }
    assert_eq!(browser.post("/act", &format!("{form}&key={KEY}")).await.status, StatusCode::SEE_OTHER);
    assert!(is_paused().await);
}

#[tokio::test]
async fn links_and_the_cookie_follow_the_prefix_that_a_trusted_proxy_stripped() {
    let provider = provider("prefix").await;
    let dashboard = || Dashboard::new(provider.clone(), Access::token("ann", TOKEN));
    let trusting = Visitor::of(dashboard().behind_proxy());
    for (mut visitor, sent, base) in [
        (trusting.clone(), "/ops/dq", "/ops/dq"),
        (trusting.clone(), "/ops/dq/", "/ops/dq"),
        (trusting.clone(), "/", ""),
        (trusting.clone(), "//evil.example", ""),
        (trusting.clone(), "/a;Domain=example", ""),
        (trusting.clone(), "/a/../b", ""),
        (trusting.clone(), "/a\"b", ""),
        (trusting, "https://evil.example", ""),
        (Visitor::of(dashboard()), "/ops/dq", ""),
    ] {
        visitor = visitor.with("x-forwarded-prefix", sent);
        let sent_away = visitor.get("/nodes").await;
        assert_eq!(sent_away.header("location"), format!("{base}/login"), "{sent}");
        let page = visitor.get("/login").await.body;
        for part in ["href=\"{}/assets/dq.css", "src=\"{}/assets/dq.js", "action=\"{}/login\""] {
            assert!(page.contains(&part.replace("{}", base)), "{sent} {part}: {page}");
        }
        let logged_in = visitor.post("/login", &format!("token={TOKEN}")).await;
        let home = if base.is_empty() { "/" } else { base };
        assert_eq!(logged_in.header("location"), home);
        assert!(logged_in.header("set-cookie").contains(&format!("; Path={home};")), "{sent}");
        let done = visitor.confirm("action=pause&topic=mail", "reason=x").await;
        assert_eq!(done.header("location"), format!("{base}/topic?topic=mail&done=pause&undo=resume"));
    }
}
