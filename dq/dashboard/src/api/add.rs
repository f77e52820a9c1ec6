//! Adding jobs.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use dq::job::{GroupName, Priority};
use dq::provider::{Addition, CallError};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::answers::Added;
use super::{Answer, body, failed, json};
use crate::app::Shared;
use crate::asked::time;
use crate::audit::audit;
use crate::failure::{Failure, Problem};
use crate::user::Role;
use crate::visit::Visit;

/// A job to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewJob {
    /// Any JSON; the store keeps its text as it is sent, byte by byte.
    #[schema(value_type = Value)]
    payload: Box<RawValue>,
    /// The id, 1 to 256 bytes; without it dq makes one. Give one, so that a repeat after an error adds the job once.
    id: Option<String>,
    /// The delay, such as `15m`. Give this or `at`; without either, the topic's default delay counts.
    after: Option<String>,
    /// The due time: RFC 3339, or milliseconds since the Unix epoch as a text.
    at: Option<String>,
    /// What becomes of a job with the same id: `fail` (the default), `keep` or `replace`.
    on_duplicate: Option<String>,
    /// After this delay the job becomes DEAD without a run.
    expires_after: Option<String>,
    /// How long the store keeps the job after it has run.
    retain: Option<String>,
    /// The retry policy of this job, such as `1m, 5m, 1h` or `none`.
    retry: Option<String>,
    /// Which of the due jobs of the topic go first: `high`, `normal` (the default) or `low`.
    priority: Option<Priority>,
    /// The group of the job, 1 to 128 bytes: only so many of its jobs run at a time as the topic allows.
    group: Option<GroupName>,
    /// Headers as pairs of name and value, up to 8 KiB in all, with 4 bytes for each; without NUL, CR, LF and ESC.
    #[serde(default)]
    headers: Vec<(String, String)>,
}

/// Adds a job.
#[utoipa::path(post, path = "/topics/{topic}/jobs", tag = "jobs", request_body = NewJob, params(("topic" = String, Path)),
    responses((status = 201, description = "The job is in the store", body = Added), (status = 200, description = "A job with this id was there, and stays", body = Added),
        (status = 400, body = Problem), (status = 409, description = "A job with this id exists, or the topic drains", body = Problem),
        (status = 413, body = Problem), (status = 429, description = "As many jobs wait as may: send it again later", body = Problem), (status = 503, description = "The store did not answer: send it again with the same id", body = Problem)))]
pub(super) async fn add(
    State(app): State<Shared>,
    visit: Visit,
    Path(topic): Path<String>,
    sent: Result<Json<NewJob>, JsonRejection>,
) -> Answer {
    app.allows(&visit.user, Role::Add).map_err(failed)?;
    let job = body(sent).map_err(failed)?;
    let wanted = job.id.clone().unwrap_or_default();
    let added = put(&app, &topic, job).await;
    match added {
        Ok((id, how)) => {
            audit(&visit.user, "add", &topic, &id, how);
            let status = if how == "kept" { StatusCode::OK } else { StatusCode::CREATED };
            Ok((status, json(Added { id, how })).into_response())
        }
        Err(failure) => {
            audit(&visit.user, "add", &topic, &wanted, &format!("failed: {failure}"));
            Err(failed(failure))
        }
    }
}

async fn put(app: &Shared, topic: &str, job: NewJob) -> Result<(String, &'static str), Failure> {
    let provider = app.provider.topic(topic).map_err(CallError::from)?;
    let mut add = provider.add_json(job.payload.get());
    if job.after.is_some() && job.at.is_some() {
        return Err(Failure::Bad("give `after` or `at`, not both".into()));
    }
    if let Some(id) = job.id {
        add = add.id(id);
    }
    if let Some(after) = job.after {
        add = add.after(after);
    }
    if let Some(at) = job.at {
        add = add.at(time(&at)?);
    }
    if let Some(delay) = job.expires_after {
        add = add.expires_after(delay);
    }
    if let Some(delay) = job.retain {
        add = add.retain(delay);
    }
    if let Some(policy) = job.retry {
        add = add.retry(policy);
    }
    if let Some(priority) = job.priority {
        add = add.priority(priority);
    }
    if let Some(group) = job.group {
        add = add.group(group);
    }
    for (name, value) in job.headers {
        add = add.header(name, value);
    }
    let (id, how) = match job.on_duplicate.as_deref() {
        None | Some("fail") => add.await.map(|added| (added.id, added.how))?,
        Some("replace") => add.replace_existing().await.map(|added| (added.id, added.how))?,
        Some("keep") => add.keep_existing().await.map(|added| (added.id, added.how))?,
        Some(other) => return Err(Failure::Bad(format!("`on_duplicate` is fail, keep or replace, not `{other}`"))),
    };
    let how = match how {
        Addition::Kept(_) => "kept",
        Addition::New => "added",
        _ => "replaced",
    };
    Ok((id.to_string(), how))
}
