//! The jobs of one state, by filter.

use axum::extract::{Query, State};
use dq::inspect::{JobFilter, JobSummary, JobsPage};
use dq::job;
use dq::time::Timestamp;
use maud::{Markup, html};

use super::{Answer, table};
use crate::app::Shared;
use crate::asked::{Asked, STATES, state};
use crate::frame::{Frame, failure};
use crate::show::{jobs, moment, now, number, plain};
use crate::visit::Visit;

/// What the time of a job in a state means.
const fn meaning(state: job::State) -> &'static str {
    match state {
        job::State::Delayed => "Due",
        job::State::Running => "Node",
        job::State::Done => "Kept until",
        _ => "Since",
    }
}

pub(crate) async fn show(State(app): State<Shared>, visit: Visit, Query(mut asked): Query<Asked>) -> Answer {
    let frame = Frame::new(&app, &visit);
    if asked.state.is_empty() {
        asked.state = "delayed".into();
    }
    let read = async {
        let (state, filter) = (state(&asked.state)?, asked.filter()?);
        let page = app.inspector.jobs(&asked.topic, state, &filter, asked.cursor()?).await?;
        Ok((state, filter, page))
    };
    let (state, filter, page) = read.await.map_err(|error| failure(&frame, &error))?;
    let topic = asked.topic.as_str();
    let body = html! {
        p.trail { a href=(frame.to("topic", &[("topic", topic)])) { "Topic " (topic) } }
        h1 { (state_name(state)) " jobs of " code { (topic) } }
        nav.tabs aria-label="States" {
            @for (word, other, name) in STATES {
                a href=(frame.to("jobs", &[("topic", topic), ("state", word)])) aria-current=[(other == state).then_some("page")] { (name) }
            }
        }
        (filters(&frame, &asked, filter != JobFilter::default()))
        section.panel {
            h2.hidden { "Jobs" }
            @if page.jobs.is_empty() { p.empty { "No job here." } } @else { (table_of(&frame, topic, state, &page)) }
            (foot(&frame, &asked, &page))
        }
        @if !frame.read_only { (bulk(&frame, &asked, state)) }
    };
    Ok(frame.answer(&format!("{} jobs of {topic}", state_name(state)), "-", &body))
}

fn state_name(state: job::State) -> &'static str {
    STATES.iter().find(|(_, other, _)| *other == state).map_or("Other", |(.., name)| name)
}

fn filters(frame: &Frame, asked: &Asked, is_used: bool) -> Markup {
    let field = |name: &str, label: &str, hint: &str, value: &str| {
        html! { label { (label) input name=(name) value=(value) placeholder=(hint) autocomplete="off" spellcheck="false"; } }
    };
    html! {
        details.panel.filter open[is_used] {
            summary { "Filter" }
            form.row method="get" action=(frame.to("jobs", &[])) {
                input type="hidden" name="topic" value=(asked.topic);
                input type="hidden" name="state" value=(asked.state);
                (field("id_prefix", "Id begins with", "", &asked.id_prefix))
                (field("header", "Header", "name=value", &asked.header))
                (field("error", "Error has", "timed out", &asked.error))
                (field("attempts", "Failed at least", "1", &asked.attempts))
                (field("from", "Time from", "2026-11-23 14:00:00 UTC", &asked.from))
                (field("until", "Time before", "2026-11-23 15:00:00 UTC", &asked.until))
                button { "Filter" }
                @if is_used { a href=(frame.to("jobs", &[("topic", &asked.topic), ("state", &asked.state)])) { "Clear" } }
            }
        }
    }
}

fn table_of(frame: &Frame, topic: &str, state: job::State, page: &JobsPage) -> Markup {
    let now = now();
    let caption = format!("{} jobs of {topic}", state_name(state));
    let columns = ["Id", meaning(state), "#Failed", "Cause and last error", "#Bytes"];
    table("Jobs", &caption, &columns, &html! { @for job in &page.jobs { (row(frame, topic, job, now)) } })
}

fn row(frame: &Frame, topic: &str, job: &JobSummary, now: Timestamp) -> Markup {
    html! { tr {
        th scope="row" { a href=(frame.to("job", &[("topic", topic), ("id", job.id.as_str())])) { code { (job.id) } } }
        td {
            @if let Some(at) = job.at { (moment(at, now)) }
            @if let Some(node) = &job.node { code { (node) } }
        }
        td.n { (job.attempts) }
        td.error {
            @if let Some(cause) = job.cause { span.badge { (cause) } " " }
            @if let Some(error) = &job.error { span { (short(error)) } }
            @if let Some(bad) = &job.unreadable { span.badge.bad { "unreadable" } " " (bad) }
        }
        td.n { (number(job.bytes)) }
    } }
}

/// The first line of an error, up to 160 characters.
fn short(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    match line.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn foot(frame: &Frame, asked: &Asked, page: &JobsPage) -> Markup {
    html! {
        p.quiet { (jobs(page.jobs.len())) " of " (number(page.looked_at)) " looked at"
            @if let Some(until) = page.looked_until.filter(|at| *at > 0) { ", up to " (plain(Timestamp::from_millis(until))) } "." }
        @if let Some(next) = &page.next {
            @let at = next.at.as_millis().to_string();
            @let query: Vec<_> = asked.query().into_iter().chain([("after_at", at.as_str()), ("after_id", next.id.as_str())]).collect();
            nav.pages aria-label="Pages of jobs" { a rel="next" href=(frame.to("jobs", &query)) { "Next page" } }
        }
    }
}

/// What can be done with all jobs that the filter lets through.
fn bulk(frame: &Frame, asked: &Asked, state: job::State) -> Markup {
    let verbs: &[(&str, &str)] = match state {
        job::State::Delayed => {
            &[("run_now", "Run all now…"), ("reschedule", "Reschedule all…"), ("delete", "Delete all…")]
        }
        job::State::Running | job::State::Done => &[("delete", "Delete all…")],
        _ => &[("requeue", "Requeue all…"), ("delete", "Delete all…")],
    };
    html! {
        section.panel.actions aria-label="All jobs that match" {
            h2 { "All jobs that match" }
            @for (verb, label) in verbs {
                @let query: Vec<_> = asked.query().into_iter().chain([("action", *verb)]).collect();
                a class={ "button " (if *verb == "delete" { "danger" } else { "" }) } href=(frame.to("confirm", &query)) { (label) }
            }
        }
    }
}
