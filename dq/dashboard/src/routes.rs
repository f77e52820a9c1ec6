//! Which path leads where, which roles its visitor needs, and the answers to orchestrators.

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;

use crate::app::Shared;
use crate::guard::{LOOK, Needs, OPERATE, USER};
use crate::table::Table;
use crate::{act, api, assets, guard, pages};

/// The most bytes of a form.
const MAX_FORM_BYTES: usize = 16 << 10;

const GET: MethodFilter = MethodFilter::GET;
const POST: MethodFilter = MethodFilter::POST;

/// The pages, for users.
fn pages(app: &Shared) -> Table {
    Table::new(app)
        .row(GET, "/", LOOK, pages::overview)
        .row(GET, "/topic", LOOK, pages::topic)
        .row(GET, "/jobs", LOOK, pages::jobs)
        .row(GET, "/job", LOOK, pages::job)
        .row(GET, "/dead", LOOK, pages::dead)
        .row(GET, "/unacked", LOOK, pages::unacked)
        .row(GET, "/nodes", LOOK, pages::nodes)
        .row(GET, "/doctor", LOOK, pages::doctor)
        .row(GET, "/schedules", LOOK, pages::schedules)
        .row(GET, "/sets", LOOK, pages::sets)
        .row(GET, "/set", LOOK, pages::set)
        .row(GET, "/settings", LOOK, pages::settings)
        .row(GET, "/live/{page}", LOOK, pages::live)
        .row(GET, "/confirm", OPERATE, act::confirm)
        .row(POST, "/act", OPERATE, act::act)
        .row(POST, "/logout", USER, pages::log_out)
}

/// What answers everyone.
fn open(app: &Shared) -> Table {
    Table::new(app)
        .row(GET, "/login", Needs::Nothing, pages::login)
        .row(POST, "/login", Needs::Nothing, pages::log_in)
        .row(GET, "/assets/{name}", Needs::Nothing, assets::show)
        .row(GET, "/healthz", Needs::Nothing, healthz)
        .row(GET, "/readyz", Needs::Nothing, readyz)
}

pub(crate) fn router(app: &Shared) -> Router {
    let pages = pages(app).into_router().layer(from_fn_with_state(app.clone(), guard::browser));
    let api = api::router(app).layer(from_fn_with_state(app.clone(), guard::program));
    Router::new()
        .merge(pages.merge(open(app).into_router()).layer(DefaultBodyLimit::max(MAX_FORM_BYTES)))
        .nest("/api/v1", api)
        .layer(from_fn_with_state(app.clone(), guard::everything))
        .with_state(app.clone())
}

/// The process lives.
async fn healthz() -> &'static str {
    "lives\n"
}

/// The store answered within two seconds, now or a second ago; 503 otherwise. It does not say why; the pages do.
async fn readyz(State(app): State<Shared>) -> Response {
    match app.ready.of(&app.provider).await {
        true => "ready\n".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n").into_response(),
    }
}

#[cfg(test)]
mod tests;
