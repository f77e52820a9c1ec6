//! The nodes, topic by topic.

use std::collections::BTreeMap;

use axum::extract::{Query, State};
use dq::time::Timestamp;
use maud::html;

use super::dead::{Asked, more};
use super::frame::Frame;
use super::{Answer, failure};
use crate::app::Shared;
use crate::show::{moment, number};
use crate::visit::Visit;

pub(crate) async fn show(State(app): State<Shared>, visit: Visit, Query(asked): Query<Asked>) -> Answer {
    let frame = Frame::new(&app, &visit);
    let after = Some(asked.after.as_str()).filter(|after| !after.is_empty());
    let page = app.outlooks.topics(&app.inspector, after).await.map_err(|error| failure(&frame, &error))?;
    let mut waiting: BTreeMap<&str, Vec<(&str, Timestamp, Timestamp)>> = BTreeMap::new();
    for topic in &page.topics {
        for node in &topic.watchers {
            waiting.entry(node.node.as_str()).or_default().push((topic.topic.as_str(), node.until, topic.clock));
        }
    }
    let body = html! {
        h1 { "Nodes" }
        p.quiet { "A node is seen while it holds jobs of a topic, or waits for the next one: two nodes of each topic do that." }
        section.panel {
            h2 { "Nodes that hold jobs, by topic" }
            div.scroll tabindex="0" role="region" aria-label="Nodes by topic" { table {
                caption.hidden { "How many nodes hold jobs of each topic" }
                thead { tr { th scope="col" { "Topic" } th.n scope="col" { "Nodes that hold jobs" } th.n scope="col" { "Running jobs" } th scope="col" { "Listens" } } }
                tbody { @for topic in &page.topics {
                    @let name = topic.topic.as_str();
                    tr {
                        th scope="row" { a href=(frame.to("topic", &[("topic", name)])) { (name) } }
                        td.n { (number(topic.holders)) } td.n { (number(topic.running)) }
                        td { @if topic.has_listener() || topic.holders > 0 { "yes" } @else { span.badge.odd { "nobody seen" } } }
                    }
                } }
            } }
        }
        section.panel {
            h2 { "Nodes that wait for a next job" }
            @if waiting.is_empty() { p.empty { "No node waits for the next job of these topics." } } @else {
                div.scroll tabindex="0" role="region" aria-label="Waiting nodes" { table {
                    caption.hidden { "Nodes that wait for the next job of a topic" }
                    thead { tr { th scope="col" { "Node" } th scope="col" { "Topic" } th scope="col" { "Comes at the latest" } } }
                    tbody { @for (node, topics) in &waiting { @for (topic, until, now) in topics {
                        tr {
                            th scope="row" { code { (node) } }
                            td { a href=(frame.to("topic", &[("topic", topic)])) { (topic) } }
                            td { (moment(*until, *now)) @if until <= now { " " span.badge.bad { "gone?" } } }
                        }
                    } } }
                } }
            }
            (more(&frame, "nodes", page.next.as_deref()))
        }
    };
    Ok(super::html(frame.page("Nodes", "nodes", &body)))
}
