//! The first page: what falls due, and the topics.

use std::cmp::Reverse;
use std::time::Duration;

use axum::extract::{Query, State};
use dq::inspect::{Scale, TopicSummary};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Answer, chart, doctor};
use crate::app::Shared;
use crate::frame::{Frame, failure};
use crate::live::View;
use crate::outlooks::Overview;
use crate::show::{duration, jobs, number};
use crate::visit::Visit;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    after: String,
    scale: String,
    sort: String,
}

/// How the topics of a page are sorted.
const COLUMNS: [(&str, &str); 7] = [
    ("name", "Topic"),
    ("late", "Late"),
    ("delayed", "Waiting"),
    ("running", "Running"),
    ("unacked", "Un-acked"),
    ("dead", "Dead"),
    ("done", "Done"),
];

pub(crate) async fn show(State(app): State<Shared>, visit: Visit, Query(asked): Query<Asked>) -> Answer {
    let frame = Frame::new(&app, &visit);
    let view = View::overview(&frame, &asked.after, chart::scale(&asked.scale), &asked.sort);
    let (body, is_whole) = view.read(&app).await.map_err(|error| failure(&frame, &error))?;
    let page = html! {
        @if !is_whole { noscript { meta http-equiv="refresh" content="1"; } }
        div.head { h1 { "What falls due" } p.live #live hidden {} }
        div hx-sse:connect=(view.stream(&frame)) hx-swap="innerMorph" { (body) }
    };
    Ok(frame.answer("Overview", "", &page))
}

/// What changes on the page.
pub(crate) fn body(frame: &Frame, seen: &Overview, after: &str, scale: Scale, sort: &str) -> Markup {
    let mut topics: Vec<&TopicSummary> = seen.page.topics.iter().collect();
    sort_by(&mut topics, sort);
    let counted = seen.outlooks.iter().filter(|counted| counted.is_some()).count();
    let series = seen.page.topics.iter().zip(&seen.outlooks);
    let series = series.filter_map(|(topic, counted)| Some((topic.topic.to_string(), counted.clone()?))).collect();
    html! {
        (doctor::alerts(frame, &seen.findings))
        section.panel aria-label="What falls due" {
            (chart::scales(frame, "", &[("after", after), ("sort", sort)], scale))
            (chart::stacked(series, scale))
            @if counted < topics.len() { p.quiet { "Counted " (counted) " of " (topics.len()) " topics; the others follow." } }
        }
        (tiles(&topics))
        section.panel {
            h2 { "Topics" }
            @if topics.is_empty() { p.empty { "No topic holds anything yet." } } @else {
                (table(frame, &topics, after, scale, sort))
                (pages(frame, after, seen.page.next.as_deref(), scale, sort))
            }
        }
    }
}

fn sort_by(topics: &mut [&TopicSummary], sort: &str) {
    match sort {
        "name" => {}
        "delayed" => topics.sort_by_key(|topic| Reverse(topic.delayed)),
        "running" => topics.sort_by_key(|topic| Reverse(topic.running)),
        "unacked" => topics.sort_by_key(|topic| Reverse(topic.unacked)),
        "dead" => topics.sort_by_key(|topic| Reverse(topic.dead)),
        "done" => topics.sort_by_key(|topic| Reverse(topic.done)),
        // What needs somebody comes first. A moment of lateness is no reason to change places.
        _ => topics.sort_by_key(|topic| {
            let late = Some(topic.lateness).filter(|late| is_late(*late));
            Reverse((topic.error.is_some(), late, topic.dead, topic.unacked))
        }),
    }
}

/// What the topics that keep statistics ran a minute in the last five minutes, and how late the latest of them was claimed.
fn ran(topics: &[&TopicSummary]) -> Option<(String, String)> {
    let rates: Vec<_> = topics.iter().filter_map(|topic| topic.rates.as_ref()).collect();
    let ran: f64 = rates.iter().map(|rates| rates.per_minute(rates.ran)).sum();
    let late = rates.iter().filter_map(|rates| rates.p99_lateness).max();
    let late = late
        .map_or_else(|| "nothing in five minutes".into(), |late| format!("99 of 100 at most {} late", duration(late)));
    (!rates.is_empty()).then(|| (format!("{ran:.1}"), late))
}

fn tiles(topics: &[&TopicSummary]) -> Markup {
    let sum = |of: fn(&TopicSummary) -> usize| topics.iter().map(|topic| of(topic)).sum::<usize>();
    let latest = topics.iter().map(|topic| topic.lateness).max().unwrap_or_default();
    let (ready, dead, unacked) = (sum(|topic| topic.ready), sum(|topic| topic.dead), sum(|topic| topic.unacked));
    let paused = topics.iter().filter(|topic| topic.state.pause.is_some()).count();
    let tile = |name: &str, value: String, note: String, class: &str| {
        html! { div class={ "tile " (class) } { dt { (name) } dd { b { (value) } span.quiet { (note) } } } }
    };
    html! {
        dl.tiles {
            (tile("Late", if latest.is_zero() { "none".into() } else { duration(latest) },
                format!("{} due now", number(ready)), if is_late(latest) { "bad" } else { "good" }))
            @if let Some((rate, note)) = ran(topics) { (tile("Ran a minute", rate, note, "")) }
            (tile("Waiting", number(sum(|topic| topic.delayed)), format!("in {} topics", topics.len()), ""))
            (tile("Running", number(sum(|topic| topic.running)), "on all nodes".into(), ""))
            (tile("Un-acked", number(unacked), "parked by handlers".into(), if unacked > 0 { "odd" } else { "" }))
            (tile("Dead", number(dead), "need a person".into(), if dead > 0 { "bad" } else { "" }))
            (tile("Paused", number(paused), "topics".into(), if paused > 0 { "odd" } else { "" }))
        }
    }
}

/// From this on lateness is shown as a warning.
pub(crate) fn is_late(time: Duration) -> bool {
    time >= Duration::from_secs(5)
}

fn table(frame: &Frame, topics: &[&TopicSummary], after: &str, scale: Scale, sort: &str) -> Markup {
    let worst = topics.iter().map(|topic| topic.lateness.as_millis()).max().unwrap_or(0).max(60_000);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Topics" {
            table {
                caption.hidden { "Topics with the number of their jobs in each state" }
                thead { tr {
                    @for (key, name) in COLUMNS {
                        @let is_active = key == sort || (key == "late" && !COLUMNS.iter().any(|(key, _)| *key == sort));
                        @let order = if key == "name" { "ascending" } else { "descending" };
                        th scope="col" class=[(key != "name").then_some("n")] aria-sort=[is_active.then_some(order)] {
                            a href=(frame.to("", &[("after", after), ("scale", chart::word(scale)), ("sort", key)])) { (name) }
                        }
                    }
                } }
                tbody { @for topic in topics { (row(frame, topic, worst)) } }
            }
        }
    }
}

fn row(frame: &Frame, topic: &TopicSummary, worst: u128) -> Markup {
    let name = topic.topic.as_str();
    if let Some(error) = &topic.error {
        return html! {
            tr {
                th scope="row" { a href=(frame.to("topic", &[("topic", name)])) { (name) } " " span.badge.bad { "unreadable" } }
                td colspan="6" { (error) }
            }
        };
    }
    let list = |state: &str| frame.to("jobs", &[("topic", name), ("state", state)]);
    let cell = |state: &str, n: usize, class: &str| {
        html! { td.n { @if n > 0 { a class=(class) href=(list(state)) { (number(n)) } } @else { span.none { "0" } } } }
    };
    html! {
        tr {
            th scope="row" { a href=(frame.to("topic", &[("topic", name)])) { (name) } (marks(topic)) }
            td class=(if is_late(topic.lateness) { "n late" } else { "n" }) {
                @if topic.lateness.is_zero() { span.none { "on time" } } @else {
                    span title=(format!("{} due", jobs(topic.ready))) { (duration(topic.lateness)) }
                    svg.bar viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
                        rect width="100" height="6" {}
                        rect.much width=(topic.lateness.as_millis() * 100 / worst) height="6" {}
                    }
                }
            }
            (cell("delayed", topic.delayed, "")) (cell("running", topic.running, ""))
            (cell("unacked", topic.unacked, "odd")) (cell("dead", topic.dead, "bad")) (cell("done", topic.done, ""))
        }
    }
}

/// Badges that say what is not as usual.
pub(crate) fn marks(topic: &TopicSummary) -> Markup {
    html! {
        @if topic.state.pause.is_some() { " " span.badge.odd { "paused" } }
        @if topic.state.drain.is_some() { " " span.badge.odd { "drains" } }
        @if topic.ready > 0 && topic.nodes_holding == 0 && !topic.has_listener() { " " span.badge.bad { "no listener" } }
    }
}

fn pages(frame: &Frame, after: &str, next: Option<&str>, scale: Scale, sort: &str) -> Markup {
    let query = |after| [("after", after), ("scale", chart::word(scale)), ("sort", sort)];
    html! {
        @if !after.is_empty() || next.is_some() {
            nav.pages aria-label="Pages of topics" {
                @if !after.is_empty() { a href=(frame.to("", &query(""))) { "First page" } }
                @if let Some(next) = next { a href=(frame.to("", &query(next))) { "Next page" } }
            }
        }
    }
}
