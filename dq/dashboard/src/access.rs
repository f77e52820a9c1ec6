//! Who may use a dashboard.

use std::fmt;
use std::sync::Arc;

use axum::http::request::Parts;

use crate::error::DashboardError;
use crate::secret::{random, same, text_of};
use crate::user::User;

type Hook = Arc<dyn Fn(&Parts) -> Option<User> + Send + Sync>;

/// Who may use a dashboard. Every dashboard needs one: nothing is open unless you say it.
#[derive(Clone)]
pub struct Access(pub(crate) Kind);

#[derive(Clone)]
pub(crate) enum Kind {
    Tokens(Vec<Token>),
    Hook(Hook),
    Everyone,
}

/// A token and the user who has it.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) user: User,
    pub(crate) secret: Arc<str>,
}

impl Kind {
    /// The number and the user of a token. It compares all of them, so its time tells nothing about which one fits.
    pub(crate) fn user_of(&self, sent: &str) -> Option<(usize, User)> {
        let Self::Tokens(tokens) = self else { return None };
        let fits =
            |found: Option<usize>, (n, token): (usize, &Token)| if same(&token.secret, sent) { Some(n) } else { found };
        let n = tokens.iter().enumerate().fold(None, fits)?;
        Some((n, tokens[n].user.clone()))
    }
}

impl Access {
    /// Lets in everyone with this token, as `user`: people type it into a form once in 12 hours, programs send
    /// `Authorization: Bearer TOKEN`. Make it from random bytes, for example with `openssl rand -hex 32`;
    /// [`Dashboard::router`](crate::Dashboard::router) refuses one of fewer than 16 bytes.
    ///
    /// ```
    /// # let (for_people, for_producers) = ("a", "b");
    /// use dq_dashboard::{Access, Role, User};
    ///
    /// let producers = User::new("web shop").with_roles([Role::Add]);
    /// let access = Access::token("ann", for_people).or_token(producers, for_producers);
    /// ```
    pub fn token(user: impl Into<User>, token: impl Into<String>) -> Self {
        Self(Kind::Tokens(Vec::new())).or_token(user, token)
    }

    /// Makes a token of 32 random bytes.
    ///
    /// # Errors
    /// [`DashboardError::NoRandomness`].
    pub fn new_token() -> Result<String, DashboardError> {
        random::<32>().map(text_of).map_err(|_| DashboardError::NoRandomness)
    }

    /// Lets in another user with another token. It takes the place of a hook.
    #[must_use]
    pub fn or_token(mut self, user: impl Into<User>, token: impl Into<String>) -> Self {
        let token = Token { user: user.into(), secret: token.into().into() };
        match &mut self.0 {
            Kind::Tokens(tokens) => tokens.push(token),
            Kind::Hook(_) | Kind::Everyone => self.0 = Kind::Tokens(vec![token]),
        }
        self
    }

    /// Lets in the user that `who` returns. The hook sees the method, the URI, the headers and the extensions of each request, so it
    /// can read what your own login put there. `None` answers 401.
    ///
    /// It runs for each request, and for a live page before each update: it must not block.
    pub fn check(who: impl Fn(&Parts) -> Option<User> + Send + Sync + 'static) -> Self {
        Self(Kind::Hook(Arc::new(who)))
    }

    /// Lets everyone who reaches the dashboard see and change everything. Only for a listener on a loopback address, or behind a proxy
    /// that authenticates. Requests must name `localhost`, a loopback address, or a host of
    /// [`Dashboard::hosts`](crate::Dashboard::hosts), so a foreign page cannot reach it through a name that it points at your machine.
    pub const fn everyone_who_reaches_it() -> Self {
        Self(Kind::Everyone)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Tokens(_) => "Access::token(..)",
            Kind::Hook(_) => "Access::check(..)",
            Kind::Everyone => "Access::everyone_who_reaches_it()",
        })
    }
}
