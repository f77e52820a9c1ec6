//! Logging in with the token, and out.

use axum::Form;
use axum::extract::{OriginalUri, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use maud::html;
use serde::Deserialize;

use crate::access::{Kind, User};
use crate::app::Shared;
use crate::audit::audit;
use crate::failure::Failure;
use crate::frame::{Frame, failure};
use crate::guard::{came_by_https, cookie, is_foreign};
use crate::session::{COOKIE_NAME, Session, same};
use crate::visit::{Visit, base};

#[derive(Deserialize)]
pub(crate) struct Login {
    token: String,
}

pub(crate) async fn show(original: OriginalUri, uri: Uri) -> Response {
    form(&Frame::bare(&base(Some(&original), &uri)), false)
}

fn form(frame: &Frame, is_wrong: bool) -> Response {
    let body = html! {
        section.panel.login {
            h1 { "Log in" }
            @if is_wrong { p.notice.bad role="alert" { "This is not the token." } }
            form method="post" action=(frame.to("login", &[])) {
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
    uri: Uri,
    headers: HeaderMap,
    Form(login): Form<Login>,
) -> Response {
    let base = base(Some(&original), &uri);
    let frame = Frame::bare(&base);
    let kind = &app.access.0;
    let Kind::Token(token) = kind else { return failure(&frame, &Failure::NotThere("login")) };
    if is_foreign(&app, &headers) {
        return failure(&frame, &Failure::Forged);
    }
    if !app.logins.take() {
        return failure(&frame, &Failure::TooMany);
    }
    let is_right = same(token, login.token.trim());
    audit(&User::new("token"), "log_in", "", "", if is_right { "done" } else { "refused" });
    if !is_right {
        return form(&frame, true);
    }
    match Session::begin(kind) {
        Err(error) => failure(&frame, &error),
        Ok(session) => {
            let cookie = cookie(&session, &base, app.secure || came_by_https(&headers));
            (StatusCode::SEE_OTHER, [(LOCATION, frame.to("", &[])), (SET_COOKIE, cookie)]).into_response()
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Logout {
    form_token: String,
}

pub(crate) async fn log_out(State(app): State<Shared>, visit: Visit, Form(logout): Form<Logout>) -> Response {
    let frame = Frame::new(&app, &visit);
    let is_ours = visit.session.as_ref().is_some_and(|session| session.sent(&app.access.0, &logout.form_token));
    if !is_ours {
        return failure(&frame, &Failure::Forged);
    }
    let path = if visit.base.is_empty() { "/" } else { &visit.base };
    let ended = format!("{COOKIE_NAME}=; Path={path}; Max-Age=0; HttpOnly; SameSite=Strict");
    (StatusCode::SEE_OTHER, [(LOCATION, frame.to("login", &[])), (SET_COOKIE, ended)]).into_response()
}
