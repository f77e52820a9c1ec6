//! Bulk changes, a step a request.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use dq::inspect::{Cursor, JobFilter};
use dq::time::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Answer, body, failed, json};
use crate::act::{Stepped, bulk_action, step as take};
use crate::app::Shared;
use crate::asked;
use crate::failure::{Failure, Problem};
use crate::visit::Visit;

/// A step of a bulk change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// `requeue`, `delete`, `run_now` or `reschedule`.
    action: String,
    /// `delayed`, `running`, `unacked`, `dead` or `done`.
    state: String,
    /// The id begins with this.
    id_prefix: Option<String>,
    /// A header's name and value.
    header: Option<(String, String)>,
    /// The last error has this in it.
    error: Option<String>,
    /// It has failed this often at least.
    attempts: Option<u16>,
    /// Its time is this or later: RFC 3339 with its offset, or milliseconds since the Unix epoch as a text.
    from: Option<String>,
    /// Its time is earlier.
    until: Option<String>,
    /// Of `reschedule`: the new due time. Give a time, not a delay, so that all steps give the same.
    when: Option<String>,
    /// `next` of the step before; the first step has none.
    cursor: Option<(u64, String)>,
}

/// Changes up to 100 jobs that match. Send it again with `cursor`, until `next` is null. A repeat of a step changes nothing twice.
#[utoipa::path(post, path = "/topics/{topic}/bulk", tag = "changes", request_body = Step, params(("topic" = String, Path)),
    responses((status = 200, description = "What was done", body = Stepped), (status = 400, body = Problem), (status = 503, body = Problem)))]
pub(super) async fn step(
    State(app): State<Shared>,
    visit: Visit,
    Path(topic): Path<String>,
    sent: Result<Json<Step>, JsonRejection>,
) -> Answer {
    let asked = body(sent).map_err(failed)?;
    let stepped = async {
        let state = asked::state(&asked.state)?;
        let action = bulk_action(&asked.action, asked.when.as_deref().unwrap_or_default())?;
        let filter = JobFilter {
            id_prefix: asked.id_prefix,
            header: asked.header,
            error: asked.error,
            attempts: asked.attempts,
            from: asked.from.map(|from| from.parse()).transpose()?,
            until: asked.until.map(|until| until.parse()).transpose()?,
        };
        let cursor = asked.cursor.map(|(at, id)| Cursor { at: Timestamp::from_millis(at), id });
        take(&app, &visit.user, &topic, state, filter, action, cursor).await
    };
    stepped.await.map(json).map_err(|error: Failure| failed(error))
}
