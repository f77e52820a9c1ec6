//! The nodes, topic by topic, and those of one topic.

use std::collections::BTreeMap;

use axum::extract::{Query, State};
use dq::inspect::{NodeSummary, NodesPage};
use dq::time::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use super::dead::more;
use super::{Answer, table};
use crate::app::Shared;
use crate::frame::{Frame, failure};
use crate::show::{moment, number};
use crate::visit::Visit;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    /// The topic whose nodes are shown; none for a page of topics.
    topic: String,
    after: String,
}

pub(crate) async fn show(State(app): State<Shared>, visit: Visit, Query(asked): Query<Asked>) -> Answer {
    let frame = Frame::new(&app, &visit);
    let after = Some(asked.after.as_str()).filter(|after| !after.is_empty());
    if !asked.topic.is_empty() {
        let read = app.inspector.nodes(&asked.topic, after).await;
        let page = read.map_err(|error| failure(&frame, &error.into()))?;
        let title = format!("Nodes of {}", asked.topic);
        return Ok(frame.answer(&title, "nodes", &of_topic(&frame, &page, after.is_none())));
    }
    let page = app.outlooks.topics(&app.inspector, after).await.map_err(|error| failure(&frame, &error))?;
    let mut waiting: BTreeMap<&str, Vec<(&str, Timestamp, Timestamp)>> = BTreeMap::new();
    for topic in &page.topics {
        for node in &topic.watchers {
            waiting.entry(node.node.as_str()).or_default().push((topic.topic.as_str(), node.until, topic.store_time));
        }
    }
    let body = html! {
        h1 { "Nodes" }
        p.quiet { "A node is seen while it holds jobs of a topic, or waits for the next one: two nodes of each topic do that." }
        section.panel {
            h2 { "Nodes that hold jobs, by topic" }
            (table("Nodes by topic", "How many nodes hold jobs of each topic", &["Topic", "#Nodes that hold jobs", "#Running jobs", "Listens"],
                &html! { @for topic in &page.topics {
                    @let name = topic.topic.as_str();
                    tr {
                        th scope="row" { a href=(frame.to("nodes", &[("topic", name)])) { (name) } }
                        @if let Some(error) = &topic.error { td colspan="3" { (error) } } @else {
                        td.n { (number(topic.nodes_holding)) } td.n { (number(topic.running)) }
                        td { @if topic.has_listener() || topic.nodes_holding > 0 { "yes" } @else { span.badge.odd { "no node seen" } } }
                        }
                    }
                } }))
        }
        section.panel {
            h2 { "Nodes that wait for a next job" }
            @if waiting.is_empty() { p.empty { "No node waits for the next job of these topics." } } @else {
                (table("Waiting nodes", "Nodes that wait for the next job of a topic", &["Node", "Topic", "Comes at the latest"],
                    &html! { @for (node, topics) in &waiting { @for (topic, until, now) in topics {
                        tr {
                            th scope="row" { code { (node) } }
                            td { a href=(frame.to("topic", &[("topic", topic)])) { (topic) } }
                            td { (moment(*until, *now)) @if until <= now { " " span.badge.bad { "overdue" } } }
                        }
                    } } }))
            }
            (more(&frame, "nodes", page.next.as_deref()))
        }
    };
    Ok(frame.answer("Nodes", "nodes", &body))
}

/// The nodes that hold jobs of a topic; on the first page also those that wait for its next job.
fn of_topic(frame: &Frame, page: &NodesPage, is_first: bool) -> Markup {
    let topic = page.topic.as_str();
    let row = |node: &NodeSummary, what: &str| {
        html! { tr {
            th scope="row" { code { (node.node) } }
            td { (node.version.as_deref().unwrap_or("unknown")) }
            td { @if let Some(started) = node.started { (moment(started, page.store_time)) } @else { "unknown" } }
            td { (what) @if node.until <= page.store_time { " " span.badge.bad { "overdue" } } }
            td.n { (number(node.jobs)) }
            td { (moment(node.until, page.store_time)) }
        } }
    };
    html! {
        p.trail { a href=(frame.to("topic", &[("topic", topic)])) { "Topic " (topic) } }
        h1 { "Nodes of " (topic) }
        p.quiet { (number(page.nodes_holding)) " nodes hold jobs of this topic." }
        section.panel {
            h2 { "By name" }
            @if page.nodes.is_empty() && page.watchers.is_empty() { p.empty { "No node holds jobs of this topic or waits for its next one." } } @else {
                (table("Nodes", "Nodes that hold jobs of the topic or wait for the next one",
                    &["Node", "dq", "Started", "What it does", "#Jobs", "Lease ends, or expected by"],
                    &html! {
                        @for node in &page.nodes { (row(node, "runs jobs")) }
                        @if is_first { @for node in &page.watchers { (row(node, "waits for the next job")) } }
                    }))
            }
            @if let Some(next) = &page.next {
                nav.pages aria-label="Pages of nodes" { a href=(frame.to("nodes", &[("topic", topic), ("after", next)])) { "Next nodes" } }
            }
        }
    }
}
