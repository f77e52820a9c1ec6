//! What is around each page.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use crate::access::Kind;
use crate::app::App;
use crate::assets::VERSION;
use crate::failure::Failure;
use crate::show::link;
use crate::user::Role;
use crate::visit::Visit;

/// What a page says about the dashboard and its visitor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    pub(crate) base: String,
    app: String,
    user: String,
    pub(crate) may_log_out: bool,
    pub(crate) read_only: bool,
    /// What a form sends back.
    pub(crate) form_token: String,
    is_bare: bool,
    pub(crate) has_script: bool,
}

const PAGES: [(&str, &str); 7] = [
    ("", "Overview"),
    ("dead", "Dead"),
    ("unacked", "Un-acked"),
    ("nodes", "Nodes"),
    ("schedules", "Schedules"),
    ("doctor", "Doctor"),
    ("settings", "Settings"),
];

impl Frame {
    pub(crate) fn new(app: &App, visit: &Visit) -> Self {
        let (kind, session) = (&app.access.0, visit.session.as_ref());
        Self {
            base: visit.base.clone(),
            app: app.provider.app().to_string(),
            user: visit.user.name.to_string(),
            may_log_out: matches!(kind, Kind::Tokens(_)),
            read_only: app.allows(&visit.user, Role::Operate).is_err(),
            form_token: session.map(|session| app.sessions.form_token(kind, session)).unwrap_or_default(),
            is_bare: false,
            has_script: true,
        }
    }

    /// The frame of somebody who was not let in.
    pub(crate) fn bare(base: &str) -> Self {
        Self { base: base.to_owned(), is_bare: true, ..Self::default() }
    }

    /// The frame of what is read for many visitors at once: links, and whether there are buttons.
    pub(crate) fn shared(base: &str, read_only: bool) -> Self {
        Self { read_only, ..Self::bare(base) }
    }

    /// A link to a page of the dashboard.
    pub(crate) fn to(&self, page: &str, query: &[(&str, &str)]) -> String {
        let path = match (self.base.as_str(), page) {
            ("", _) => format!("/{page}"),
            (base, "") => base.to_owned(),
            (base, _) => format!("{base}/{page}"),
        };
        link(&path, query)
    }

    fn asset(&self, name: &str) -> String {
        self.to(&format!("assets/{name}"), &[("v", VERSION)])
    }

    /// The field of a form that proves that this dashboard made it.
    pub(crate) fn proof(&self) -> Markup {
        markup! { input type="hidden" name="form_token" value=(self.form_token); }
    }

    /// The whole page. `active` names its place in the navigation.
    pub(crate) fn page(&self, title: &str, active: &str, body: &Markup) -> Markup {
        markup! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="htmx-config" content=r#"{"includeIndicatorCSS":false,"history":false}"#;
                    title { (title) @if !self.app.is_empty() { " · " (self.app) } " · dq" }
                    link rel="icon" type="image/svg+xml" href=(self.asset("dq.svg"));
                    link rel="stylesheet" href=(self.asset("dq.css"));
                    @if self.has_script { script defer src=(self.asset("dq.js")) {} }
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    (self.header(active))
                    main #main tabindex="-1" { (body) }
                }
            }
        }
    }

    /// The whole page as an answer.
    pub(crate) fn answer(&self, title: &str, active: &str, body: &Markup) -> Response {
        html(self.page(title, active, body))
    }

    fn header(&self, active: &str) -> Markup {
        markup! {
            header.top {
                a.brand href=(self.to("", &[])) { img src=(self.asset("dq.svg")) alt="" width="28" height="28"; span { "dq" } }
                @if !self.is_bare {
                    span.app { (self.app) }
                    nav aria-label="Pages" {
                        @for (page, name) in PAGES {
                            a href=(self.to(page, &[])) aria-current=[(page == active).then_some("page")] { (name) }
                        }
                    }
                    div.who {
                        @if self.read_only { span.badge { "read-only" } }
                        span.quiet { (self.user) }
                        @if self.may_log_out {
                            form method="post" action=(self.to("logout", &[])) { (self.proof()) button.plain { "Log out" } }
                        }
                    }
                }
            }
        }
    }
}

/// A page as an answer.
pub(crate) fn html(markup: Markup) -> Response {
    Html(markup.into_string()).into_response()
}

/// The page of a failure.
pub(crate) fn failure(frame: &Frame, failure: &Failure) -> Response {
    let status = failure.status();
    let title = match status {
        StatusCode::SERVICE_UNAVAILABLE => "The store does not answer",
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::UNAUTHORIZED => "Who are you?",
        _ => "That did not work",
    };
    let body = markup! { h1 { (title) } p.notice.bad role="alert" { (failure) } p { a href=(frame.to("", &[])) { "To the overview" } } };
    (status, frame.answer(title, "-", &body)).into_response()
}

/// What a live page shows while it cannot be read.
pub(crate) fn stale(failure: &Failure, last: &str) -> Markup {
    markup! { p.notice.bad { "This is not current: " (failure) } (PreEscaped(last)) }
}

/// Leads to a page, which says what was done.
pub(crate) fn confirmed(to: String) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response()
}

impl<S: Send + Sync> FromRequestParts<S> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let visit = parts.extensions.get::<Self>().cloned();
        visit.ok_or_else(|| failure(&Frame::bare(""), &Failure::Unknown))
    }
}
