//! Logging in with the token, and out.

use axum::extract::{OriginalUri, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Form};
use maud::html;
use serde::Deserialize;

use crate::access::Kind;
use crate::app::Shared;
use crate::audit::{audit, logged_in};
use crate::failure::Failure;
use crate::frame::{Frame, failure};
use crate::guard::{cookie, wrong_token};
use crate::host::{Address, came_by_https, is_foreign};
use crate::session::COOKIE_NAME;
use crate::visit::{Visit, base};

#[derive(Deserialize)]
pub(crate) struct Login {
    token: String,
    /// What the script of the page has made, and keeps for this origin; empty without scripts.
    #[serde(default)]
    key: String,
}

pub(crate) async fn show(State(app): State<Shared>, original: OriginalUri, uri: Uri, headers: HeaderMap) -> Response {
    form(Frame::bare(&base(&app, &headers, Some(&original), &uri)), false)
}

/// The script fills in the token of a link such as `/login#TOKEN`: browsers send no such part to a server.
fn form(mut frame: Frame, is_wrong: bool) -> Response {
    frame.has_script = true;
    let body = html! {
        section.panel.login {
            h1 { "Log in" }
            @if is_wrong { p.notice.bad role="alert" { "This is not the token." } }
            form method="post" action=(frame.to("login", &[])) data-log-in=[(!is_wrong).then_some("1")] {
                input type="text" name="user" value="token" autocomplete="username" hidden;
                label { "Token" input type="password" name="token" required autofocus autocomplete="current-password"; }
                button.primary { "Log in" }
            }
        }
    };
    let status = if is_wrong { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    (status, frame.answer("Log in", "-", &body)).into_response()
}

pub(crate) async fn log_in(
    State(app): State<Shared>,
    original: OriginalUri,
    Extension(address): Extension<Address>,
    uri: Uri,
    headers: HeaderMap,
    Form(login): Form<Login>,
) -> Response {
    let base = base(&app, &headers, Some(&original), &uri);
    let frame = Frame::bare(&base);
    let kind = &app.access.0;
    if !matches!(kind, Kind::Tokens(_)) {
        return failure(&frame, &Failure::NotThere("login"));
    }
    if is_foreign(&app, &headers, &uri) {
        return failure(&frame, &Failure::Forged);
    }
    let Some((token, user)) = kind.user_of(login.token.trim()) else {
        return match wrong_token(&app, Some(&address), "login") {
            Failure::Unknown => form(frame, true),
            error => failure(&frame, &error),
        };
    };
    match app.sessions.begin(kind, token, &login.key) {
        Err(error) => failure(&frame, &error.into()),
        Ok(session) => {
            logged_in(&user, address);
            let cookie = cookie(&session, &base, app.secure || came_by_https(&headers));
            (StatusCode::SEE_OTHER, [(LOCATION, frame.to("", &[])), (SET_COOKIE, cookie)]).into_response()
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Logout {
    form_token: String,
    #[serde(default)]
    key: String,
    /// Set: all sessions of the token end.
    #[serde(default)]
    everywhere: String,
}

pub(crate) async fn log_out(State(app): State<Shared>, visit: Visit, Form(logout): Form<Logout>) -> Response {
    let frame = Frame::new(&app, &visit);
    if !frame.may_log_out {
        return failure(&frame, &Failure::NotThere("logout"));
    }
    let session = visit.session.as_ref();
    if let Err(error) = app.sessions.sent(&app.access.0, session, &logout.form_token, &logout.key) {
        return failure(&frame, &error);
    }
    let Some(session) = session else { return failure(&frame, &Failure::Forged) };
    if logout.everywhere.is_empty() {
        app.sessions.end(session);
    } else {
        app.sessions.end_all(session);
        audit(&visit.user, "log_out_everywhere", "", "", "done");
    }
    let path = if visit.base.is_empty() { "/" } else { &visit.base };
    let ended = format!("{COOKIE_NAME}=; Path={path}; Max-Age=0; HttpOnly; SameSite=Strict");
    (StatusCode::SEE_OTHER, [(LOCATION, frame.to("login", &[])), (SET_COOKIE, ended)]).into_response()
}
