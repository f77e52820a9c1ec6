//! Which path leads where.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::app::Shared;
use crate::{act, api, assets, guard, pages};

/// The most bytes of a form.
const MOST_FORM_BYTES: usize = 16 << 10;

pub(crate) fn router(app: &Shared) -> Router {
    let pages = Router::new()
        .route("/", get(pages::overview))
        .route("/topic", get(pages::topic))
        .route("/jobs", get(pages::jobs))
        .route("/job", get(pages::job))
        .route("/dead", get(pages::dead))
        .route("/unacked", get(pages::unacked))
        .route("/nodes", get(pages::nodes))
        .route("/doctor", get(pages::doctor))
        .route("/schedules", get(pages::schedules))
        .route("/sets", get(pages::sets))
        .route("/set", get(pages::set))
        .route("/settings", get(pages::settings))
        .route("/confirm", get(act::confirm))
        .route("/act", post(act::act))
        .route("/logout", post(pages::log_out))
        .route("/live/{page}", get(pages::live))
        .layer(from_fn_with_state(app.clone(), guard::browser));
    let open = Router::new()
        .route("/login", get(pages::login).post(pages::log_in))
        .route("/assets/{name}", get(assets::show))
        .route("/healthz", get(api::healthz))
        .route("/readyz", get(api::readyz));
    let api = api::router().layer(from_fn_with_state(app.clone(), guard::program));
    Router::new()
        .merge(pages.merge(open).layer(DefaultBodyLimit::max(MOST_FORM_BYTES)))
        .nest("/api/v1", api)
        .layer(from_fn_with_state(app.clone(), guard::everything))
        .with_state(app.clone())
}
