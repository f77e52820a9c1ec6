//! For orchestrators.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::app::Shared;

/// The process lives.
pub(crate) async fn healthz() -> &'static str {
    "lives\n"
}

/// The store answered within two seconds, now or a second ago; 503 otherwise. It does not say why to whoever asks: the pages do.
pub(crate) async fn readyz(State(app): State<Shared>) -> Response {
    match app.ready.of(&app.provider).await {
        true => "ready\n".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n").into_response(),
    }
}
