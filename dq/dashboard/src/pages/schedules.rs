//! Schedules, of one topic at a time.

use axum::extract::{Query, State};
use dq::provider::{CallError, ScheduleInfo, ScheduleOrigin};
use dq::schedule::Times;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Answer, table};
use crate::act::Done;
use crate::app::Shared;
use crate::failure::Failure;
use crate::frame::{Frame, failure};
use crate::show::{duration, moment, now};
use crate::visit::Visit;

const A_PAGE: usize = 100;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    topic: String,
    after: String,
    /// The schedule that was just changed.
    id: String,
    done: String,
    undo: String,
}

pub(crate) async fn show(State(app): State<Shared>, visit: Visit, Query(asked): Query<Asked>) -> Answer {
    let frame = Frame::new(&app, &visit);
    let topic = asked.topic.as_str();
    let body = if topic.is_empty() { choose(&app, &frame, &asked.after).await } else { of(&app, &frame, &asked).await };
    let body = body.map_err(|error| failure(&frame, &error))?;
    let done = Done { action: &asked.done, undo: &asked.undo, topic, id: &asked.id, former: "" };
    let page = html! { (done.show(&frame)) (body) };
    Ok(frame.answer("Schedules", "schedules", &page))
}

async fn choose(app: &Shared, frame: &Frame, after: &str) -> Result<Markup, Failure> {
    let page = app.outlooks.topics(&app.inspector, Some(after).filter(|after| !after.is_empty())).await?;
    Ok(html! {
        h1 { "Schedules" }
        section.panel {
            h2 { "Schedules of which topic?" }
            @if page.topics.is_empty() { p.empty { "No topic holds anything yet." } }
            ul.choice { @for topic in &page.topics {
                @let name = topic.topic.as_str();
                li { a href=(frame.to("schedules", &[("topic", name)])) { (name) } }
            } }
            (super::dead::more(frame, "schedules", page.next.as_deref()))
        }
    })
}

async fn of(app: &Shared, frame: &Frame, asked: &Asked) -> Result<Markup, Failure> {
    let topic = asked.topic.as_str();
    let seen = page(app, topic, &asked.after).await?;
    let next = behind(&seen);
    let columns = ["Name", "When", "Next tick", "From", "Last job", "Change"];
    let columns = if frame.read_only { &columns[..5] } else { &columns };
    Ok(html! {
        p.trail { a href=(frame.to("schedules", &[])) { "Other topics" } }
        h1 { "Schedules of " code { (topic) } }
        section.panel {
            h2.hidden { "Schedules" }
            @if seen.is_empty() { p.empty { "This topic has no schedules." } } @else {
                (table("Schedules", &format!("Schedules of the topic {topic}"), columns,
                    &html! { @for schedule in &seen { (row(frame, topic, schedule)) } }))
            }
            @if let Some(next) = next { nav.pages aria-label="Pages of schedules" { a href=(frame.to("schedules", &[("topic", topic), ("after", next)])) { "Next page" } } }
        }
    })
}

/// Up to 100 schedules behind a name.
pub(crate) async fn page(app: &Shared, topic: &str, after: &str) -> Result<Vec<ScheduleInfo>, Failure> {
    let mut pages = app.provider.topic(topic).map_err(CallError::from)?.schedules().per_page(A_PAGE);
    if !after.is_empty() {
        pages = pages.starting_after(after);
    }
    Ok(pages.next_page().await?.unwrap_or_default())
}

/// Where the next page begins; a full page may be the last one all the same.
pub(crate) fn behind(page: &[ScheduleInfo]) -> Option<&str> {
    page.last().filter(|_| page.len() == A_PAGE).map(|last| last.name.as_str())
}

fn row(frame: &Frame, topic: &str, schedule: &ScheduleInfo) -> Markup {
    let name = schedule.name.as_str();
    let to = |action: &str| frame.to("confirm", &[("action", action), ("topic", topic), ("id", name)]);
    html! { tr {
        th scope="row" { (name) }
        @match &schedule.details {
            Err(error) => td colspan="4" { span.badge.bad { "unreadable" } " " (error) },
            Ok(details) => {
                td { (times(&details.times)) }
                td {
                    (moment(details.next, now()))
                    @if let Some(pause) = &details.pause { " " span.badge.odd { "paused" } @if !pause.by.is_empty() { " by " b { (pause.by) } } ": " (pause.reason) }
                }
                td { (match details.origin { ScheduleOrigin::Call => "a call", ScheduleOrigin::ThisProgram => "this program", _ => "another program" }) }
                td { @if let Some(job) = &details.last_job { a href=(frame.to("job", &[("topic", topic), ("id", job.as_str())])) { code { (job) } } } }
            },
        }
        @if !frame.read_only { td.change {
            @if schedule.details.as_ref().is_ok_and(|details| details.pause.is_some()) { a.button href=(to("resume_schedule")) { "Resume…" } }
            @else { a.button href=(to("pause_schedule")) { "Pause…" } }
            a.button.danger href=(to("remove_schedule")) { "Remove…" }
        } }
    } }
}

pub(crate) fn times(times: &Times) -> String {
    match times {
        #[cfg(feature = "cron")]
        Times::Cron(cron) => cron.to_string(),
        Times::Every(interval) => format!("every {}", duration(*interval)),
        #[allow(unreachable_patterns, reason = "a program may have cron lines without the feature of this package")]
        other => format!("{other:?}"),
    }
}
