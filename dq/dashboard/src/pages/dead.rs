//! Which topics have jobs that need somebody: DEAD ones and UNACKED ones.

use axum::extract::{Query, State};
use dq::inspect::TopicSummary;
use maud::html;
use serde::Deserialize;

use super::{Answer, table};
use crate::app::Shared;
use crate::frame::{Frame, failure};
use crate::show::number;
use crate::visit::Visit;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    pub(crate) after: String,
}

struct Kind {
    page: &'static str,
    title: &'static str,
    what: &'static str,
    none: &'static str,
    count: fn(&TopicSummary) -> usize,
}

const DEAD: Kind = Kind {
    page: "dead",
    title: "Dead jobs",
    what: "No attempt is left for these jobs, or they expired, or no node could read them. They stay until you requeue or delete them, or their retention ends.",
    none: "No topic of this page has DEAD jobs.",
    count: |topic| topic.dead,
};

const UNACKED: Kind = Kind {
    page: "unacked",
    title: "Un-acked jobs",
    what: "Handlers parked these jobs: they wait until you ack or requeue them.",
    none: "No topic of this page has UNACKED jobs.",
    count: |topic| topic.unacked,
};

pub(crate) async fn show(app: State<Shared>, visit: Visit, asked: Query<Asked>) -> Answer {
    of(app, &visit, asked, &DEAD).await
}

pub(crate) async fn unacked(app: State<Shared>, visit: Visit, asked: Query<Asked>) -> Answer {
    of(app, &visit, asked, &UNACKED).await
}

async fn of(State(app): State<Shared>, visit: &Visit, Query(asked): Query<Asked>, kind: &Kind) -> Answer {
    let frame = Frame::new(&app, visit);
    let after = Some(asked.after.as_str()).filter(|after| !after.is_empty());
    let page = app.outlooks.topics(&app.inspector, after).await.map_err(|error| failure(&frame, &error))?;
    let topics: Vec<_> = page.topics.iter().filter(|topic| (kind.count)(topic) > 0 || topic.error.is_some()).collect();
    let body = html! {
        h1 { (kind.title) }
        p.quiet { (kind.what) }
        section.panel {
            h2 { "By topic" }
            @if topics.is_empty() { p.empty { (kind.none) } } @else {
                (table(kind.title, &format!("{} by topic", kind.title), &["Topic", "#Jobs"], &html! { @for topic in topics {
                    @let name = topic.topic.as_str();
                    tr {
                        th scope="row" { a href=(frame.to("jobs", &[("topic", name), ("state", kind.page)])) { (name) } }
                        @match &topic.error { Some(error) => td { (error) }, None => td.n { (number((kind.count)(topic))) } }
                    }
                } }))
            }
            (more(&frame, kind.page, page.next.as_deref()))
        }
    };
    Ok(frame.answer(kind.title, kind.page, &body))
}

/// The link to the next page of topics.
pub(super) fn more(frame: &Frame, page: &str, next: Option<&str>) -> maud::Markup {
    html! { @if let Some(next) = next { nav.pages aria-label="Pages of topics" { a href=(frame.to(page, &[("after", next)])) { "Next topics" } } } }
}
