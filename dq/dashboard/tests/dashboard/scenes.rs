//! Attacks and a revoked session, in a browser.

use std::net::SocketAddr;

use axum::Router;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Html;
use axum::routing::get;
use dq::Provider;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::net::TcpListener;

use super::chromium::Chromium;
use super::stage::Stage;
use super::visitor::TOKEN;

/// Serves a page of another site.
async fn foreign(html: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let page = get(move || std::future::ready(Html(html)));
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", page)).await });
    address
}

async fn is_paused(provider: &Provider) -> bool {
    provider.topic("close-order").unwrap().state().await.unwrap().pause.is_some()
}

/// A page of another origin sends forms and requests, and puts the dashboard into a frame. The browser is logged in.
pub(crate) async fn meet_a_foreign_page(stage: &Stage, browser: &Chromium) {
    let (act, api, home) = (stage.page("/act"), stage.page("/api/v1/topics/close-order/pause"), stage.page(""));
    let html = format!(
        "<iframe id=f src='{home}'></iframe><form id=form method=post action='{act}'><input name=action value=pause>\
         <input name=topic value=close-order><input name=reason value=x></form><script>window.seen = []; \
         const note = (what) => window.seen.push(what); \
         fetch('{home}', {{ credentials: 'include' }}).then(() => note('read'), () => note('hidden')); \
         fetch('{api}', {{ method: 'POST', credentials: 'include', headers: {{ 'content-type': 'application/json' }}, \
         body: '{{}}' }}).then(() => note('sent'), () => note('not sent'));</script>"
    );
    let address = foreign(html).await.to_string();
    // The other name is another site. Another port is another origin of the same site, and gets the cookie.
    for (address, refusal) in
        [(address.replace("127.0.0.1", "localhost"), "Who are you?"), (address, "That did not work")]
    {
        browser.client.goto(&format!("http://{address}/")).await.unwrap();
        browser.until("return window.seen.length === 2").await;
        assert_eq!(browser.run("return window.seen.sort()").await, json!(["hidden", "not sent"]), "{address}");
        let refused = browser.console().await;
        assert!(refused.iter().any(|line| line.contains("frame-ancestors 'none'")), "{refused:#?}");
        browser.run("document.getElementById('form').submit()").await;
        browser.until(&format!("return document.querySelector('h1')?.textContent === '{refusal}'")).await;
        browser.console().await;
    }
    assert!(!is_paused(&stage.provider).await);
}

/// Sends a request with a cookie, as a program can, and returns the status and the page.
async fn sent(url: &str, cookie: &str, form: Option<String>) -> (StatusCode, String) {
    let plain =
        hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http::<String>();
    let request = Request::builder().uri(url).method(if form.is_some() { "POST" } else { "GET" });
    let request = request.header("cookie", cookie).header("content-type", "application/x-www-form-urlencoded");
    let answer = plain.request(request.body(form.unwrap_or_default()).unwrap()).await.unwrap();
    let status = answer.status();
    let page = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(page.to_vec()).unwrap())
}

/// A program on another port of the host gets the cookie of the browser, which is logged in. It can read, and change nothing.
pub(crate) async fn lend_the_cookie_to_another_port(stage: &Stage, browser: &Chromium) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (cookies, mut taken) = tokio::sync::mpsc::unbounded_channel();
    let take = move |headers: HeaderMap| {
        let cookie = headers.get("cookie").map(|cookie| cookie.to_str().unwrap().to_owned());
        cookies.send(cookie).unwrap();
        std::future::ready(Html("<h1>Hello</h1>"))
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(take)).await });
    browser.client.goto(&format!("http://{address}/admin/dq/x")).await.unwrap();
    let cookie = taken.recv().await.flatten().expect("browsers send a cookie to every port");
    let (status, page) = sent(&stage.page("/confirm?action=pause&topic=close-order"), &cookie, None).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let token = page.split_once("name=\"form_token\" value=\"").unwrap().1.split('"').next().unwrap();
    let form = format!("action=pause&topic=close-order&reason=x&form_token={token}");
    let (status, page) = sent(&stage.page("/act"), &cookie, Some(form)).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{page}");
    assert!(!is_paused(&stage.provider).await);
    browser.console().await; // it has no icon
}

/// A name of another site leads to this machine.
pub(crate) async fn come_by_another_name(stage: &Stage, browser: &Chromium) {
    let page = stage.page("").replace("127.0.0.1", "rebound.localhost");
    browser.client.goto(&page).await.unwrap();
    browser.until("return document.body.innerText.includes('not a host of the dashboard')").await;
    browser.console().await;
}

/// A second tab logs out everywhere: the live page of the first ends, and it has to log in again.
pub(crate) async fn lose_the_session(stage: &Stage, browser: &Chromium) {
    browser.client.goto(&stage.page("")).await.unwrap();
    browser.until("return document.getElementById('live').textContent === 'live'").await;
    let first = browser.client.window().await.unwrap();
    let second = browser.client.new_window(true).await.unwrap().handle;
    browser.client.switch_to_window(second).await.unwrap();
    browser.client.goto(&stage.page("/settings")).await.unwrap();
    browser.click("button.danger").await;
    browser.until("return document.querySelector('h1').textContent === 'Log in'").await;
    browser.client.close_window().await.unwrap();
    browser.client.switch_to_window(first).await.unwrap();
    browser.until("return document.getElementById('live').textContent === 'not live'").await;
    browser.client.goto(&stage.page("/nodes")).await.unwrap();
    browser.until("return document.querySelector('h1').textContent === 'Log in'").await;
    browser.console().await; // the refusals of its stream
    // The link that `dq serve` prints; the address bar forgets the token.
    browser.client.goto(&stage.page(&format!("/login#{TOKEN}"))).await.unwrap();
    browser.until("return document.querySelector('h1').textContent === 'What falls due'").await;
    let address = browser.run("return location.href").await;
    assert_eq!(address, stage.page(""));
    // And out, by the button.
    browser.click(".who button").await;
    browser.until("return document.querySelector('h1').textContent === 'Log in'").await;
    browser.client.back().await.unwrap();
    browser.until("return document.querySelector('h1').textContent === 'Log in'").await;
}
