//! Job sets. Members are added like any job.
#![expect(unused_qualifications, reason = "the macro that describes a route writes them")]

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use dq::provider::{CallError, JobSetSummary};
use serde::Deserialize;
use utoipa::IntoParams;

use super::add::NewJob;
use super::answers::JobSets;
use super::{Answer, body, failed, json};
use crate::app::Shared;
use crate::audit::audit;
use crate::failure::{Failure, Problem};
use crate::pages;
use crate::visit::Visit;

/// Where a page begins.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(super) struct Behind {
    /// How many sets come before the page: `next` of the page before.
    from: usize,
}

/// Up to 100 job sets that live in a topic, those first that have not ended; ended ones for a day.
#[utoipa::path(get, path = "/topics/{topic}/sets", tag = "sets", params(("topic" = String, Path), Behind),
    responses((status = 200, description = "The page", body = JobSets), (status = 503, body = Problem)))]
pub(super) async fn list(
    State(app): State<Shared>,
    Path(topic): Path<String>,
    Query(Behind { from }): Query<Behind>,
) -> Answer {
    let (sets, next) = pages::set_page(&app, &topic, from).await.map_err(failed)?;
    Ok(json(JobSets { sets, next }))
}

/// A job set, with up to 1,000 of the members that have not ended, each as its topic and its id.
#[utoipa::path(get, path = "/topics/{topic}/sets/{id}", tag = "sets", params(("topic" = String, Path), ("id" = String, Path)),
    responses((status = 200, description = "The set", body = JobSetSummary), (status = 404, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn one(State(app): State<Shared>, Path((topic, id)): Path<(String, String)>) -> Answer {
    pages::set_of(&app, &topic, &id).await.map(json).map_err(failed)
}

/// Closes a job set: this job is added once all members have ended. A set that is closed, or has ended, stays as it is.
#[utoipa::path(post, path = "/topics/{topic}/sets/{id}/close", tag = "sets", request_body = NewJob, params(("topic" = String, Path), ("id" = String, Path)),
    responses((status = 200, description = "The set, without the members that it waits for", body = JobSetSummary), (status = 400, body = Problem),
        (status = 409, description = "The topic has too many sets that have not ended", body = Problem), (status = 413, body = Problem), (status = 503, description = "The store did not answer: send it again", body = Problem)))]
pub(super) async fn close(
    State(app): State<Shared>,
    visit: Visit,
    Path((topic, id)): Path<(String, String)>,
    sent: Result<Json<NewJob>, JsonRejection>,
) -> Answer {
    let add = body(sent).and_then(|job| job.into_last(&app, &topic)).map_err(failed)?;
    let closed: Result<JobSetSummary, CallError> = add.last_of(&id).await;
    let outcome = closed.as_ref().map_or_else(|error| format!("failed: {error}"), |set| set.state.as_str().to_owned());
    audit(&visit.user, "close_set", &topic, &id, &outcome);
    closed.map(json).map_err(|error| failed(Failure::from(error)))
}
