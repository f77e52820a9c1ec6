//! The JSON API: what the pages do, and adding jobs, for programs in any language.

mod add;
mod answers;
mod bulk;
mod change;
mod document;
mod health;
mod read;

pub(crate) use health::{healthz, readyz};

use axum::Json;
use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Shared;
use crate::failure::Failure;
use crate::guard::problem;

/// The most bytes of a request.
const MOST_BYTES: usize = (1 << 20) + (16 << 10);

#[derive(OpenApi)]
#[openapi(
    info(title = "dq", description = "Delayed jobs: look at them, change them, and add them. Times in answers are milliseconds since the Unix epoch, durations milliseconds."),
    security(("token" = [])),
    tags((name = "topics"), (name = "jobs"), (name = "schedules"), (name = "changes"), (name = "store"))
)]
struct Described;

/// All routes with their description.
fn described() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(read::topics))
        .routes(routes!(read::topic))
        .routes(routes!(read::nodes))
        .routes(routes!(read::timeline))
        .routes(routes!(read::past))
        .routes(routes!(read::jobs, add::add))
        .routes(routes!(read::job, change::delete))
        .routes(routes!(read::why))
        .routes(routes!(read::schedules))
        .routes(routes!(read::doctor))
        .routes(routes!(change::requeue))
        .routes(routes!(change::ack))
        .routes(routes!(change::run_now))
        .routes(routes!(change::reschedule))
        .routes(routes!(change::pause))
        .routes(routes!(change::resume))
        .routes(routes!(change::drain))
        .routes(routes!(change::undrain))
        .routes(routes!(change::pause_schedule))
        .routes(routes!(change::resume_schedule))
        .routes(routes!(change::remove_schedule))
        .routes(routes!(bulk::step))
}

/// The routes below `/api/v1`.
pub(crate) fn router() -> axum::Router<Shared> {
    let (router, document) = described().split_for_parts();
    let document = document::finished(document);
    router
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
