//! The builder.

use std::sync::Arc;

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use dq::Provider;
use dq::config::EffectiveSettings;

use crate::access::{Access, Kind};
use crate::app::{App, Redact};
use crate::error::{DashboardError, MIN_KEY, MIN_TOKEN};
use crate::host::prefix_in;
use crate::live::Live;
use crate::outlooks::Outlooks;
use crate::rate::Rates;
use crate::ready::Ready;
use crate::session::{Key, Sessions};
use crate::user::Reached;

/// How many requests a second each user at each address gets answered, and how many in a burst.
const REQUESTS: (f64, u32) = (100.0, 200);

/// The same for each address without a user.
const OTHER_REQUESTS: (f64, u32) = (20.0, 100);

/// How many wrong tokens of an address a minute are logged; more are too many requests.
const WRONG_TOKENS: u32 = 20;

/// A dashboard that is being made; see the [crate's page](crate).
#[derive(Debug)]
#[must_use = "it serves nothing until its router is part of an app: call `router` or `at`"]
pub struct Dashboard {
    provider: Provider,
    access: Access,
    read_only: bool,
    secure: bool,
    behind_proxy: bool,
    prefix: Option<String>,
    key: Option<Key>,
    hosts: Vec<String>,
    redact: Option<Redact>,
    settings: Vec<(String, EffectiveSettings)>,
}

impl Dashboard {
    /// Begins a dashboard of the topics of this provider's app, for those whom `access` lets in.
    pub fn new(provider: Provider, access: Access) -> Self {
        let (hosts, settings) = (Vec::new(), Vec::new());
        Self {
            provider,
            access,
            read_only: false,
            secure: false,
            behind_proxy: false,
            prefix: None,
            key: None,
            hosts,
            redact: None,
            settings,
        }
    }

    /// Leaves out everything that changes jobs or topics: such requests answer 403, and pages have no buttons.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Shows payloads, as `redact` writes them: it gets the topic and the bytes of a payload (JSON), and leaves out what must not be
    /// seen. Without it, no payload is shown. At most 64 KiB of its text are shown. It runs for each payload: it must not block.
    pub fn show_payloads(mut self, redact: impl Fn(&str, &[u8]) -> String + Send + Sync + 'static) -> Self {
        self.redact = Some(Redact(Arc::new(redact)));
        self
    }

    /// Answers only requests that name one of these hosts (without a port) or a loopback name in their `Host` header; others get 421.
    /// Without it, and with a token or a hook, every name is answered; see [`Access::everyone_who_reaches_it`].
    pub fn hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts = hosts.into_iter().map(|host| host.into().to_ascii_lowercase()).collect();
        self
    }

    /// Says that browsers reach the dashboard by HTTPS, so that they send its cookie over nothing else. It does so anyway for requests
    /// with `X-Forwarded-Proto: https`.
    pub fn https(mut self) -> Self {
        self.secure = true;
        self
    }

    /// Takes the address of a visitor from the last entry of `X-Forwarded-For`, which the proxy in front of the dashboard writes, and
    /// the path that this proxy strips from `X-Forwarded-Prefix`. Only for a dashboard that cannot be reached without that proxy: other
    /// visitors could write any address.
    pub fn behind_proxy(mut self) -> Self {
        self.behind_proxy = true;
        self
    }

    /// Says which path a proxy in front of the dashboard strips from each request, such as `/ops/dq`: links, forms and the cookie have it
    /// before their paths. It overrides the header of [`behind_proxy`](Self::behind_proxy).
    pub fn prefix(mut self, path: impl Into<String>) -> Self {
        self.prefix = Some(path.into());
        self
    }

    /// Makes sessions with this key, 32 random bytes or more. Dashboards of several processes need the same key to accept each other's
    /// sessions; without it each has a random one, and a restart ends all sessions. An ended session ends only in the process that was
    /// asked to.
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(Key::new(key.into()));
        self
    }

    /// Shows the settings of a node and their sources: those of [`Context::settings`](dq::Context::settings) and
    /// [`topic_settings`](dq::Context::topic_settings).
    pub fn settings_of(mut self, node: &dq::Context) -> Self {
        self.settings = vec![("node".to_owned(), node.settings().clone())];
        let topics =
            node.topics().filter_map(|topic| Some((format!("topic {topic}"), node.topic_settings(topic.as_str())?)));
        self.settings.extend(topics);
        self
    }

    /// Makes the router, to nest or to serve: its links fit to wherever it is nested. `axum` answers a nested router at `/admin/dq`, but
    /// not at `/admin/dq/`; [`at`](Self::at) does both.
    ///
    /// # Errors
    /// [`DashboardError`]: a token or the key is too short, the prefix is not a path, or the system has no random bytes.
    pub fn router(self) -> Result<Router, DashboardError> {
        Ok(crate::routes::router(&self.into_app()?))
    }

    pub(crate) fn into_app(self) -> Result<Arc<App>, DashboardError> {
        if let Kind::Tokens(tokens) = &self.access.0
            && let Some(short) = tokens.iter().find(|token| token.secret.len() < MIN_TOKEN)
        {
            return Err(DashboardError::ShortToken { length: short.secret.len() });
        }
        let key = match self.key {
            Some(key) if key.length() < MIN_KEY => return Err(DashboardError::ShortKey { length: key.length() }),
            Some(key) => key,
            None => Key::random().map_err(|_| DashboardError::NoRandomness)?,
        };
        let read = |path: String| prefix_in(&path).map(str::to_owned).ok_or(DashboardError::BadPath { path });
        let prefix = self.prefix.map(read).transpose()?;
        let app = App {
            inspector: self.provider.inspect(),
            outlooks: Outlooks::default(),
            live: Live::default(),
            sessions: Sessions::new(key),
            behind_proxy: self.behind_proxy,
            prefix,
            known_rate: Rates::new(REQUESTS.0, REQUESTS.1),
            other_rate: Rates::new(OTHER_REQUESTS.0, OTHER_REQUESTS.1),
            wrong_tokens: Rates::per_minute(WRONG_TOKENS),
            ready: Ready::default(),
            reached: Reached::default(),
            provider: self.provider,
            access: self.access,
            read_only: self.read_only,
            secure: self.secure,
            hosts: self.hosts,
            redact: self.redact,
            settings: self.settings,
        };
        Ok(Arc::new(app))
    }

    /// Makes a router that serves the dashboard at a path, with and without a slash at its end: `app.merge(dashboard.at("/admin/dq")?)`.
    ///
    /// # Errors
    /// [`DashboardError`].
    pub fn at(self, path: &str) -> Result<Router, DashboardError> {
        let fits = path.len() > 1 && path.starts_with('/') && !path.ends_with('/') && !path.contains(['{', '}']);
        if !fits {
            return Err(DashboardError::BadPath { path: path.to_owned() });
        }
        let router = self.router()?;
        // Relative, so that it also works where the app itself is nested.
        let last = path.rsplit('/').next().unwrap_or_default();
        let home = format!("../{last}");
        let slash = get(move || std::future::ready(Redirect::permanent(&home)));
        Ok(Router::new().nest(path, router).route(&format!("{path}/"), slash))
    }
}
