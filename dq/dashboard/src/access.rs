//! Who may use a dashboard.

use std::fmt;
use std::sync::Arc;

use axum::http::request::Parts;

type Hook = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

/// Who may use a dashboard. Every dashboard needs one: nothing is open unless somebody says so.
#[derive(Clone)]
pub struct Access(pub(crate) Kind);

#[derive(Clone)]
pub(crate) enum Kind {
    Token(Arc<str>),
    Hook(Hook),
    Everyone,
}

impl Access {
    /// Whoever knows this token: people type it into a form once in 12 hours, programs send `Authorization: Bearer TOKEN`. Make it from
    /// random bytes, for example with `openssl rand -hex 32`; [`Dashboard::router`](crate::Dashboard::router) refuses one of
    /// fewer than 16 bytes. All dashboards with the same token accept each other's sessions, and a new token ends them.
    pub fn token(token: impl Into<String>) -> Self {
        Self(Kind::Token(token.into().into()))
    }

    /// Whoever `who` gives a name: it sees the method, the URI, the headers and the extensions of each request, so it can read what
    /// your own login put there. `None` answers 401. Audit lines, pauses and drains say the name.
    ///
    /// It runs for each request: it must not block.
    pub fn check(who: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Kind::Hook(Arc::new(who)))
    }

    /// Everyone who reaches it may see and change everything. Only for a listener on a loopback address, or behind a proxy that asks
    /// who comes. Requests must name `localhost`, a loopback address, or a host of
    /// [`Dashboard::hosts`](crate::Dashboard::hosts): so no foreign page can reach it through a name that it points at your machine.
    pub const fn everyone_who_reaches_it() -> Self {
        Self(Kind::Everyone)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Token(_) => "Access::token(..)",
            Kind::Hook(_) => "Access::check(..)",
            Kind::Everyone => "Access::everyone_who_reaches_it()",
        })
    }
}

/// Who makes a request, as audit lines say it, in at most 200 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User(pub(crate) Arc<str>);

impl User {
    pub(crate) fn new(name: &str) -> Self {
        let end = (0..=name.len().min(200)).rev().find(|at| name.is_char_boundary(*at)).unwrap_or_default();
        Self(name[..end].into())
    }

    /// The name that commands, changes and pauses carry.
    pub(crate) fn by(&self) -> String {
        format!("{} (dashboard)", self.0)
    }
}
