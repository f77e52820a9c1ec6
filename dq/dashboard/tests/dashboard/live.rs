//! What is live, on a clock that stands still while there is something to do.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use super::visitor::{Visitor, provider};

/// Somebody who looks at a live page.
pub(crate) struct Looking(Body);

impl Looking {
    pub(crate) async fn at(visitor: &Visitor, path: &str) -> Self {
        let mut request = Request::get(path).header("cookie", &visitor.cookie);
        for (name, value) in &visitor.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Body::empty()).unwrap();
        Self(visitor.router.clone().oneshot(request).await.unwrap().into_body())
    }

    /// Waits until the page ends.
    pub(crate) async fn end(mut self) {
        while self.0.frame().await.is_some() {}
    }

    /// Waits for the next fragment.
    pub(crate) async fn next(&mut self) -> String {
        loop {
            let frame = self.0.frame().await.unwrap().unwrap().into_data().unwrap();
            let text = String::from_utf8(frame.to_vec()).unwrap();
            if text.starts_with("data:") {
                return text;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_page_of_a_topic_follows_its_events_once_a_second_at_most() {
    let provider = provider("live-events").await;
    let topic = provider.topic("mail").unwrap();
    let mut page = Looking::at(&Visitor::free(provider.clone()), "/live/topic?topic=mail").await;
    page.next().await;
    page.next().await; // the events begin
    let quiet = Instant::now();
    page.next().await;
    assert_eq!(quiet.elapsed().as_secs(), 4, "nothing happens");
    sleep(Duration::from_millis(2_500)).await;
    let added = Instant::now();
    topic.add_json(json!(1)).after("1h").await.unwrap();
    let shown = page.next().await;
    assert!(shown.contains(">1</a>"), "{shown}");
    assert!(added.elapsed() < Duration::from_millis(500), "{:?}: no timer ends so early", added.elapsed());
    let burst = Instant::now();
    for _ in 0..5 {
        topic.add_json(json!(1)).after("1h").await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    let shown = page.next().await;
    assert!(shown.contains(">6</a>"), "one fragment shows what happened within a second: {shown}");
    assert!(burst.elapsed() <= Duration::from_secs(1), "{:?}", burst.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_overview_is_read_once_a_second() {
    let mut page = Looking::at(&Visitor::free(provider("live-timer").await), "/live/overview").await;
    page.next().await;
    for _ in 0..3 {
        let before = Instant::now();
        page.next().await;
        assert_eq!(before.elapsed().as_secs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_that_nobody_looks_at_any_more_makes_room_for_others() {
    let provider = provider("live-room").await;
    let visitor = Visitor::free(provider);
    for round in 0..2 {
        let mut pages = Vec::new();
        for n in 0..16 {
            let mut page = Looking::at(&visitor, &format!("/live/topic?topic=t{round}-{n}")).await;
            page.next().await;
            pages.push(page);
        }
        for page in &mut pages {
            page.next().await; // the events begin; from now on nothing happens, and no view is read for a while
        }
        let request = Request::get("/live/topic?topic=one-more").header("host", "localhost").body(Body::empty());
        let refused = visitor.router.clone().oneshot(request.unwrap()).await.unwrap();
        assert_eq!(refused.status().as_u16(), 429);
        drop(pages);
        sleep(Duration::from_millis(1_500)).await;
    }
}
