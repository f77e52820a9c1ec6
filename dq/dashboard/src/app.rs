//! What all requests share.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use dq::Provider;
use dq::config::EffectiveSettings;
use dq::inspect::Inspector;

use crate::access::Access;
use crate::failure::Failure;
use crate::live::Live;
use crate::outlooks::Outlooks;
use crate::rate::Rates;
use crate::ready::Ready;
use crate::session::Sessions;
use crate::user::{Reached, Role, User};

/// The most bytes of a payload's text that are shown.
const MAX_SHOWN: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) provider: Provider,
    pub(crate) inspector: Inspector,
    pub(crate) access: Access,
    pub(crate) read_only: bool,
    /// Whether browsers come by HTTPS only.
    pub(crate) secure: bool,
    pub(crate) hosts: Vec<String>,
    pub(crate) redact: Option<Redact>,
    pub(crate) settings: Vec<(String, EffectiveSettings)>,
    pub(crate) outlooks: Outlooks,
    pub(crate) live: Live,
    pub(crate) sessions: Sessions,
    /// Whether a proxy says who comes, and which prefix it stripped.
    pub(crate) behind_proxy: bool,
    /// The prefix that a proxy strips, without a slash at its end; `None`: the proxy may name it.
    pub(crate) prefix: Option<String>,
    /// Of users who were let in, and of all others.
    pub(crate) known_rate: Rates<(Option<IpAddr>, Arc<str>)>,
    pub(crate) other_rate: Rates<Option<IpAddr>>,
    pub(crate) wrong_tokens: Rates<Option<IpAddr>>,
    pub(crate) ready: Ready,
    pub(crate) reached: Reached,
}

impl App {
    /// Refuses a user without a role, and every change if the dashboard is read-only.
    pub(crate) fn allows(&self, user: &User, role: Role) -> Result<(), Failure> {
        if self.read_only && role != Role::Look {
            return Err(Failure::ReadOnly);
        }
        if user.may(role) { Ok(()) } else { Err(Failure::NotAllowed(role)) }
    }
}

pub(crate) type Shared = Arc<App>;

type RedactFn = dyn Fn(&str, &[u8]) -> String + Send + Sync;

/// Writes payloads without what must not be seen.
#[derive(Clone)]
pub(crate) struct Redact(pub(crate) Arc<RedactFn>);

impl Redact {
    pub(crate) fn show(&self, topic: &str, payload: &[u8]) -> String {
        let mut text = (self.0)(topic, payload);
        if text.len() > MAX_SHOWN {
            let end = (0..=MAX_SHOWN).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            text.truncate(end);
            text.push('…');
        }
        text
    }
}

impl fmt::Debug for Redact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redact")
    }
}
