//! The JSON API: what the pages do, and adding jobs, for programs in any language.

mod add;
mod answers;
mod bulk;
mod change;
mod document;
mod read;
mod sets;

use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use axum::{Json, Router};
use utoipa::OpenApi;

use crate::app::Shared;
use crate::failure::Failure;
use crate::guard::{ADD, ADD_AND_OPERATE, LOOK, OPERATE, problem};
use crate::table::Table;

/// The most bytes of a request.
const MAX_BYTES: usize = (1 << 20) + (16 << 10);

/// Serves handlers with what they need, and describes them by their attributes, which have the same paths once more: a test compares
/// them.
macro_rules! routes {
    ($($path:literal $($method:ident $needs:ident ($($handler:ident)::+)),+;)+) => {
        #[derive(OpenApi)]
        #[openapi(
            info(title = "dq", description = "Delayed jobs: look at them, change them, and add them. Times in answers are milliseconds since the Unix epoch, durations milliseconds."),
            security(("token" = [])),
            tags((name = "topics"), (name = "jobs"), (name = "sets"), (name = "schedules"), (name = "changes"), (name = "store")),
            paths($($($($handler)::+),+),+)
        )]
        struct Described;

        fn served(table: Table) -> Table {
            table$($(.row(MethodFilter::$method, $path, $needs, $($handler)::+))+)+
        }
    };
}

routes! {
    "/topics" GET LOOK (read::topics);
    "/topics/{topic}" GET LOOK (read::topic);
    "/topics/{topic}/nodes" GET LOOK (read::nodes);
    "/topics/{topic}/groups" GET LOOK (read::groups);
    "/topics/{topic}/groups/{id}/pause" POST OPERATE (change::pause_group);
    "/topics/{topic}/groups/{id}/resume" POST OPERATE (change::resume_group);
    "/topics/{topic}/timeline" GET LOOK (read::timeline);
    "/topics/{topic}/past" GET LOOK (read::past);
    "/topics/{topic}/jobs" GET LOOK (read::jobs), POST ADD (add::add);
    "/topics/{topic}/jobs/{id}" GET LOOK (read::job), DELETE OPERATE (change::delete);
    "/topics/{topic}/jobs/{id}/why" GET LOOK (read::why);
    "/topics/{topic}/jobs/{id}/requeue" POST OPERATE (change::requeue);
    "/topics/{topic}/jobs/{id}/ack" POST OPERATE (change::ack);
    "/topics/{topic}/jobs/{id}/run-now" POST OPERATE (change::run_now);
    "/topics/{topic}/jobs/{id}/reschedule" POST OPERATE (change::reschedule);
    "/topics/{topic}/pause" POST OPERATE (change::pause);
    "/topics/{topic}/resume" POST OPERATE (change::resume);
    "/topics/{topic}/drain" POST OPERATE (change::drain);
    "/topics/{topic}/undrain" POST OPERATE (change::undrain);
    "/topics/{topic}/limit" POST OPERATE (change::limit);
    "/topics/{topic}/sets" GET LOOK (sets::list);
    "/topics/{topic}/sets/{id}" GET LOOK (sets::one);
    "/topics/{topic}/sets/{id}/close" POST ADD_AND_OPERATE (sets::close);
    "/topics/{topic}/schedules" GET LOOK (read::schedules);
    "/topics/{topic}/schedules/{id}" DELETE OPERATE (change::remove_schedule);
    "/topics/{topic}/schedules/{id}/pause" POST OPERATE (change::pause_schedule);
    "/topics/{topic}/schedules/{id}/resume" POST OPERATE (change::resume_schedule);
    "/topics/{topic}/bulk" POST OPERATE (bulk::step);
    "/doctor" GET LOOK (read::doctor);
}

/// The routes below `/api/v1`.
pub(crate) fn table(app: &Shared) -> Table {
    let table = served(Table::new(app));
    let document = document::finished(Described::openapi(), table.rows());
    table.row(MethodFilter::GET, "/openapi.json", LOOK, move || std::future::ready(Json(document)))
}

pub(crate) fn router(app: &Shared) -> Router<Shared> {
    table(app)
        .into_router()
        .fallback(|| std::future::ready(problem(&Failure::NotThere("such path"))))
        .layer(DefaultBodyLimit::max(MAX_BYTES))
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
