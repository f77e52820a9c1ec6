//! Which path leads where, and which roles its visitor needs.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::MethodFilter;

use crate::app::Shared;
use crate::needs::{LOOK, Needs, OPERATE, USER};
use crate::table::Table;
use crate::{act, api, assets, guard, pages};

/// The most bytes of a form.
const MOST_FORM_BYTES: usize = 16 << 10;

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
        .row(GET, "/healthz", Needs::Nothing, api::healthz)
        .row(GET, "/readyz", Needs::Nothing, api::readyz)
}

pub(crate) fn router(app: &Shared) -> Router {
    let pages = pages(app).into_router().layer(from_fn_with_state(app.clone(), guard::browser));
    let api = api::router(app).layer(from_fn_with_state(app.clone(), guard::program));
    Router::new()
        .merge(pages.merge(open(app).into_router()).layer(DefaultBodyLimit::max(MOST_FORM_BYTES)))
        .nest("/api/v1", api)
        .layer(from_fn_with_state(app.clone(), guard::everything))
        .with_state(app.clone())
}

#[cfg(test)]
mod tests;
