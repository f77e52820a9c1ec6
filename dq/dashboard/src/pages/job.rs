//! One job.

use axum::extract::{Query, State};
use dq::inspect::{HistoryEntry, JobSummary, Why};
use dq::job::{self, KeptState};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Answer, table};
use crate::act::Done;
use crate::app::{App, Shared};
use crate::failure::Failure;
use crate::frame::{Frame, failure};
use crate::show::{moment, number};
use crate::visit::Visit;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    topic: String,
    id: String,
    done: String,
    undo: String,
    former: String,
}

pub(crate) async fn show(State(app): State<Shared>, visit: Visit, Query(asked): Query<Asked>) -> Answer {
    let frame = Frame::new(&app, &visit);
    let (topic, id) = (asked.topic.as_str(), asked.id.as_str());
    let read = async {
        let why = app.inspector.why(topic, id).await?;
        let secrets = if why.job.is_some() { secrets(&app, topic, id).await? } else { None };
        Ok((why, secrets))
    };
    let (why, secrets) = read.await.map_err(|error: Failure| failure(&frame, &error))?;
    let body = html! {
        (Done { action: &asked.done, undo: &asked.undo, topic, id, former: &asked.former }.show(&frame))
        p.trail { a href=(frame.to("topic", &[("topic", topic)])) { "Topic " (topic) } }
        h1 { "Job " code { (id) } }
        (reasons(&why))
        @if why.job.is_none() { (history(&why.history)) }
        @if let Some(job) = &why.job {
            @if !frame.read_only { (actions(&frame, topic, job)) }
            (record(job))
            (headers(job))
            (history(&why.history))
            @if let Some(error) = &job.error { section.panel { h2 { "Last error" } pre tabindex="0" { (error) } } }
            section.panel {
                h2 { "Payload" }
                @match (&secrets, &app.redact) {
                    (Some(secrets), _) => pre tabindex="0" { (secrets.payload) },
                    (None, None) => p.empty { "Payloads are hidden; " code { "Dashboard::show_payloads" } " shows them." },
                    (None, Some(_)) => p.empty { "It cannot be read." },
                }
            }
            @if let Some(state) = secrets.as_ref().and_then(|secrets| secrets.kept_state.as_ref()) {
                section.panel { h2 { "Kept state" } pre tabindex="0" { (state) } }
            }
            @if let Some(result) = secrets.as_ref().and_then(|secrets| secrets.result.as_ref()) {
                section.panel { h2 { "Result" } pre tabindex="0" { (result) } }
            }
        }
    };
    Ok(frame.answer(&format!("Job {id}"), "-", &body))
}

/// The payload, the state that a run has kept and the result, as the program wants them shown.
pub(crate) struct Secrets {
    pub(crate) payload: String,
    pub(crate) kept_state: Option<String>,
    pub(crate) result: Option<String>,
}

/// What the program wants shown of a job; `None` if it wants nothing shown.
pub(crate) async fn secrets(app: &App, topic: &str, id: &str) -> Result<Option<Secrets>, Failure> {
    let Some(redact) = &app.redact else { return Ok(None) };
    let provider = app.provider.topic(topic).map_err(dq::provider::CallError::from)?;
    let Some(seen) = provider.get(id).await? else { return Ok(None) };
    let details = seen.details.as_ref().ok();
    let show = |left: &KeptState| redact.show(topic, left.as_bytes());
    let kept_state = details.and_then(|details| details.state.as_ref()).map(show);
    let result = details.and_then(|details| details.result.as_ref()).map(show);
    Ok(seen.raw_payload().ok().map(|(_, bytes)| Secrets { payload: redact.show(topic, bytes), kept_state, result }))
}

fn reasons(why: &Why) -> Markup {
    html! {
        section.panel.why {
            h2 { @if why.job.is_some() { "Why it has not run" } @else { "There is no such job" } }
            @if why.job.is_none() && !why.history.is_empty() { ol { @for reason in &why.reasons { li { (reason) } } } }
            @else if why.job.is_none() { p { "The topic has no job with this id. Nothing is kept of a job that has ended, unless it has a " code { "retain" } "." } }
            @else { ol { @for reason in &why.reasons { li { (reason) } } } }
        }
    }
}

fn actions(frame: &Frame, topic: &str, job: &JobSummary) -> Markup {
    let verbs: &[(&str, &str)] = match job.state {
        job::State::Delayed => &[("run_now", "Run now…"), ("reschedule", "Reschedule…"), ("delete", "Delete…")],
        job::State::Unacked => &[("ack", "Ack…"), ("requeue", "Requeue…"), ("delete", "Delete…")],
        job::State::Dead => &[("requeue", "Requeue…"), ("delete", "Delete…")],
        _ => &[("delete", "Delete…")],
    };
    // So nothing is done to a job that was changed since somebody looked at it.
    let version = job.version.to_string();
    html! {
        div.actions {
            @for (verb, label) in verbs {
                @let query = [("action", *verb), ("topic", topic), ("id", job.id.as_str()), ("version", &version)];
                a class={ "button " (if *verb == "delete" { "danger" } else { "" }) } href=(frame.to("confirm", &query)) { (label) }
            }
        }
    }
}

fn record(job: &JobSummary) -> Markup {
    let now = job.store_time;
    html! {
        section.panel {
            h2 { "Record" }
            dl.record {
                dt { "State" } dd { span class={ "badge s-" (job.state.to_string().to_lowercase()) } { (job.state) } }
                @if let Some(at) = job.at {
                    dt { (match job.state { job::State::Delayed => "Due", job::State::Done => "Kept until", _ => "Since" }) }
                    dd { (moment(at, now)) }
                }
                @if let Some(node) = &job.node { dt { "Node" } dd { code { (node) } } }
                @if let Some(progress) = &job.progress { dt { "Progress" } dd { (progress) } }
                @if let Some(group) = &job.group { dt { "Group" } dd { code { (group) } } }
                @if job.priority != job::Priority::Normal { dt { "Priority" } dd { (job.priority) } }
                @if job.weight != job::Weight::ONE { dt { "Weight" } dd { (job.weight) } }
                dt { "Failed runs" } dd { (job.attempts) }
                @if let Some(cause) = job.cause { dt { "Cause" } dd { (cause) } }
                @if let Some(at) = job.expires_at { dt { "Expires" } dd { (moment(at, now)) } }
                dt { "Version" } dd { (job.version) }
                dt { "Bytes" } dd { (number(job.bytes)) }
                @if job.kept_state_bytes > 0 { dt { "Kept state" } dd { (number(job.kept_state_bytes)) " bytes" } }
                @if job.result_bytes > 0 { dt { "Result" } dd { (number(job.result_bytes)) " bytes" } }
                @if let Some(bad) = &job.unreadable { dt { "Unreadable" } dd { (bad) } }
            }
        }
    }
}

fn history(history: &[HistoryEntry]) -> Markup {
    html! {
        @if !history.is_empty() {
            section.panel {
                h2 { "History" }
                (table("History", "What happened to the job, oldest first", &["Time", "What"],
                    &html! { @for past in history { tr { th scope="row" { (past.at) } td { (past) } } } }))
            }
        }
    }
}

fn headers(job: &JobSummary) -> Markup {
    html! {
        @if !job.headers.is_empty() {
            section.panel {
                h2 { "Headers" }
                (table("Headers", "Headers of the job", &["Name", "Value"],
                    &html! { @for (name, value) in &job.headers { tr { th scope="row" { code { (name) } } td { code { (value) } } } } }))
            }
        }
    }
}
