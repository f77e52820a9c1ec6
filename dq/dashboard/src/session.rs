//! Sessions and the tokens of forms. A session proves itself; only those that were ended before their time are kept.
//!
//! Browsers send a cookie to every port of its host. So the script of the login page makes a key, which it stores for its origin and sends
//! with the login and each change; the session has only its hash.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::access::Kind;
use crate::failure::Failure;
use crate::secret::{random, same, text_of};
use crate::user::User;

/// The name of the cookie.
pub(crate) const COOKIE_NAME: &str = "dq_session";

/// How long a session lasts, in seconds.
pub(crate) const LASTS: u64 = 12 * 3_600;

/// The most sessions of a token that are kept as ended. One more takes the place of the one that began first, and all sessions of the
/// token that began before that one have ended then.
const MAX_ENDED: usize = 1_000;

/// A session: when it began in ms, the number of its token, the hash of its key, 16 random bytes, and what proves that this dashboard
/// made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    text: String,
    began: u64,
    token: usize,
    /// Empty for a browser without scripts, which changes things without a key.
    key_hash: String,
}

/// The sessions of a dashboard: the key that makes them, and which of them have ended.
#[derive(Debug)]
pub(crate) struct Sessions {
    key: Key,
    /// Of each token.
    ended: Mutex<HashMap<usize, Ended>>,
    /// Wakes the live pages when a session ends.
    changes: watch::Sender<()>,
}

/// What makes and checks sessions.
#[derive(Clone)]
pub(crate) struct Key(Vec<u8>);

/// The sessions of a token that were ended.
#[derive(Debug, Default)]
struct Ended {
    /// The time up to which all have ended.
    until: u64,
    /// Later ones, each with its begin.
    alone: BTreeSet<(u64, String)>,
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
        session.began <= self.until || self.alone.contains(&(session.began, session.text.clone()))
    }

    fn end(&mut self, session: &Session) {
        self.alone.insert((session.began, session.text.clone()));
        while self.alone.len() > MAX_ENDED {
            let first = self.alone.pop_first();
            self.until = first.map_or(self.until, |(began, _)| self.until.max(began));
        }
    }
}

impl Sessions {
    pub(crate) fn new(key: Key) -> Self {
        Self { key, ended: Mutex::default(), changes: watch::Sender::new(()) }
    }

    /// Begins a session of the token with this number; without tokens it is 0. `key` is what the browser made, if it did.
    pub(crate) fn begin(&self, kind: &Kind, token: usize, key: &str) -> Result<Session, getrandom::Error> {
        let began = {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            now().max(ended.get(&token).map_or(0, |ended| ended.until + 1))
        };
        let key_hash = hash_of(key);
        let plain = format!("{began}.{token}.{key_hash}.{}", text_of(random::<16>()?));
        let text = format!("{plain}.{}", self.proof(kind, token, "session", &plain));
        Ok(Session { text, began, token, key_hash })
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
        let key_hash = parts.next()?.to_owned();
        let is_ours = same(&self.proof(kind, token, "session", plain), proven);
        is_ours.then(|| Session { text: text.to_owned(), began, token, key_hash })
    }

    /// Whether a session has not ended.
    pub(crate) fn lasts(&self, session: &Session) -> bool {
        let age = now().saturating_sub(session.began);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        age < LASTS * 1_000 && !ended.get(&session.token).is_some_and(|ended| ended.has(session))
    }

    /// Ends a session.
    pub(crate) fn end(&self, session: &Session) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).entry(session.token).or_default().end(session);
        self.changes.send_replace(());
    }

    /// Ends all sessions of the token of this one.
    pub(crate) fn end_all(&self, session: &Session) {
        let all = Ended { until: now().max(session.began), alone: BTreeSet::new() };
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(session.token, all);
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

    /// Refuses a form that no page of the session has sent, or that has not the key of the session.
    pub(crate) fn sent(
        &self,
        kind: &Kind,
        session: Option<&Session>,
        form_token: &str,
        key: &str,
    ) -> Result<(), Failure> {
        let session = session.ok_or(Failure::Forged)?;
        if !same(&self.form_token(kind, session), form_token) {
            return Err(Failure::Forged);
        }
        let has_key = session.key_hash.is_empty() || same(&session.key_hash, &hash_of(key));
        if has_key { Ok(()) } else { Err(Failure::NoKey) }
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

/// What a session has of its key: nothing where there is none.
fn hash_of(key: &str) -> String {
    if key.is_empty() { String::new() } else { text_of(Sha256::digest(key)) }
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
        sessions.begin(kind, token, "").ok().unwrap()
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
        let keyed = sessions.begin(&kind, 1, "a-key-of-a-browser").ok().unwrap();
        let without_its_key = keyed.cookie().replace(&keyed.key_hash, "");
        assert!(sessions.read(&kind, keyed.cookie()).is_some() && sessions.read(&kind, &without_its_key).is_none());
        for forged in [format!("9{began}.{token}.{rest}"), format!("{began}.0.{rest}"), format!("{began}.{token}")] {
            assert!(sessions.read(&kind, &forged).is_none(), "{forged}");
        }
        let form = sessions.form_token(&kind, &session);
        let sent = |session: &Session, key| sessions.sent(&kind, Some(session), &form, key);
        assert!(sent(&session, "").is_ok() && sent(&begin(&sessions, &kind, 1), "").is_err());
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
    fn many_ended_sessions_are_bounded_none_comes_back_and_no_other_token_loses_its_sessions() {
        let kind = Access::token("ann", "one-token-of-many").or_token("bob", "another-token-yet").0;
        let sessions = made("key");
        let [old, other] = [0, 1].map(|token| begin(&sessions, &kind, token));
        let before = Session { began: old.began - 1, ..other.clone() };
        for n in 0..10_001 {
            sessions.end(&Session { text: n.to_string(), began: old.began + n, ..old.clone() });
        }
        let later = Session { began: old.began + 20_000, ..old.clone() };
        assert!([&other, &before, &later].into_iter().all(|session| sessions.lasts(session)));
        assert!(!sessions.lasts(&old), "it began before one that the list has forgotten");
        for n in 0..10_001 {
            let ended = Session { text: n.to_string(), began: old.began + n, ..old.clone() };
            assert!(!sessions.lasts(&ended), "{n}");
        }
        let kept: Vec<_> = sessions.ended.lock().unwrap().values().map(|ended| ended.alone.len()).collect();
        assert!(kept.contains(&MAX_ENDED) && kept.iter().all(|kept| *kept <= MAX_ENDED), "{kept:?}");
        assert!(sessions.lasts(&begin(&sessions, &kind, 0)));
    }
}
