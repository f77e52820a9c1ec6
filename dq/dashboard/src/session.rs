//! Sessions and the tokens of forms. Nothing is kept: a session proves itself.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::access::Kind;
use crate::failure::Failure;

/// The name of the cookie.
pub(crate) const COOKIE_NAME: &str = "dq_session";

/// How long a session lasts, in seconds.
pub(crate) const LASTS: u64 = 12 * 3_600;

/// A session: when it ends, 16 random bytes, and what proves that this dashboard made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session(String);

impl Session {
    pub(crate) fn begin(kind: &Kind) -> Result<Self, Failure> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| Failure::NoRandomness)?;
        let plain = format!("{}.{}", now() + LASTS, URL_SAFE_NO_PAD.encode(random));
        Ok(Self(format!("{plain}.{}", proof(kind, "session", &plain))))
    }

    /// The session of a request, if it is one of this dashboard and has not ended.
    pub(crate) fn of(kind: &Kind, headers: &HeaderMap) -> Option<Self> {
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|cookie| cookie.to_str().ok());
        let mut values = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == COOKIE_NAME).then_some(value)
        });
        values.find(|value| is_valid(kind, value, now())).map(|value| Self(value.to_owned()))
    }

    /// The value of its cookie.
    pub(crate) fn cookie(&self) -> &str {
        &self.0
    }

    /// What every form of the session has to send back.
    pub(crate) fn form_token(&self, kind: &Kind) -> String {
        proof(kind, "form", &self.0)
    }

    pub(crate) fn sent(&self, kind: &Kind, form_token: &str) -> bool {
        same(&self.form_token(kind), form_token)
    }
}

fn is_valid(kind: &Kind, value: &str, now: u64) -> bool {
    let Some((plain, proven)) = value.rsplit_once('.') else { return false };
    let ends = plain.split('.').next().and_then(|ends| ends.parse::<u64>().ok());
    same(&proof(kind, "session", plain), proven) && ends.is_some_and(|ends| now < ends && ends <= now + LASTS)
}

/// Compares in a time that says nothing about the texts but their lengths.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// Whoever knows the token of the dashboard can make it. Without a token it binds forms to a cookie that no script and no other site
/// can read.
fn proof(kind: &Kind, what: &str, text: &str) -> String {
    let key = if let Kind::Token(token) = kind { token.as_bytes() } else { b"dq-dashboard" };
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("a key of any length will do");
    mac.update(what.as_bytes());
    mac.update(b"\0");
    mac.update(text.as_bytes());
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_and_belongs_to_one_token() {
        let (ours, theirs) = (Kind::Token("one-token-of-many".into()), Kind::Token("another-token-yet".into()));
        let session = Session::begin(&ours).ok().unwrap();
        assert!(is_valid(&ours, session.cookie(), now()));
        assert!(!is_valid(&theirs, session.cookie(), now()));
        assert!(!is_valid(&ours, session.cookie(), now() + LASTS + 1));
        let longer = session.cookie().replacen(char::is_numeric, "9", 1);
        assert!(longer == session.cookie() || !is_valid(&ours, &longer, now()));
        assert!(session.sent(&ours, &session.form_token(&ours)) && !session.sent(&ours, &session.form_token(&theirs)));
    }
}
