//! Somebody who visits a dashboard without a network.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::{CONTENT_TYPE, COOKIE, HOST, SET_COOKIE};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use dq::Provider;
use dq_dashboard::{Access, Dashboard};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

pub(crate) const TOKEN: &str = "a-token-for-the-tests";

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The field of a form.
    pub(crate) fn field(&self, name: &str) -> String {
        let (_, rest) =
            self.body.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{}", self.body));
        rest.split('"').next().unwrap().to_owned()
    }
}

/// A browser or a program: a router, and the cookie that it has.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) router: Router,
    pub(crate) cookie: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Where the server says that it comes from.
    pub(crate) address: Option<SocketAddr>,
}

impl Visitor {
    pub(crate) fn of(dashboard: Dashboard) -> Self {
        let (router, headers) = (dashboard.router().unwrap(), vec![("host", "localhost".into())]);
        Self { router, cookie: String::new(), headers, address: None }
    }

    /// One who needs no token.
    pub(crate) fn free(provider: Provider) -> Self {
        Self::of(Dashboard::new(provider, Access::everyone_who_reaches_it()))
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// Comes from this address.
    pub(crate) fn from(&self, address: &str) -> Self {
        Self { address: Some(SocketAddr::new(address.parse().unwrap(), 50_000)), ..self.clone() }
    }

    /// Where scripts are off, the login has no key, and the forms work without one.
    pub(crate) async fn log_in(&mut self, token: &str) -> StatusCode {
        self.post("/login", &format!("token={token}&key=")).await.status
    }

    pub(crate) async fn ask(&mut self, method: Method, path: &str, kind: &str, body: String) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &self.headers {
            request = request.header(if *name == "host" { HOST.as_str() } else { name }, value);
        }
        if !kind.is_empty() {
            request = request.header(CONTENT_TYPE, kind);
        }
        if !self.cookie.is_empty() {
            request = request.header(COOKIE, &self.cookie);
        }
        if let Some(address) = self.address {
            request = request.extension(ConnectInfo(address));
        }
        let answer = self.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let (parts, body) = answer.into_parts();
        if let Some(cookie) = parts.headers.get(SET_COOKIE) {
            self.cookie = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        }
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.ask(Method::GET, path, "", String::new()).await
    }

    pub(crate) async fn post(&mut self, path: &str, form: &str) -> Answer {
        self.ask(Method::POST, path, "application/x-www-form-urlencoded", form.into()).await
    }

    pub(crate) async fn call(&mut self, method: Method, path: &str, body: &Value) -> Answer {
        self.ask(method, &format!("/api/v1{path}"), "application/json", body.to_string()).await
    }

    /// Confirms an action: loads the page that asks, and sends its form with these fields.
    pub(crate) async fn confirm(&mut self, query: &str, more: &str) -> Answer {
        let asked = self.get(&format!("/confirm?{query}")).await;
        assert_eq!(asked.status, StatusCode::OK, "{}", asked.body);
        let token = asked.field("form_token");
        self.post("/act", &format!("{query}&{more}&form_token={token}")).await
    }
}

/// A store in memory of this name.
pub(crate) async fn provider(name: &str) -> Provider {
    Provider::connect("shop", format!("memory:dashboard-{name}")).await.unwrap()
}
