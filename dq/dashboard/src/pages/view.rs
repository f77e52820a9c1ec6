//! What is live.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::http::request::Parts;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use dq::inspect::Scale;
use dq::provider::Events;
use futures_util::stream;
use maud::Markup;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::{Answer, chart, overview, topic};
use crate::app::{App, Shared};
use crate::failure::Failure;
use crate::frame::{Frame, failure, stale};
use crate::live::{Fragment, Kind, View, Viewer};
use crate::pace::{Pace, SHORTEST};
use crate::stay::Stay;
use crate::visit::Visit;

impl View {
    pub(crate) fn overview(frame: &Frame, after: &str, scale: Scale, sort: &str) -> Self {
        Self::of(frame, Kind::Overview { after: after.to_owned(), scale, sort: sort.to_owned() })
    }

    pub(crate) fn topic(frame: &Frame, topic: &str, scale: Scale) -> Self {
        Self::of(frame, Kind::Topic { topic: topic.to_owned(), scale })
    }

    fn of(frame: &Frame, kind: Kind) -> Self {
        Self { base: frame.base.clone(), read_only: frame.read_only, kind }
    }

    /// Where its stream is.
    pub(crate) fn stream(&self, frame: &Frame) -> String {
        match &self.kind {
            Kind::Overview { after, scale, sort } => {
                frame.to("live/overview", &[("after", after), ("scale", chart::word(*scale)), ("sort", sort)])
            }
            Kind::Topic { topic, scale } => frame.to("live/topic", &[("topic", topic), ("scale", chart::word(*scale))]),
        }
    }

    /// What happens to the jobs that it shows, where one subscription tells that.
    pub(crate) fn events(&self, app: &App) -> Option<Events> {
        match &self.kind {
            Kind::Overview { .. } => None,
            Kind::Topic { topic, .. } => app.provider.events(topic).ok(),
        }
    }

    /// The part of the page, and whether it shows all that it should.
    pub(crate) async fn read(&self, app: &App) -> Result<(Markup, bool), Failure> {
        let frame = Frame::shared(&self.base, self.read_only);
        match &self.kind {
            Kind::Overview { after, scale, sort } => {
                let behind = Some(after.as_str()).filter(|after| !after.is_empty());
                let seen = app.outlooks.read(&app.inspector, behind, *scale).await?;
                let is_whole = seen.outlooks.iter().all(Option::is_some);
                Ok((overview::body(&frame, &seen, after, *scale, sort), is_whole))
            }
            Kind::Topic { topic, scale } => Ok((topic::body(&frame, app, topic, *scale).await?, true)),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    after: String,
    scale: String,
    sort: String,
    topic: String,
}

pub(crate) async fn live(
    State(app): State<Shared>,
    visit: Visit,
    Path(page): Path<String>,
    Query(asked): Query<Asked>,
    parts: Parts,
) -> Answer {
    let (frame, scale) = (Frame::new(&app, &visit), chart::scale(&asked.scale));
    let view = match page.as_str() {
        "overview" => View::overview(&frame, &asked.after, scale, &asked.sort),
        "topic" => View::topic(&frame, &asked.topic, scale),
        _ => return Err(failure(&frame, &Failure::NotThere("such live page"))),
    };
    stream_of(&app, &view, Stay::new(&app, visit, parts)).map_err(|error| failure(&frame, &error))
}

async fn keep_reading(app: Shared, view: View, sender: watch::Sender<Fragment>) {
    let (mut pace, mut last) = (Pace::new(view.events(&app)), Fragment::default());
    loop {
        let began = Instant::now();
        pace.reads();
        let (fragment, is_whole) = match view.read(&app).await {
            Ok((fragment, _)) => (Fragment::from(fragment.into_string()), true),
            Err(failure) => (stale(&failure, &last).into_string().into(), false),
        };
        if is_whole {
            last = Arc::clone(&fragment);
        }
        if !app.live.send(&view, fragment) {
            return;
        }
        tokio::select! {
            biased;
            () = pace.next(began) => {}
            // Somebody who loads the page again comes back within this time, and finds the view as it is.
            () = sender.closed() => sleep_until(began + SHORTEST).await,
        }
    }
}

/// Answers with a stream of fragments, which ends when the visitor has to go.
fn stream_of(app: &Shared, view: &View, stay: Stay) -> Result<Response, Failure> {
    let (viewer, first) = app.live.join(view)?;
    if let Some(sender) = first {
        tokio::spawn(keep_reading(Arc::clone(app), view.clone(), sender));
    }
    let events = stream::unfold((viewer, stay), |(mut viewer, mut stay): (Viewer, Stay)| async move {
        loop {
            tokio::select! {
                biased;
                () = stay.is_over() => return None,
                changed = viewer.seen.changed() => changed.ok()?,
            }
            let fragment = Arc::clone(&viewer.seen.borrow_and_update());
            if !fragment.is_empty() {
                return Some((Ok::<_, Infallible>(Event::default().data(&*fragment)), (viewer, stay)));
            }
        }
    });
    let mut answer = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    // A browser would let a second stream of the same view wait until it has the first one in its cache.
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}
