//! Reads.
#![expect(unused_qualifications, reason = "the macro that describes a route writes them")]

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use dq::inspect::{GroupsPage, JobSummary, JobsPage, NodesPage, Timeline, TopicSummary, TopicsPage};
use serde::Deserialize;
use utoipa::IntoParams;

use super::answers::{Finding, Findings, PastAnswer, Schedule, Schedules, Why};
use super::{Answer, failed, json};
use crate::app::Shared;
use crate::asked::{self, Asked};
use crate::failure::{Failure, Problem};
use crate::pages;

/// Where a page begins.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(super) struct Start {
    /// Starts after this name: `next` of the previous page.
    cursor: Option<String>,
}

/// Up to 18 topics that hold anything, in the order of their names, with their counts by state, lateness, pause and drain.
#[utoipa::path(get, path = "/topics", tag = "topics", params(Start),
    responses((status = 200, description = "The page", body = TopicsPage), (status = 503, body = Problem)))]
pub(super) async fn topics(State(app): State<Shared>, Query(Start { cursor }): Query<Start>) -> Answer {
    app.inspector.topics(cursor.as_deref()).await.map(json).map_err(failed)
}

/// A topic with the nodes that hold its jobs.
#[utoipa::path(get, path = "/topics/{topic}", tag = "topics", params(("topic" = String, Path)),
    responses((status = 200, description = "The topic; an unused one is empty", body = TopicSummary), (status = 503, body = Problem)))]
pub(super) async fn topic(State(app): State<Shared>, Path(topic): Path<String>) -> Answer {
    app.inspector.topic(&topic).await.map(json).map_err(failed)
}

/// Up to 100 nodes that hold jobs of a topic, in the order of their names, and those that wait for its next job.
#[utoipa::path(get, path = "/topics/{topic}/nodes", tag = "topics", params(("topic" = String, Path), Start),
    responses((status = 200, description = "The page", body = NodesPage), (status = 503, body = Problem)))]
pub(super) async fn nodes(
    State(app): State<Shared>,
    Path(topic): Path<String>,
    Query(Start { cursor }): Query<Start>,
) -> Answer {
    app.inspector.nodes(&topic, cursor.as_deref()).await.map(json).map_err(failed)
}

/// Up to 100 groups of a topic that have jobs, in the order of their names, with the jobs that run and the job that stops the group.
#[utoipa::path(get, path = "/topics/{topic}/groups", tag = "topics", params(("topic" = String, Path), Start),
    responses((status = 200, description = "The page", body = GroupsPage), (status = 400, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn groups(
    State(app): State<Shared>,
    Path(topic): Path<String>,
    Query(Start { cursor }): Query<Start>,
) -> Answer {
    app.inspector.groups(&topic, cursor.as_deref()).await.map(json).map_err(failed)
}

/// How many jobs fall due in each of the next 60 minutes, 24 hours and 30 days.
#[utoipa::path(get, path = "/topics/{topic}/timeline", tag = "topics", params(("topic" = String, Path)),
    responses((status = 200, description = "The counts", body = Timeline), (status = 503, body = Problem)))]
pub(super) async fn timeline(State(app): State<Shared>, Path(topic): Path<String>) -> Answer {
    app.inspector.timeline(&topic).await.map(json).map_err(failed)
}

/// How many jobs ran, and how late, in each of the last 60 minutes and 24 hours.
#[utoipa::path(get, path = "/topics/{topic}/past", tag = "topics", params(("topic" = String, Path)),
    responses((status = 200, description = "The counts", body = PastAnswer), (status = 503, body = Problem)))]
pub(super) async fn past(State(app): State<Shared>, Path(topic): Path<String>) -> Answer {
    let past = app.inspector.run_stats(&topic).await.map_err(failed)?;
    Ok(json(PastAnswer { past }))
}

/// What endangers the store as a whole: its settings, its memory or disk, and its clock. `dq doctor` also examines every topic.
#[utoipa::path(get, path = "/doctor", tag = "store",
    responses((status = 200, description = "What was found", body = Findings), (status = 503, body = Problem)))]
pub(super) async fn doctor(State(app): State<Shared>) -> Answer {
    let findings = app.inspector.examine_store().await.map_err(failed)?;
    let said = |found: dq::inspect::Finding| Finding {
        code: found.code.as_str(),
        severity: found.severity.as_str(),
        text: found.text,
        advice: found.advice,
    };
    Ok(json(Findings { findings: findings.into_iter().map(said).collect() }))
}

/// Up to 100 jobs of one state. A filter looks at 10,000 jobs at most, so a page may be empty and not the last.
#[utoipa::path(get, path = "/topics/{topic}/jobs", tag = "jobs", params(("topic" = String, Path), Asked),
    responses((status = 200, description = "The page", body = JobsPage),
        (status = 400, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn jobs(State(app): State<Shared>, Path(topic): Path<String>, Query(asked): Query<Asked>) -> Answer {
    let state = if asked.state.is_empty() { "delayed" } else { &asked.state };
    let read = async {
        let (state, filter) = (asked::state(state)?, asked.filter()?);
        Ok(app.inspector.jobs(&topic, state, &filter, asked.cursor()?).await?)
    };
    read.await.map(json).map_err(|error: Failure| failed(error))
}

/// A job; with its payload, its kept state and its result as text if the dashboard shows payloads.
#[utoipa::path(get, path = "/topics/{topic}/jobs/{id}", tag = "jobs", params(("topic" = String, Path), ("id" = String, Path)),
    responses((status = 200, description = "The job", body = JobSummary), (status = 404, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn job(State(app): State<Shared>, Path((topic, id)): Path<(String, String)>) -> Answer {
    let Some(job) = app.inspector.job(&topic, id.as_str()).await.map_err(failed)? else {
        return Err(failed(Failure::NotThere("such job")));
    };
    let secrets = pages::secrets(&app, &topic, &id).await.map_err(failed)?;
    let mut job = serde_json::to_value(job).unwrap_or_default();
    if let (Some(secrets), Some(job)) = (secrets, job.as_object_mut()) {
        job.insert("payload".into(), secrets.payload.into());
        if let Some(state) = secrets.kept_state {
            job.insert("kept_state".into(), state.into());
        }
        if let Some(result) = secrets.result {
            job.insert("result".into(), result.into());
        }
    }
    Ok(json(job))
}

/// Why a job has not run: the decisive reason first, as data and as text.
#[utoipa::path(get, path = "/topics/{topic}/jobs/{id}/why", tag = "jobs", params(("topic" = String, Path), ("id" = String, Path)),
    responses((status = 200, description = "The reasons", body = Why),
        (status = 404, description = "There is no such job: the reason is `unknown`", body = Why), (status = 503, body = Problem)))]
pub(super) async fn why(State(app): State<Shared>, Path((topic, id)): Path<(String, String)>) -> Answer {
    let why = app.inspector.why(&topic, id.as_str()).await.map_err(failed)?;
    let status = if why.job.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let text = why.to_string().lines().map(str::to_owned).collect();
    Ok((status, json(Why { job: why.job, reasons: why.reasons, history: why.history, text })).into_response())
}

/// Up to 100 schedules of a topic, in the order of their names.
#[utoipa::path(get, path = "/topics/{topic}/schedules", tag = "schedules", params(("topic" = String, Path), Start),
    responses((status = 200, description = "The page", body = Schedules), (status = 503, body = Problem)))]
pub(super) async fn schedules(
    State(app): State<Shared>,
    Path(topic): Path<String>,
    Query(Start { cursor }): Query<Start>,
) -> Answer {
    let seen = pages::schedule_page(&app, &topic, cursor.as_deref().unwrap_or_default()).await.map_err(failed)?;
    let shown = seen.iter().map(|schedule| match &schedule.details {
        Err(error) => {
            Schedule { name: schedule.name.clone(), unreadable: Some(error.to_string()), ..Schedule::default() }
        }
        Ok(details) => Schedule {
            name: schedule.name.clone(),
            when: Some(pages::times(&details.times)),
            next: Some(details.next.as_millis()),
            paused: Some(details.pause.as_ref().map(|pause| pause.reason.clone())),
            paused_by: Some(details.pause.as_ref().map(|pause| pause.by.clone())),
            last_job: Some(details.last_job.as_ref().map(ToString::to_string)),
            unreadable: None,
        },
    });
    Ok(json(Schedules { schedules: shown.collect(), next: pages::behind(&seen).map(str::to_owned) }))
}
