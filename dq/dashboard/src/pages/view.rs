//! What is live.

use axum::extract::{Query, State};
use dq::inspect::Scale;
use dq::provider::Events;
use maud::Markup;
use serde::Deserialize;

use super::frame::Frame;
use super::{chart, overview, topic};
use crate::app::{App, Shared};
use crate::failure::Failure;
use crate::visit::Visit;

/// A part of a page that changes, and whatever its text depends on. Those who look at the same view share one poll.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct View {
    base: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Overview { after: String, scale: Scale, sort: String },
    Topic { topic: String, scale: Scale },
}

impl View {
    pub(crate) fn overview(frame: &Frame, after: &str, scale: Scale, sort: &str) -> Self {
        let kind = Kind::Overview { after: after.to_owned(), scale, sort: sort.to_owned() };
        Self { base: frame.base.clone(), kind }
    }

    pub(crate) fn topic(frame: &Frame, topic: &str, scale: Scale) -> Self {
        Self { base: frame.base.clone(), kind: Kind::Topic { topic: topic.to_owned(), scale } }
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

    pub(crate) async fn fragment(&self, app: &App) -> Result<Markup, Failure> {
        Ok(self.read(app).await?.0)
    }

    /// The part of the page, and whether it shows all that it should.
    pub(crate) async fn read(&self, app: &App) -> Result<(Markup, bool), Failure> {
        let frame = Frame::shared(&self.base, app.read_only);
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

pub(crate) async fn live_overview(
    State(app): State<Shared>,
    visit: Visit,
    Query(asked): Query<Asked>,
) -> super::Answer {
    let frame = Frame::new(&app, &visit);
    let view = View::overview(&frame, &asked.after, chart::scale(&asked.scale), &asked.sort);
    crate::live::stream_of(&app, &view).map_err(|error| super::failure(&frame, &error))
}

pub(crate) async fn live_topic(State(app): State<Shared>, visit: Visit, Query(asked): Query<Asked>) -> super::Answer {
    let frame = Frame::new(&app, &visit);
    let view = View::topic(&frame, &asked.topic, chart::scale(&asked.scale));
    crate::live::stream_of(&app, &view).map_err(|error| super::failure(&frame, &error))
}
