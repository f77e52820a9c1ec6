//! What every request passes: host, login, rate, what its route needs of the visitor, and the headers of the answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Json;
use axum::body::{HttpBody, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;

use crate::access::Kind;
use crate::app::{App, Shared};
use crate::audit::{audit, refused};
use crate::failure::{Failure, Problem};
use crate::frame::{self, Frame};
use crate::host::{Address, came_by_https, is_foreign, is_ours};
use crate::late::Timely;
use crate::ready::is_probe;
use crate::serve::Connection;
use crate::session::{COOKIE_NAME, LASTS, Session};
use crate::user::{Role, User};
use crate::visit::{Visit, base};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The most bytes of a refusal's text.
const MAX_TEXT: usize = 4 << 10;

/// How long the body of a request may take.
const BODY: Duration = Duration::from_secs(20);

/// What a route needs of its visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it answers before the login.
    Nothing,
    /// A user with all of these roles. If there are none, any user will do.
    Roles(&'static [Role]),
}

pub(crate) const USER: Needs = Needs::Roles(&[]);
pub(crate) const LOOK: Needs = Needs::Roles(&[Role::Look]);
pub(crate) const OPERATE: Needs = Needs::Roles(&[Role::Operate]);
pub(crate) const ADD: Needs = Needs::Roles(&[Role::Add]);
/// The last job of a set is added, and the set belongs to no one user.
pub(crate) const ADD_AND_OPERATE: Needs = Needs::Roles(&[Role::Add, Role::Operate]);

/// A route. `HEAD` is answered by the row of `GET`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) method: MethodFilter,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
}

/// A user who was let in.
#[derive(Debug, Clone)]
struct Known {
    user: User,
    session: Option<Session>,
}

/// Of every answer: checks the host and bounds the rate, except of probes, and adds the headers that keep browsers strict.
pub(crate) async fn everything(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let mut answer = match admit(&app, &mut parts) {
        Err(failure) => problem(&failure),
        Ok(()) if body.is_end_stream() => next.run(Request::from_parts(parts, body)).await,
        Ok(()) => {
            let (body, late) = Timely::within(body, BODY);
            let answer = next.run(Request::from_parts(parts, body)).await;
            if late.load(Ordering::Relaxed) { problem(&Failure::Slow) } else { answer }
        }
    };
    let headers = answer.headers_mut();
    let fixed = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // Others see no referrer. With `no-referrer`, browsers would hide the origin of our own forms, too.
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    answer
}

/// Checks the host first, so a foreign page takes nothing of anyone's rate. Users who are let in have buckets of their own.
fn admit(app: &App, parts: &mut Parts) -> Result<(), Failure> {
    if is_probe(parts.uri.path()) {
        return Ok(());
    }
    if !is_ours(app, &parts.headers, &parts.uri) {
        return Err(Failure::OtherHost);
    }
    let (address, known) = (Address::of(app, parts), known(app, parts));
    let is_within = match &known {
        Some(known) => app.known_rate.take((address.0, Arc::clone(&known.user.name))),
        None => app.other_rate.take(address.0),
    };
    if !is_within {
        return Err(Failure::TooMany);
    }
    parts.extensions.insert(address);
    let Some(known) = known else { return Ok(()) };
    // Without a login, anyone could keep all places of the server.
    if let Some(connection) = parts.extensions.get::<Arc<Connection>>()
        && !matches!(app.access.0, Kind::Everyone)
    {
        connection.serves_a_user();
    }
    parts.extensions.insert(known);
    Ok(())
}

/// The user who makes a request, if there is one. The cookie of a token's session is of no use in the JSON API.
fn known(app: &App, parts: &Parts) -> Option<Known> {
    let kind = &app.access.0;
    let user = match kind {
        Kind::Tokens(_) if parts.uri.path().starts_with("/api/") => return with_bearer(kind, parts),
        Kind::Tokens(_) => {
            let session = app.sessions.of(kind, &parts.headers)?;
            return Some(Known { user: session.user(kind)?, session: Some(session) });
        }
        Kind::Hook(who) => who(parts)?,
        Kind::Everyone => User::new("everyone"),
    };
    Some(Known { user, session: app.sessions.of(kind, &parts.headers) })
}

fn with_bearer(kind: &Kind, parts: &Parts) -> Option<Known> {
    let sent = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?.trim();
    let (_, user) = kind.user_of(sent)?;
    Some(Known { user, session: None })
}

/// Of the pages: refuses requests without a user, and gives each browser a session.
pub(crate) async fn browser(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let base = base(&app, &parts.headers, parts.extensions.get::<OriginalUri>(), &parts.uri);
    let kind = &app.access.0;
    let Some(Known { user, session: known }) = parts.extensions.remove::<Known>() else {
        let is_page = only_reads(&parts.method) && !parts.uri.path().starts_with("/live/");
        if is_page && matches!(kind, Kind::Tokens(_)) {
            return (StatusCode::SEE_OTHER, [(LOCATION, format!("{base}/login"))]).into_response();
        }
        return frame::failure(&Frame::bare(&base), &Failure::Unknown);
    };
    if !only_reads(&parts.method) && is_foreign(&app, &parts.headers, &parts.uri) {
        return frame::failure(&Frame::bare(&base), &Failure::Forged);
    }
    let fresh = known.is_none();
    let session = match known.map_or_else(|| app.sessions.begin(kind, 0, ""), Ok) {
        Ok(session) => session,
        Err(failure) => return frame::failure(&Frame::bare(&base), &failure.into()),
    };
    let is_safe = app.secure || came_by_https(&parts.headers);
    let cookie = fresh.then(|| cookie(&session, &base, is_safe));
    parts.extensions.insert(Visit { base, user, session: Some(session) });
    let mut answer = next.run(Request::from_parts(parts, body)).await;
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    answer
}

/// Of the JSON API: refuses requests without a user.
pub(crate) async fn program(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Some(Known { user, .. }) = parts.extensions.remove::<Known>() else {
        return problem(&match parts.headers.contains_key(AUTHORIZATION) {
            true => wrong_token(&app, parts.extensions.get::<Address>(), "bearer"),
            false => Failure::Unknown,
        });
    };
    if !only_reads(&parts.method) {
        if is_foreign(&app, &parts.headers, &parts.uri) {
            return problem(&Failure::Forged);
        }
        // A form of another site cannot send this type.
        let content = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if parts.method == Method::POST && !content.starts_with("application/json") {
            return problem(&Failure::Bad("send `Content-Type: application/json`".into()));
        }
    }
    parts.extensions.insert(Visit { base: String::new(), user, session: None });
    in_json(next.run(Request::from_parts(parts, body)).await).await
}

/// Of every route: refuses a visitor without what its row needs. A change that was refused leaves a line.
pub(crate) async fn row(State((app, row)): State<(Shared, Row)>, request: Request, next: Next) -> Response {
    let Needs::Roles(roles) = row.needs else { return next.run(request).await };
    let Some(visit) = request.extensions().get::<Visit>() else { return problem(&Failure::Unknown) };
    let Some(failure) = roles.iter().find_map(|role| app.allows(&visit.user, *role).err()) else {
        return next.run(request).await;
    };
    if !only_reads(request.method()) {
        let action = format!("{} {}", request.method(), row.path);
        audit(&visit.user, &action, "", "", &format!("refused: {failure}"));
    }
    match visit.session {
        None => problem(&failure),
        Some(_) if visit.user.may(Role::Look) => frame::failure(&Frame::new(&app, visit), &failure),
        Some(_) => frame::failure(&Frame::bare(&visit.base), &failure),
    }
}

/// Whether requests with a method change nothing. `axum` answers `HEAD` by the handler of `GET`.
fn only_reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// The answer to a wrong token. The log names the address, 20 times a minute at most. A right token is accepted even then, so wrong
/// ones lock no user out.
pub(crate) fn wrong_token(app: &App, address: Option<&Address>, how: &str) -> Failure {
    let address = address.copied().unwrap_or(Address(None));
    if !app.wrong_tokens.take(address.0) {
        return Failure::TooMany;
    }
    refused(address, how);
    Failure::Unknown
}

/// Refusals that no handler wrote, such as that of a query that cannot be read, as JSON.
async fn in_json(mut answer: Response) -> Response {
    let status = answer.status();
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/json") || !(status.is_client_error() || status.is_server_error()) {
        return answer;
    }
    let body = std::mem::take(answer.body_mut());
    let text =
        to_bytes(body, MAX_TEXT).await.map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    let reason = status.canonical_reason().unwrap_or("refused");
    let error = if text.is_empty() { reason.to_owned() } else { text };
    (status, Json(Problem { error })).into_response()
}

pub(crate) fn problem(failure: &Failure) -> Response {
    (failure.status(), Json(Problem { error: failure.to_string() })).into_response()
}

/// What sets the cookie of a session.
pub(crate) fn cookie(session: &Session, base: &str, is_safe: bool) -> String {
    let secure = if is_safe { "; Secure" } else { "" };
    let path = if base.is_empty() { "/" } else { base };
    format!("{COOKIE_NAME}={}; Path={path}; Max-Age={LASTS}; HttpOnly; SameSite=Strict{secure}", session.cookie())
}
