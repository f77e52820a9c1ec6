//! Changes of one job, topic or schedule.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use dq::provider::LimitKind;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Answer, body, failed, json};
use crate::act::{Applied, Change, Named, When, apply};
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
    /// A delay such as `15m`, an RFC 3339 time, or milliseconds since the Unix epoch.
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

impl OfVersion {
    fn of(self, id: String) -> Named {
        Named { id, if_version: self.if_version }
    }
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

type Body<T> = Result<Json<T>, JsonRejection>;

async fn done(app: &Shared, visit: &Visit, topic: &str, change: Change) -> Answer {
    apply(app, &visit.user, topic, change).await.map(json).map_err(failed)
}

macro_rules! of_one {
    ($($(#[$doc:meta])* $name:ident, $path:literal, $body:ident => $change:expr $(, $more:tt)*;)+) => {$(
        $(#[$doc])*
        #[utoipa::path(post, path = $path, tag = "changes", request_body = $body, params(("topic" = String, Path), ("id" = String, Path)),
            responses((status = 200, body = Applied), $($more,)* (status = 409, body = Problem), (status = 503, body = Problem)))]
        pub(super) async fn $name(State(app): State<Shared>, visit: Visit, Path((topic, id)): Path<(String, String)>, sent: Body<$body>) -> Answer {
            let change: fn(String, $body) -> Change = $change;
            let change = change(id, body(sent).map_err(failed)?);
            done(&app, &visit, &topic, change).await
        }
    )+};
}

of_one! {
    /// Makes a DEAD or UNACKED job due now.
    requeue, "/topics/{topic}/jobs/{id}/requeue", OfVersion => |id, version| Change::Requeue(version.of(id));
    /// Acks an UNACKED or RUNNING job.
    ack, "/topics/{topic}/jobs/{id}/ack", OfVersion => |id, version| Change::Ack(version.of(id));
    /// Makes a job that waits due now.
    run_now, "/topics/{topic}/jobs/{id}/run-now", OfVersion => |id, version| Change::RunNow(version.of(id)), (status = 404, body = Problem);
    /// Ends the pause of a schedule; `id` is its name.
    resume_schedule, "/topics/{topic}/schedules/{id}/resume", Nothing => |name, Nothing {}| Change::ResumeSchedule(name), (status = 404, body = Problem);
    /// Ends the pause of a group, or lets it pass the jobs that it waits for and that do not run; `id` is its name.
    resume_group, "/topics/{topic}/groups/{id}/resume", Nothing => |name, Nothing {}| Change::ResumeGroup(name), (status = 400, body = Problem);
}

macro_rules! of_a_topic {
    ($($(#[$doc:meta])* $name:ident, $path:literal, $change:expr;)+) => {$(
        $(#[$doc])*
        #[utoipa::path(post, path = $path, tag = "changes", request_body = Nothing, params(("topic" = String, Path)),
            responses((status = 200, body = Applied), (status = 503, body = Problem)))]
        pub(super) async fn $name(State(app): State<Shared>, visit: Visit, Path(topic): Path<String>, sent: Body<Nothing>) -> Answer {
            body(sent).map_err(failed)?;
            done(&app, &visit, &topic, $change).await
        }
    )+};
}

of_a_topic! {
    /// Ends the pause of a topic.
    resume, "/topics/{topic}/resume", Change::Resume;
    /// Ends the drain of a topic.
    undrain, "/topics/{topic}/undrain", Change::Undrain;
}

/// Deletes a job; a running one when its run ends.
#[utoipa::path(delete, path = "/topics/{topic}/jobs/{id}", tag = "changes", params(("topic" = String, Path), ("id" = String, Path), ("if_version" = Option<u32>, Query, description = "The version that the job must have")),
    responses((status = 200, body = Applied), (status = 400, body = Problem), (status = 409, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn delete(
    State(app): State<Shared>,
    visit: Visit,
    Path((topic, id)): Path<(String, String)>,
    asked: Result<Query<OfVersion>, QueryRejection>,
) -> Answer {
    let Query(version) = asked.map_err(|error| failed(Failure::Bad(error.body_text())))?;
    done(&app, &visit, &topic, Change::Delete(version.of(id))).await
}

/// Removes a schedule; `id` is its name. Jobs that it has added stay.
#[utoipa::path(delete, path = "/topics/{topic}/schedules/{id}", tag = "changes", params(("topic" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = Applied), (status = 503, body = Problem)))]
pub(super) async fn remove_schedule(
    State(app): State<Shared>,
    visit: Visit,
    Path((topic, id)): Path<(String, String)>,
) -> Answer {
    done(&app, &visit, &topic, Change::RemoveSchedule(id)).await
}

/// Gives a job that waits another due time.
#[utoipa::path(post, path = "/topics/{topic}/jobs/{id}/reschedule", tag = "changes", request_body = Due,
    params(("topic" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = Applied), (status = 400, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn reschedule(
    State(app): State<Shared>,
    visit: Visit,
    Path((topic, id)): Path<(String, String)>,
    sent: Body<Due>,
) -> Answer {
    let Due { when, if_version } = body(sent).map_err(failed)?;
    let when = When::read(&when).map_err(failed)?;
    done(&app, &visit, &topic, Change::Reschedule(Named { id, if_version }, when)).await
}

/// Pauses a topic: no node takes its jobs.
#[utoipa::path(post, path = "/topics/{topic}/pause", tag = "changes", request_body = ReasonGiven, params(("topic" = String, Path)),
    responses((status = 200, body = Applied), (status = 400, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn pause(
    State(app): State<Shared>,
    visit: Visit,
    Path(topic): Path<String>,
    sent: Body<ReasonGiven>,
) -> Answer {
    let ReasonGiven { reason, lasting } = body(sent).map_err(failed)?;
    done(&app, &visit, &topic, Change::Pause { reason, lasting }).await
}

/// Drains a topic: it refuses new jobs, and nodes run only what is due already.
#[utoipa::path(post, path = "/topics/{topic}/drain", tag = "changes", request_body = ReasonGiven, params(("topic" = String, Path)),
    responses((status = 200, body = Applied), (status = 400, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn drain(
    State(app): State<Shared>,
    visit: Visit,
    Path(topic): Path<String>,
    sent: Body<ReasonGiven>,
) -> Answer {
    let ReasonGiven { reason, .. } = body(sent).map_err(failed)?;
    done(&app, &visit, &topic, Change::Drain { reason }).await
}

/// Sets or clears a limit of a topic for all nodes and producers.
#[utoipa::path(post, path = "/topics/{topic}/limit", tag = "changes", request_body = Limit, params(("topic" = String, Path)),
    responses((status = 200, body = Applied), (status = 400, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn limit(
    State(app): State<Shared>,
    visit: Visit,
    Path(topic): Path<String>,
    sent: Body<Limit>,
) -> Answer {
    let Limit { kind, value, reason } = body(sent).map_err(failed)?;
    let change = kind.parse::<LimitKind>().and_then(|kind| match value {
        Some(value) => Ok(Change::Limit { limit: kind.read(&value.text())?, reason }),
        None => Ok(Change::ClearLimit(kind)),
    });
    done(&app, &visit, &topic, change.map_err(failed)?).await
}

/// Pauses a group: no node takes its jobs; `id` is its name.
#[utoipa::path(post, path = "/topics/{topic}/groups/{id}/pause", tag = "changes", request_body = ReasonGiven,
    params(("topic" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = Applied), (status = 400, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn pause_group(
    State(app): State<Shared>,
    visit: Visit,
    Path((topic, name)): Path<(String, String)>,
    sent: Body<ReasonGiven>,
) -> Answer {
    let ReasonGiven { reason, lasting } = body(sent).map_err(failed)?;
    done(&app, &visit, &topic, Change::PauseGroup { name, reason, lasting }).await
}

/// Pauses a schedule; `id` is its name.
#[utoipa::path(post, path = "/topics/{topic}/schedules/{id}/pause", tag = "changes", request_body = ReasonGiven,
    params(("topic" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = Applied), (status = 404, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn pause_schedule(
    State(app): State<Shared>,
    visit: Visit,
    Path((topic, name)): Path<(String, String)>,
    sent: Body<ReasonGiven>,
) -> Answer {
    let ReasonGiven { reason, .. } = body(sent).map_err(failed)?;
    done(&app, &visit, &topic, Change::PauseSchedule { name, reason }).await
}
