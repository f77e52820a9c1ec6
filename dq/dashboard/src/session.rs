//! Sessions and the tokens of forms. A session proves itself; only those that were ended before their time are kept.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use tokio::sync::watch;

use crate::access::Kind;
use crate::secret::{random, same, text_of};
use crate::user::User;

/// The name of the cookie.
pub(crate) const COOKIE_NAME: &str = "dq_session";

/// How long a session lasts, in seconds.
pub(crate) const LASTS: u64 = 12 * 3_600;

/// The most sessions that are kept as ended. One more ends all sessions that began before.
const MOST_ENDED: usize = 10_000;

/// A session: when it began in ms, the number of its token, 16 random bytes, and what proves that this dashboard made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    text: String,
    began: u64,
    token: usize,
}

/// The sessions of a dashboard: the key that makes them, and which of them have ended.
#[derive(Debug)]
pub(crate) struct Sessions {
    key: Key,
    ended: Mutex<Ended>,
    /// Wakes the live pages when a session ends.
    changes: watch::Sender<()>,
}

/// What makes and checks sessions.
#[derive(Clone)]
pub(crate) struct Key(Vec<u8>);

#[derive(Debug, Default)]
struct Ended {
    /// Each session with its begin.
    alone: HashMap<String, u64>,
    /// For each token the time up to which its sessions have ended.
    until: HashMap<usize, u64>,
    /// The same for all tokens.
    all_until: u64,
}

impl Key {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The number of its bytes.
    pub(crate) fn length(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        Ok(Self(random::<32>()?.to_vec()))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Ended {
    fn has(&self, session: &Session) -> bool {
        let until = self.until.get(&session.token).copied().unwrap_or_default().max(self.all_until);
        session.began <= until || self.alone.contains_key(&session.text)
    }
}

impl Sessions {
    pub(crate) fn new(key: Key) -> Self {
        Self { key, ended: Mutex::default(), changes: watch::Sender::new(()) }
    }

    /// Begins a session of the token with this number; without tokens it is 0.
    pub(crate) fn begin(&self, kind: &Kind, token: usize) -> Result<Session, getrandom::Error> {
        let began = {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            let until = ended.until.get(&token).copied().unwrap_or_default().max(ended.all_until);
            now().max(until + 1)
        };
        let plain = format!("{began}.{token}.{}", text_of(random::<16>()?));
        let text = format!("{plain}.{}", self.proof(kind, token, "session", &plain));
        Ok(Session { text, began, token })
    }

    /// The session of a request, if this dashboard made it and it has not ended.
    pub(crate) fn of(&self, kind: &Kind, headers: &HeaderMap) -> Option<Session> {
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|cookie| cookie.to_str().ok());
        let values = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == COOKIE_NAME).then_some(value)
        });
        let mut sessions = values.filter_map(|value| self.read(kind, value));
        sessions.find(|session| self.lasts(session))
    }

    fn read(&self, kind: &Kind, text: &str) -> Option<Session> {
        let (plain, proven) = text.rsplit_once('.')?;
        let mut parts = plain.split('.');
        let (began, token) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let is_ours = same(&self.proof(kind, token, "session", plain), proven);
        is_ours.then(|| Session { text: text.to_owned(), began, token })
    }

    /// Whether a session has not ended.
    pub(crate) fn lasts(&self, session: &Session) -> bool {
        let age = now().saturating_sub(session.began);
        age < LASTS * 1_000 && !self.ended.lock().unwrap_or_else(PoisonError::into_inner).has(session)
    }

    /// Ends a session.
    pub(crate) fn end(&self, session: &Session) {
        {
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            let oldest = now().saturating_sub(LASTS * 1_000);
            if ended.alone.len() >= MOST_ENDED {
                ended.alone.retain(|_, began| *began >= oldest);
            }
            if ended.alone.len() >= MOST_ENDED {
                ended.all_until = now();
                ended.alone.clear();
            }
            ended.alone.insert(session.text.clone(), session.began);
        }
        self.changes.send_replace(());
    }

    /// Ends all sessions of the token of this one.
    pub(crate) fn end_all(&self, session: &Session) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).until.insert(session.token, now().max(session.began));
        self.changes.send_replace(());
    }

    /// Tells when any session has ended.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// What every form of the session has to send back.
    pub(crate) fn form_token(&self, kind: &Kind, session: &Session) -> String {
        self.proof(kind, session.token, "form", &session.text)
    }

    pub(crate) fn sent(&self, kind: &Kind, session: &Session, form_token: &str) -> bool {
        same(&self.form_token(kind, session), form_token)
    }

    /// It needs the key, and the token of the session: another token ends its sessions.
    fn proof(&self, kind: &Kind, token: usize, what: &str, text: &str) -> String {
        let secret = match kind {
            Kind::Tokens(tokens) => tokens.get(token).map_or("", |token| &token.secret),
            Kind::Hook(_) | Kind::Everyone => "",
        };
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.key.0).expect("a key of any length will do");
        for part in [what, secret, text] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        text_of(mac.finalize().into_bytes())
    }
}

impl Session {
    /// The value of its cookie.
    pub(crate) fn cookie(&self) -> &str {
        &self.text
    }

    /// The user who has its token.
    pub(crate) fn user(&self, kind: &Kind) -> Option<User> {
        let Kind::Tokens(tokens) = kind else { return None };
        tokens.get(self.token).map(|token| token.user.clone())
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;

    fn made(text: &str) -> Sessions {
        Sessions::new(Key::new(text.into()))
    }

    fn begin(sessions: &Sessions, kind: &Kind, token: usize) -> Session {
        sessions.begin(kind, token).ok().unwrap()
    }

    #[test]
    fn a_session_belongs_to_one_key_and_one_token() {
        let kind = Access::token("ann", "one-token-of-many").or_token("bob", "another-token-yet").0;
        let sessions = made("key");
        let session = begin(&sessions, &kind, 1);
        assert_eq!(sessions.read(&kind, session.cookie()).unwrap().user(&kind).unwrap().name.as_ref(), "bob");
        assert!(made("other").read(&kind, session.cookie()).is_none());
        assert!(made("key").read(&kind, session.cookie()).is_some(), "dashboards with one key share sessions");
        let later = Access::token("ann", "one-token-of-many").or_token("bob", "a-new-token-of-bob").0;
        assert!(sessions.read(&later, session.cookie()).is_none(), "a new token ends the sessions of the old one");
        let [began, token, rest] = session.cookie().splitn(3, '.').collect::<Vec<_>>()[..] else { panic!() };
        for forged in [format!("9{began}.{token}.{rest}"), format!("{began}.0.{rest}"), format!("{began}.{token}")] {
            assert!(sessions.read(&kind, &forged).is_none(), "{forged}");
        }
        let form = sessions.form_token(&kind, &session);
        assert!(sessions.sent(&kind, &session, &form) && !sessions.sent(&kind, &begin(&sessions, &kind, 1), &form));
    }

    #[test]
    fn a_session_ends_by_time_alone_or_with_all_of_its_token() {
        let (kind, sessions) =
            (Access::token("ann", "one-token-of-many").or_token("bob", "another-token-yet").0, made("key"));
        let [first, second, other] = [0, 0, 1].map(|token| begin(&sessions, &kind, token));
        let old = Session { began: now() - LASTS * 1_000, ..first.clone() };
        assert!(sessions.lasts(&first) && !sessions.lasts(&old));
        let changes = sessions.changes();
        sessions.end(&first);
        assert_eq!([&first, &second].map(|session| sessions.lasts(session)), [false, true]);
        sessions.end_all(&second);
        assert_eq!([&second, &other].map(|session| sessions.lasts(session)), [false, true]);
        assert!(sessions.lasts(&begin(&sessions, &kind, 0)), "a later session lasts");
        assert!(changes.has_changed().unwrap());
    }

    #[test]
    fn ended_sessions_are_bounded_and_none_comes_back() {
        let (kind, sessions) = (Access::token("ann", "one-token-of-many").0, made("key"));
        let first = begin(&sessions, &kind, 0);
        sessions.end(&first);
        for n in 0..MOST_ENDED {
            sessions.end(&Session { text: n.to_string(), ..first.clone() });
        }
        assert!(sessions.ended.lock().unwrap().alone.len() <= MOST_ENDED);
        assert!(!sessions.lasts(&first));
        assert!(sessions.lasts(&begin(&sessions, &kind, 0)));
    }
}
