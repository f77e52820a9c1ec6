//! The JSON API: what the pages do, and adding jobs, for programs in any language.

mod add;
mod answers;
mod bulk;
mod change;
mod document;
mod health;
mod read;
mod sets;

pub(crate) use health::{healthz, readyz};

use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use utoipa::OpenApi;

use crate::app::Shared;
use crate::failure::Failure;
use crate::guard::problem;

/// The most bytes of a request.
const MOST_BYTES: usize = (1 << 20) + (16 << 10);

/// Serves handlers, and describes them by their attributes, which have the same paths once more: a test compares them.
macro_rules! routes {
    ($($path:literal $($method:ident($($handler:ident)::+)),+;)+) => {
        #[derive(OpenApi)]
        #[openapi(
            info(title = "dq", description = "Delayed jobs: look at them, change them, and add them. Times in answers are milliseconds since the Unix epoch, durations milliseconds."),
            security(("token" = [])),
            tags((name = "topics"), (name = "jobs"), (name = "sets"), (name = "schedules"), (name = "changes"), (name = "store")),
            paths($($($($handler)::+),+),+)
        )]
        struct Described;

        fn served() -> Router<Shared> {
            Router::new()$(.route($path, MethodRouter::new()$(.$method($($handler)::+))+))+
        }
    };
}

routes! {
    "/topics" get(read::topics);
    "/topics/{topic}" get(read::topic);
    "/topics/{topic}/nodes" get(read::nodes);
    "/topics/{topic}/groups" get(read::groups);
    "/topics/{topic}/groups/{id}/pause" post(change::pause_group);
    "/topics/{topic}/groups/{id}/resume" post(change::resume_group);
    "/topics/{topic}/timeline" get(read::timeline);
    "/topics/{topic}/past" get(read::past);
    "/topics/{topic}/jobs" get(read::jobs), post(add::add);
    "/topics/{topic}/jobs/{id}" get(read::job), delete(change::delete);
    "/topics/{topic}/jobs/{id}/why" get(read::why);
    "/topics/{topic}/jobs/{id}/requeue" post(change::requeue);
    "/topics/{topic}/jobs/{id}/ack" post(change::ack);
    "/topics/{topic}/jobs/{id}/run-now" post(change::run_now);
    "/topics/{topic}/jobs/{id}/reschedule" post(change::reschedule);
    "/topics/{topic}/pause" post(change::pause);
    "/topics/{topic}/resume" post(change::resume);
    "/topics/{topic}/drain" post(change::drain);
    "/topics/{topic}/undrain" post(change::undrain);
    "/topics/{topic}/limit" post(change::limit);
    "/topics/{topic}/sets" get(sets::list);
    "/topics/{topic}/sets/{id}" get(sets::one);
    "/topics/{topic}/sets/{id}/close" post(sets::close);
    "/topics/{topic}/schedules" get(read::schedules);
    "/topics/{topic}/schedules/{id}" delete(change::remove_schedule);
    "/topics/{topic}/schedules/{id}/pause" post(change::pause_schedule);
    "/topics/{topic}/schedules/{id}/resume" post(change::resume_schedule);
    "/topics/{topic}/bulk" post(bulk::step);
    "/doctor" get(read::doctor);
}

/// The routes below `/api/v1`.
pub(crate) fn router() -> Router<Shared> {
    let document = document::finished(Described::openapi());
    served()
        .route("/openapi.json", get(move || std::future::ready(Json(document))))
        .fallback(|| std::future::ready(problem(&Failure::NotThere("such path"))))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
}

/// What a handler answers.
type Answer = Result<Response, Response>;

fn json(value: impl serde::Serialize) -> Response {
    Json(value).into_response()
}

fn failed(failure: impl Into<Failure>) -> Response {
    problem(&failure.into())
}

/// The body of a request.
fn body<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, Failure> {
    body.map(|Json(body)| body).map_err(|error| Failure::Body { status: error.status(), text: error.body_text() })
}
