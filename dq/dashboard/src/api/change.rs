//! Changes of one job, topic or schedule.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Answer, body, failed, json};
use crate::act::{Applied, UserChange, apply};
use crate::app::Shared;
use crate::failure::{Failure, Problem};
use crate::visit::Visit;

/// Why, and for how long.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReasonGiven {
    /// Why; required, up to 1 KiB.
    reason: String,
    /// How long a pause lasts, such as `2h`; without it, until somebody resumes.
    #[serde(default)]
    lasting: Option<String>,
}

/// When a job is to be due.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Due {
    /// A delay such as `15m`, an RFC 3339 time with its offset, or milliseconds since the Unix epoch.
    when: String,
    /// The version that the job must have; otherwise nothing is done, and the answer is 409.
    if_version: Option<u32>,
}

/// Which version a job must have.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfVersion {
    /// The version that the job must have; otherwise nothing is done, and the answer is 409.
    if_version: Option<u32>,
}

/// A limit of a topic.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Limit {
    /// What it limits: `concurrency`, `rate`, `waiting`, `group_concurrency`, `group_rate`, `group_waiting` or `group_burst`.
    kind: String,
    /// Its value; `null`: what the code says applies again.
    value: Option<LimitValue>,
    /// Why; up to 1 KiB.
    #[serde(default)]
    reason: String,
}

/// The value of a limit: a number of jobs, or a rate such as `100/s`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
enum LimitValue {
    Jobs(usize),
    Rate(String),
}

impl LimitValue {
    fn text(self) -> String {
        match self {
            Self::Jobs(jobs) => jobs.to_string(),
            Self::Rate(rate) => rate,
        }
    }
}

/// The body of a change that needs none: `{}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl From<ReasonGiven> for UserChange {
    fn from(ReasonGiven { reason, lasting }: ReasonGiven) -> Self {
        Self { reason, lasting, ..Self::default() }
    }
}

impl From<Due> for UserChange {
    fn from(Due { when, if_version }: Due) -> Self {
        Self { due: when, if_version, ..Self::default() }
    }
}

impl From<OfVersion> for UserChange {
    fn from(OfVersion { if_version }: OfVersion) -> Self {
        Self { if_version, ..Self::default() }
    }
}

impl From<Nothing> for UserChange {
    fn from(Nothing {}: Nothing) -> Self {
        Self::default()
    }
}

type Body<T> = Result<Json<T>, JsonRejection>;

/// What a path names: a topic, or a job, a schedule or a group of it.
#[derive(Debug, Deserialize)]
pub(super) struct Named {
    topic: String,
    #[serde(default)]
    id: String,
}

async fn done(app: &Shared, visit: &Visit, named: Named, action: &str, change: impl Into<UserChange>) -> Answer {
    let change = UserChange { action: action.to_owned(), id: named.id, ..change.into() };
    apply(app, &visit.user, &named.topic, &change).await.map(json).map_err(failed)
}

/// A handler for each change: its path and what that names, its body, the word for it, and the refusals of its own.
macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident, $path:literal ($($named:tt),+), $body:ident, $action:literal, [$($status:tt),*];)+) => {$(
        $(#[$doc])*
        #[utoipa::path(post, path = $path, tag = "changes", request_body = $body, params($(($named = String, Path)),+),
            responses((status = 200, body = Applied), $((status = $status, body = Problem),)* (status = 503, body = Problem)))]
        pub(super) async fn $name(State(app): State<Shared>, visit: Visit, Path(named): Path<Named>, sent: Body<$body>) -> Answer {
            done(&app, &visit, named, $action, body(sent).map_err(failed)?).await
        }
    )+};
}

changes! {
    /// Makes a DEAD or UNACKED job due now.
    requeue, "/topics/{topic}/jobs/{id}/requeue" ("topic", "id"), OfVersion, "requeue", [409];
    /// Acks an UNACKED or RUNNING job.
    ack, "/topics/{topic}/jobs/{id}/ack" ("topic", "id"), OfVersion, "ack", [409];
    /// Makes a job that waits due now.
    run_now, "/topics/{topic}/jobs/{id}/run-now" ("topic", "id"), OfVersion, "run_now", [404, 409];
    /// Gives a job that waits another due time.
    reschedule, "/topics/{topic}/jobs/{id}/reschedule" ("topic", "id"), Due, "reschedule", [400, 404, 409];
    /// Pauses a schedule; `id` is its name.
    pause_schedule, "/topics/{topic}/schedules/{id}/pause" ("topic", "id"), ReasonGiven, "pause_schedule", [404];
    /// Ends the pause of a schedule; `id` is its name.
    resume_schedule, "/topics/{topic}/schedules/{id}/resume" ("topic", "id"), Nothing, "resume_schedule", [404, 409];
    /// Pauses a group: no node takes its jobs; `id` is its name.
    pause_group, "/topics/{topic}/groups/{id}/pause" ("topic", "id"), ReasonGiven, "pause_group", [400];
    /// Ends the pause of a group, or lets it pass the jobs that it waits for and that do not run; `id` is its name.
    resume_group, "/topics/{topic}/groups/{id}/resume" ("topic", "id"), Nothing, "resume_group", [400, 409];
    /// Pauses a topic: no node takes its jobs.
    pause, "/topics/{topic}/pause" ("topic"), ReasonGiven, "pause", [400];
    /// Ends the pause of a topic.
    resume, "/topics/{topic}/resume" ("topic"), Nothing, "resume", [];
    /// Drains a topic: it refuses new jobs, and nodes run only what is due already.
    drain, "/topics/{topic}/drain" ("topic"), ReasonGiven, "drain", [400];
    /// Ends the drain of a topic.
    undrain, "/topics/{topic}/undrain" ("topic"), Nothing, "undrain", [];
}

/// Deletes a job; a running one when its run ends.
#[utoipa::path(delete, path = "/topics/{topic}/jobs/{id}", tag = "changes", params(("topic" = String, Path), ("id" = String, Path), ("if_version" = Option<u32>, Query, description = "The version that the job must have")),
    responses((status = 200, body = Applied), (status = 400, body = Problem), (status = 409, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn delete(
    State(app): State<Shared>,
    visit: Visit,
    Path(named): Path<Named>,
    asked: Result<Query<OfVersion>, QueryRejection>,
) -> Answer {
    let Query(version) = asked.map_err(|error| failed(Failure::Bad(error.body_text())))?;
    done(&app, &visit, named, "delete", version).await
}

/// Removes a schedule; `id` is its name. Jobs that it has added stay.
#[utoipa::path(delete, path = "/topics/{topic}/schedules/{id}", tag = "changes", params(("topic" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = Applied), (status = 503, body = Problem)))]
pub(super) async fn remove_schedule(State(app): State<Shared>, visit: Visit, Path(named): Path<Named>) -> Answer {
    done(&app, &visit, named, "remove_schedule", Nothing {}).await
}

/// Sets or clears a limit of a topic for all nodes and producers.
#[utoipa::path(post, path = "/topics/{topic}/limit", tag = "changes", request_body = Limit, params(("topic" = String, Path)),
    responses((status = 200, body = Applied), (status = 400, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn limit(
    State(app): State<Shared>,
    visit: Visit,
    Path(Named { topic, .. }): Path<Named>,
    sent: Body<Limit>,
) -> Answer {
    let Limit { kind, value, reason } = body(sent).map_err(failed)?;
    let action = if value.is_some() { "limit" } else { "clear_limit" };
    let change = UserChange { reason, value: value.map(LimitValue::text).unwrap_or_default(), ..UserChange::default() };
    done(&app, &visit, Named { topic, id: kind }, action, change).await
}
