//! One topic.

use axum::extract::{Query, State};
use dq::inspect::{NodeSummary, Rates, Scale, StatsBuckets, TopicSummary};
use dq::provider::LimitKind;
use maud::{Markup, html};
use serde::Deserialize;

use super::groups::groups_of;
use super::{Answer, chart, overview, past, sets, table};
use crate::act::Done;
use crate::app::{App, Shared};
use crate::failure::Failure;
use crate::frame::{Frame, failure};
use crate::live::View;
use crate::show::{duration, moment, number};
use crate::visit::Visit;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    topic: String,
    scale: String,
    done: String,
    undo: String,
}

pub(crate) async fn show(State(app): State<Shared>, visit: Visit, Query(asked): Query<Asked>) -> Answer {
    let frame = Frame::new(&app, &visit);
    let name = asked.topic.as_str();
    let scale = chart::scale(&asked.scale);
    let body = body(&frame, &app, name, scale).await.map_err(|error| failure(&frame, &error))?;
    let view = View::topic(&frame, name, scale);
    let page = html! {
        (Done { action: &asked.done, undo: &asked.undo, topic: name, ..Done::default() }.show(&frame))
        div.head { h1 { "Topic " code { (name) } } p.live #live hidden {} }
        div hx-sse:connect=(view.stream(&frame)) hx-swap="innerMorph" { (body) }
        (find(&frame, name))
    };
    Ok(frame.answer(name, "-", &page))
}

/// What changes on the page.
pub(crate) async fn body(frame: &Frame, app: &App, name: &str, scale: Scale) -> Result<Markup, Failure> {
    let topic = app.inspector.topic(name).await?;
    let timeline_for = app.inspector.timeline_for(name, scale, topic.store_time).await?;
    let behind = match topic.rates {
        Some(_) => app.inspector.past_of(name, scale, topic.store_time).await?,
        None => StatsBuckets::default(),
    };
    let groups = app.inspector.groups(name, None).await?;
    let sets = sets::panel(frame, app, name, topic.store_time).await?;
    Ok(html! {
        (states(frame, &topic))
        (settings(frame, &topic))
        section.panel aria-label="What falls due" {
            h2 { @if behind.spans.is_empty() { "What falls due" } @else { "What ran, and what falls due" } }
            (chart::scales(frame, "topic", &[("topic", name)], scale))
            @if behind.spans.is_empty() { (chart::stacked(vec![(name.to_owned(), timeline_for.into())], scale)) }
            @else { (past::chart(&behind, &timeline_for, scale)) }
            @if let Some(rates) = &topic.rates { (now(rates)) }
        }
        section.panel {
            h2 { "Nodes" }
            p.quiet { (number(topic.nodes_holding)) " " (if topic.nodes_holding == 1 { "node holds" } else { "nodes hold" }) " jobs of this topic." }
            (nodes(&topic))
        }
        @if !groups.groups.is_empty() { (groups_of(frame, &groups, topic.store_time)) }
        (sets)
    })
}

/// What runs at present.
fn now(rates: &Rates) -> Markup {
    html! {
        p.quiet {
            "In the last five minutes " (format!("{:.1}", rates.per_minute(rates.ran))) " jobs ran a minute, "
            (format!("{:.1}", rates.per_minute(rates.failed))) " of them failed"
            @if let Some(most) = rates.p99_lateness { "; 99 of 100 were claimed at most " (duration(most)) " late" }
            "."
        }
    }
}

fn states(frame: &Frame, topic: &TopicSummary) -> Markup {
    let name = topic.topic.as_str();
    let tile = |label: &str, state: &str, n: usize, note: String, class: &str| {
        html! { div class={ "tile " (class) } { dt { (label) } dd {
            b { @if state.is_empty() { (number(n)) } @else { a href=(frame.to("jobs", &[("topic", name), ("state", state)])) { (number(n)) } } }
            span.quiet { (note) }
        } } }
    };
    let room = topic.state.waiting().map_or_else(|| "due later or now".into(), |limit| format!("of {}", number(limit)));
    let late =
        if topic.lateness.is_zero() { "on time".to_owned() } else { format!("{} late", duration(topic.lateness)) };
    html! {
        dl.tiles {
            (tile("Waiting", "delayed", topic.delayed, room, if topic.at_capacity() { "bad" } else { "" }))
            (tile("Due now", "delayed", topic.ready, late, if overview::is_late(topic.lateness) { "bad" } else { "good" }))
            (tile("Running", "running", topic.running, String::new(), ""))
            (tile("Un-acked", "unacked", topic.unacked, String::new(), if topic.unacked > 0 { "odd" } else { "" }))
            (tile("Dead", "dead", topic.dead, String::new(), if topic.dead > 0 { "bad" } else { "" }))
            (tile("Done", "done", topic.done, "kept by retain".into(), ""))
            (tile("Broadcasts", "", topic.broadcasts, "wait".into(), ""))
        }
    }
}

/// Pause, drain, default delay and limits, with what changes them.
fn settings(frame: &Frame, topic: &TopicSummary) -> Markup {
    let (name, now) = (topic.topic.as_str(), topic.store_time);
    let with_limit = |action: &str, limit: &str, label: &str| {
        html! { @if !frame.read_only { a.button href=(frame.to("confirm", &[("action", action), ("topic", name), ("limit", limit)])) { (label) } } }
    };
    let button = |action: &str, label: &str| with_limit(action, "", label);
    html! {
        section.panel.limits aria-label="State of the topic" {
            div {
                @if let Some(pause) = &topic.state.pause {
                    p { span.badge.odd { "paused" } " by " b { (pause.by) } ", " (moment(pause.since, now)) ": " (pause.reason)
                        @if let Some(until) = pause.until { "; ends " (moment(until, now)) } }
                    (button("resume", "Resume…"))
                } @else { p { "Not paused." } (button("pause", "Pause…")) }
            }
            div {
                @if let Some(drain) = &topic.state.drain {
                    p { span.badge.odd { "drains" } " by " b { (drain.by) } ", " (moment(drain.since, now)) ": " (drain.reason) }
                    (button("undrain", "End the drain…"))
                } @else { p { "Does not drain." } (button("drain", "Drain…")) }
            }
            div {
                @if let Some(delay) = &topic.state.delay {
                    p { "Default delay " b { (duration(delay.delay)) } ", set by " (delay.by) ", " (moment(delay.since, now)) }
                } @else { p { "No default delay in the store." } }
            }
            @for kind in LimitKind::ALL {
                div {
                    @if let Some(set) = topic.state.limit(kind) {
                        p { "At most " b { (set.limit) } " " (kind.unit()) ", set by " b { (set.by) } ", " (moment(set.since, now))
                            @if !set.reason.is_empty() { ": " (set.reason) } }
                        (with_limit("clear_limit", kind.name(), "Clear…"))
                    } @else { p { "No limit is set on " (kind.unit()) ": the code decides." } }
                    (with_limit("limit", kind.name(), "Set a limit…"))
                }
            }
            @if let Some(limit) = topic.slot_limit_reached {
                p { span.badge.odd { "at its limit" } " " (number(topic.running)) " of " (number(limit)) " run, and due jobs wait for one of them to end" }
            }
            @if topic.blocked_by_group > 0 {
                p { span.badge.odd { "groups" } " " (number(topic.blocked_by_group)) " due jobs wait for another job of their group" }
            }
        }
    }
}

pub(crate) fn nodes(topic: &TopicSummary) -> Markup {
    let row = |node: &NodeSummary, what: &str| {
        let is_gone = node.until <= topic.store_time;
        html! { tr {
            th scope="row" { code { (node.node) } }
            td { (what) @if is_gone { " " span.badge.bad { "overdue" } } }
            td.n { (number(node.jobs)) }
            td { (moment(node.until, topic.store_time)) }
        } }
    };
    html! {
        @if topic.nodes.is_empty() && topic.watchers.is_empty() { p.empty { "No node holds jobs of this topic or waits for its next one." } } @else {
            (table("Nodes", "Nodes that hold jobs of the topic or wait for the next one",
                &["Node", "What it does", "#Jobs", "Lease ends, or expected by"],
                &html! {
                    @for node in &topic.nodes { (row(node, "runs jobs")) }
                    @for node in &topic.watchers { (row(node, "waits for the next job")) }
                }))
        }
    }
}

fn find(frame: &Frame, name: &str) -> Markup {
    html! {
        section.panel {
            h2 { "Find a job" }
            form.row method="get" action=(frame.to("job", &[])) {
                input type="hidden" name="topic" value=(name);
                label { "Id" input name="id" required autocomplete="off" spellcheck="false"; }
                button { "Show" }
            }
        }
    }
}
