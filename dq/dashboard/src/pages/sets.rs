//! The job sets of a topic, and one of them.

use axum::extract::{Query, State};
use dq::provider::{CallError, JobSetSummary, SetCounts, SetState};
use dq::time::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Answer, table};
use crate::app::{App, Shared};
use crate::failure::Failure;
use crate::frame::{Frame, failure};
use crate::show::{moment, now, number};
use crate::visit::Visit;

const A_PAGE: usize = 100;

/// How many sets the page of their topic shows.
const MAX_ROWS: usize = 10;

/// How many members the page of a set names.
const MAX_NAMED: usize = 100;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    topic: String,
    name: String,
    from: usize,
}

/// Up to 100 sets behind the first `from`, and how many come before the next page.
pub(crate) async fn set_page(
    app: &App,
    topic: &str,
    from: usize,
) -> Result<(Vec<JobSetSummary>, Option<usize>), Failure> {
    sets_of(app, topic, from, A_PAGE).await
}

async fn sets_of(
    app: &App,
    topic: &str,
    from: usize,
    most: usize,
) -> Result<(Vec<JobSetSummary>, Option<usize>), Failure> {
    let mut sets = app.provider.topic(topic).map_err(CallError::from)?.job_sets(from, most + 1).await?;
    let next = (sets.len() > most).then(|| from + most);
    sets.truncate(most);
    Ok((sets, next))
}

/// The set of this name.
pub(crate) async fn set_of(app: &App, topic: &str, name: &str) -> Result<JobSetSummary, Failure> {
    let topic = app.provider.topic(topic).map_err(CallError::from)?;
    topic.job_set(name).await?.ok_or(Failure::NotThere("such job set"))
}

pub(crate) async fn list(State(app): State<Shared>, visit: Visit, Query(asked): Query<Asked>) -> Answer {
    let frame = Frame::new(&app, &visit);
    let topic = asked.topic.as_str();
    let (sets, next) = set_page(&app, topic, asked.from).await.map_err(|error| failure(&frame, &error))?;
    let body = html! {
        p.trail { a href=(frame.to("topic", &[("topic", topic)])) { "Topic " (topic) } }
        h1 { "Job sets of " code { (topic) } }
        section.panel {
            h2.hidden { "Job sets" }
            @if sets.is_empty() { p.empty { "No job set lives in this topic." } } @else { (table_of(&frame, topic, &sets, now())) }
            @if let Some(next) = next { nav.pages aria-label="Pages of job sets" { a rel="next" href=(frame.to("sets", &[("topic", topic), ("from", &next.to_string())])) { "Next page" } } }
        }
    };
    Ok(frame.answer(&format!("Job sets of {topic}"), "-", &body))
}

/// The first sets of a topic, on its page; nothing if it has none.
pub(super) async fn panel(frame: &Frame, app: &App, topic: &str, now: Timestamp) -> Result<Markup, Failure> {
    let (sets, next) = sets_of(app, topic, 0, MAX_ROWS).await?;
    Ok(html! {
        @if !sets.is_empty() {
            section.panel {
                h2 { "Job sets" }
                (table_of(frame, topic, &sets, now))
                @if next.is_some() { nav.pages aria-label="More job sets" { a href=(frame.to("sets", &[("topic", topic)])) { "All job sets" } } }
            }
        }
    })
}

fn table_of(frame: &Frame, topic: &str, sets: &[JobSetSummary], now: Timestamp) -> Markup {
    let columns = ["Set", "State", "Ended", "#Members", "#Acked", "#Dead", "#Left", "#Waits for", "Since"];
    let rows = html! { @for set in sets { (row(frame, topic, set, now)) } };
    table("Job sets", &format!("Job sets of the topic {topic}"), &columns, &rows)
}

fn row(frame: &Frame, topic: &str, seen: &JobSetSummary, now: Timestamp) -> Markup {
    let (name, counts) = (seen.set.as_str(), &seen.counts);
    html! { tr {
        th scope="row" { a href=(frame.to("set", &[("topic", topic), ("name", name)])) { code { (name) } } }
        td { (badge(seen.state)) }
        td { (progress(counts)) }
        @for n in [counts.members, counts.acked] { td.n { (shown(n)) } }
        td.n { @if counts.dead > 0 { span.badge.bad { (shown(counts.dead)) } } @else { "0" } }
        @for n in [counts.left, counts.waits_for()] { td.n { (shown(n)) } }
        td { (moment(seen.since, now)) }
    } }
}

fn shown(n: u64) -> String {
    number(usize::try_from(n).unwrap_or(usize::MAX))
}

fn badge(state: SetState) -> Markup {
    html! { span class={ "badge" (if state == SetState::Ended { " s-done" } else { "" }) } { (state.as_str()) } }
}

/// How many of the members have ended; nothing while there are none.
fn progress(counts: &SetCounts) -> Markup {
    let ended = counts.members - counts.waits_for();
    html! { @if counts.members > 0 { progress max=(counts.members) value=(ended) aria-label="Members that have ended" {} } }
}

pub(crate) async fn one(State(app): State<Shared>, visit: Visit, Query(asked): Query<Asked>) -> Answer {
    let frame = Frame::new(&app, &visit);
    let (topic, name) = (asked.topic.as_str(), asked.name.as_str());
    let seen = set_of(&app, topic, name).await.map_err(|error| failure(&frame, &error))?;
    let body = html! {
        p.trail { a href=(frame.to("sets", &[("topic", topic)])) { "Job sets of " (topic) } }
        h1 { "Job set " code { (name) } }
        (tiles(&seen.counts))
        section.panel {
            h2 { "State" }
            p { (badge(seen.state)) " " (meaning(seen.state)) " " (moment(seen.since, now())) }
            (progress(&seen.counts))
        }
        @if seen.state != SetState::Ended { section.panel { h2 { "What it waits for" } (waits_for(&frame, &seen)) } }
    };
    Ok(frame.answer(&format!("Job set {name}"), "-", &body))
}

const fn meaning(state: SetState) -> &'static str {
    match state {
        SetState::Open => "It takes members until it is closed with its last job. It has been there since",
        SetState::Closed => "Its last job is added when all members have ended. It has been there since",
        SetState::Ended => "All members have ended, and its last job was added:",
    }
}

fn tiles(counts: &SetCounts) -> Markup {
    let tile = |label: &str, n: u64, note: &str, class: &str| {
        html! { div class={ "tile " (class) } { dt { (label) } dd { b { (shown(n)) } span.quiet { (note) } } } }
    };
    html! {
        dl.tiles {
            (tile("Members", counts.members, "in all", ""))
            (tile("Waits for", counts.waits_for(), "have not ended", ""))
            (tile("Acked", counts.acked, "done", "good"))
            (tile("Dead", counts.dead, "counted as ended", if counts.dead > 0 { "bad" } else { "" }))
            (tile("Left", counts.left, "deleted or refused", if counts.left > 0 { "odd" } else { "" }))
        }
    }
}

/// The members that have not ended, each with a link.
fn waits_for(frame: &Frame, seen: &JobSetSummary) -> Markup {
    let members = &seen.waits_for[..seen.waits_for.len().min(MAX_NAMED)];
    html! {
        @if members.is_empty() { p.empty { "All members so far have ended. The set waits until a program closes it." } } @else {
            (table("Members", "Members that have not ended", &["Job", "Topic"], &html! { @for (topic, id) in members {
                @let topic = topic.as_str();
                tr {
                    th scope="row" { a href=(frame.to("job", &[("topic", topic), ("id", id.as_str())])) { code { (id) } } }
                    td { a href=(frame.to("topic", &[("topic", topic)])) { (topic) } }
                }
            } }))
            p.quiet { (number(members.len())) " of " (shown(seen.counts.waits_for())) " members that have not ended." }
        }
    }
}
