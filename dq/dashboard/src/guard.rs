//! What every request passes: rate, host, login, and the headers of the answer.

use axum::Json;
use axum::body::to_bytes;
use axum::extract::{OriginalUri, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION,
    ORIGIN, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::{Kind, User};
use crate::app::{App, Shared};
use crate::failure::{Failure, Problem};
use crate::frame::{self, Frame};
use crate::ready::is_probe;
use crate::session::{COOKIE_NAME, LASTS, Session, same};
use crate::visit::{Visit, base};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The most bytes of a refusal's text.
const MOST_TEXT: usize = 4 << 10;

/// Of every answer: bounds the rate and checks the host, except of probes, and adds the headers that keep browsers strict.
pub(crate) async fn everything(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let refused = if is_probe(request.uri().path()) {
        None
    } else if !app.rate.take() {
        Some(Failure::TooMany)
    } else if !is_ours(&app, request.headers()) {
        Some(Failure::OtherHost)
    } else {
        None
    };
    let mut answer = match refused {
        Some(failure) => problem(&failure),
        None => next.run(request).await,
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

/// Of the pages: asks who comes, and gives each browser a session.
pub(crate) async fn browser(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let base = base(parts.extensions.get::<OriginalUri>(), &parts.uri);
    let kind = &app.access.0;
    let known = Session::of(kind, &parts.headers);
    let user = match kind {
        Kind::Token(_) => known.as_ref().map(|_| User::new("token")),
        Kind::Hook(who) => who(&parts).map(|name| User::new(&name)),
        Kind::Everyone => Some(User::new("everyone")),
    };
    let Some(user) = user else {
        let may_log_in = matches!(kind, Kind::Token(_)) && parts.method == Method::GET;
        if may_log_in {
            return (StatusCode::SEE_OTHER, [(LOCATION, format!("{base}/login"))]).into_response();
        }
        return frame::failure(&Frame::bare(&base), &Failure::Unknown);
    };
    if parts.method != Method::GET && is_foreign(&app, &parts.headers) {
        return frame::failure(&Frame::bare(&base), &Failure::Forged);
    }
    let fresh = known.is_none();
    let session = match known.map_or_else(|| Session::begin(kind), Ok) {
        Ok(session) => session,
        Err(failure) => return frame::failure(&Frame::bare(&base), &failure),
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

/// Of the JSON API: asks who comes. Cookies of a token's session do not count here.
pub(crate) async fn program(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let user = match &app.access.0 {
        Kind::Token(token) => {
            let sent = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
            let sent = sent.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
            same(token, sent.trim()).then(|| User::new("token"))
        }
        Kind::Hook(who) => who(&parts).map(|name| User::new(&name)),
        Kind::Everyone => Some(User::new("everyone")),
    };
    let Some(user) = user else { return problem(&Failure::Unknown) };
    if parts.method != Method::GET {
        if is_foreign(&app, &parts.headers) {
            return problem(&Failure::Forged);
        }
        if app.read_only {
            return problem(&Failure::ReadOnly);
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

/// Refusals that no handler wrote, such as that of a query that cannot be read, as JSON.
async fn in_json(mut answer: Response) -> Response {
    let status = answer.status();
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/json") || !(status.is_client_error() || status.is_server_error()) {
        return answer;
    }
    let body = std::mem::take(answer.body_mut());
    let text =
        to_bytes(body, MOST_TEXT).await.map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
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

pub(crate) fn came_by_https(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|value| value == "https")
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The host of `HOST:PORT` or `[ADDRESS]:PORT`, without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    }
}

fn is_ours(app: &App, headers: &HeaderMap) -> bool {
    if app.hosts.is_empty() && !matches!(app.access.0, Kind::Everyone) {
        return true;
    }
    let Some(host) = text(headers, &HOST) else { return false };
    let host = without_port(host).to_ascii_lowercase();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback()) || app.hosts.contains(&host)
}

/// Whether a page of another origin made the browser send this.
pub(crate) fn is_foreign(app: &App, headers: &HeaderMap) -> bool {
    if let Some(site) = text(headers, &HeaderName::from_static("sec-fetch-site")) {
        return !matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(headers, &ORIGIN) else { return false };
    let Some((_, authority)) = origin.split_once("://") else { return true };
    let forwarded = HeaderName::from_static("x-forwarded-host");
    let named = [text(headers, &HOST), text(headers, &forwarded)];
    let is_named = named.into_iter().flatten().any(|name| name.eq_ignore_ascii_case(authority));
    !is_named && !app.hosts.iter().any(|host| host == without_port(authority))
}
