//! What the server, or the way to it, can say, and what that means for a step.
//!
//! | said | class | why |
//! |---|---|---|
//! | connection refused, reset or closed, no answer in time | `Unavailable` | the step may have been executed, or may still be |
//! | the same while connecting | `Refused`, by the line | nothing was sent yet |
//! | `LOADING`, `MASTERDOWN`, `CLUSTERDOWN`, `TRYAGAIN`, `BUSY` | `Refused` | refused before the script began; passes by itself |
//! | `READONLY`, `OOM`, `MISCONF`, `NOREPLICAS` | `Refused` | refused at the first write of the script, which reads and checks everything before that |
//! | `NOSCRIPT` | – | the script is sent in full; the caller never sees it |
//! | `DQTYPE`, `WRONGTYPE` (a key of a wrong type) | `WrongType` | the script looked before it wrote; a second one finds out which key |
//! | `DQVERSION` (another protocol version) | `Version` | likewise |
//! | `NOAUTH`, `WRONGPASS`, `NOPERM`, a certificate, while connecting | `Denied` | nothing was sent yet; somebody must change something |
//! | `max number of clients`, while connecting | `Refused` | nothing was sent yet; passes when others have gone |
//! | too few replicas behind a `WAIT` | `NotReplicated` | it is done, and a failover may undo it |
//! | `NOPERM` later, everything else | `Other` | somebody must change something; a script may have been half-way |
//!
//! What a person can do about it stands behind what was said ([`advice`]): it is what logs and `health()` show.

use redis::RedisError;

use super::scripts::Call;
use crate::store::{PROTOCOL_VERSION, StoreError};

/// Codes that mean: not now, and nothing was done.
const NOT_NOW: [&str; 9] =
    ["LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "READONLY", "OOM", "MISCONF", "NOREPLICAS"];

/// What became of a request.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is of no use any more: broken, silent, or to a server that is no master now.
    Broken(StoreError),
    /// The server does not know the script.
    NoScript,
    /// A key has a wrong type, and the server does not say which.
    WrongType,
    /// An answer, and the connection goes on.
    Answered(StoreError),
}

/// The class of an error while connecting, over TLS or not: nothing was sent.
pub(super) fn connecting(operation: &'static str, is_tls: bool, error: RedisError) -> StoreError {
    let (reason, certificate) = (said(&error), about_certificates(&error.to_string()));
    let port = match is_tls {
        true => error.is_timeout().then_some("is that its port for TLS?"),
        false if error.is_connection_refusal() => None,
        false => error.is_connection_dropped().then_some("does that port want TLS, as in rediss://?"),
    };
    match plain(operation, error) {
        StoreError::Other { .. } if reason.contains("max number of clients") => {
            StoreError::Refused { operation, reason: format!("{reason} (raise its `maxclients`)") }
        }
        StoreError::Other { .. } if reason.contains("unknown command") => {
            StoreError::Denied { operation, reason: format!("{reason} (dq needs Redis 6.2 or later, or Valkey)") }
        }
        StoreError::Other { .. } => StoreError::Denied { operation, reason },
        StoreError::Unavailable { .. } if certificate.is_some() => StoreError::Denied { operation, reason },
        StoreError::Unavailable { reason, .. } => {
            let reason = port.map_or_else(|| reason.clone(), |advice| format!("{reason} ({advice})"));
            StoreError::Unavailable { operation, reason }
        }
        other => other,
    }
}

/// The class of an error of a command that is no script.
pub(super) fn plain(operation: &'static str, error: RedisError) -> StoreError {
    match failure(operation, None, error) {
        Failure::Broken(error) | Failure::Answered(error) => error,
        Failure::NoScript | Failure::WrongType => refused(operation),
    }
}

/// What was wrong a moment ago is so no more, or the server forgets scripts at once.
pub(super) fn refused(operation: &'static str) -> StoreError {
    StoreError::Refused { operation, reason: "the server changed meanwhile".into() }
}

/// The class of an error.
pub(super) fn failure(operation: &'static str, call: Option<&Call>, error: RedisError) -> Failure {
    let code = code(&error);
    match code.as_str() {
        "NOSCRIPT" => return Failure::NoScript,
        "WRONGTYPE" if call.is_some() => return Failure::WrongType,
        "DQTYPE" => return Failure::Answered(wrong_type(operation, call, error)),
        "DQVERSION" => return Failure::Answered(version(operation, call, error)),
        _ => {}
    }
    if NOT_NOW.contains(&code.as_str()) {
        let refused = StoreError::Refused { operation, reason: said(&error) };
        return if code == "READONLY" { Failure::Broken(refused) } else { Failure::Answered(refused) };
    }
    if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() || error.is_connection_refusal() {
        return Failure::Broken(StoreError::Unavailable { operation, reason: said(&error) });
    }
    Failure::Answered(StoreError::Other { operation, source: said(&error).into() })
}

/// What the server said, as it said it, of other errors what the client says; and what to do about it.
fn said(error: &RedisError) -> String {
    let text = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    };
    let refusal = "is it running, and are host and port those of the URL?";
    let advice = advice(&code(error))
        .or_else(|| about_permissions(&text))
        .or_else(|| about_certificates(&text))
        .or_else(|| error.is_connection_refusal().then_some(refusal));
    advice.map_or_else(|| text.clone(), |advice| format!("{text} ({advice})"))
}

/// What a person can do about an error of this code.
fn advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "LOADING" | "TRYAGAIN" => "it passes by itself",
        "CLUSTERDOWN" => "it passes when the cluster has recovered",
        "MASTERDOWN" => "it is a replica whose master is gone: let the URL lead to a master",
        "READONLY" => "it is a replica: let the URL lead to the master",
        "BUSY" => "a script of another program runs for long: SCRIPT KILL ends it",
        "OOM" => "its memory is full: raise `maxmemory`, or let the backlog drain, which goes on",
        "MISCONF" => "it cannot save to its disk: see its log",
        "NOREPLICAS" => "fewer replicas are connected than its `min-replicas-to-write`",
        "NOAUTH" => "write user and password into the URL",
        "WRONGPASS" => "mend user and password in the URL",
        "NOPERM" => PERMISSIONS,
        _ => return None,
    })
}

const PERMISSIONS: &str = "give its user the permissions in docs/guide/deploying-on-redis.md";

/// What a person can do about a command that a script may not use, which has no code of its own.
fn about_permissions(text: &str) -> Option<&'static str> {
    let signs =
        ["ACL failure in script", "can't run this command or subcommand", "can't access at least one of the keys"];
    signs.iter().any(|sign| text.contains(sign)).then_some(PERMISSIONS)
}

/// What a person can do about a certificate that was not accepted, on this side or the other.
fn about_certificates(text: &str) -> Option<&'static str> {
    let signs = [
        ("UnknownIssuer", "name the file of who signed the server's certificate: rediss://HOST/?ca=FILE"),
        ("not valid for name", "write the host that the server's certificate is for"),
        ("CertificateRequired", "the server wants a certificate of this program: rediss://HOST/?cert=FILE&key=FILE"),
        ("invalid peer certificate", "the server needs another certificate"),
        ("fatal alert", "the server does not accept the certificate of this program"),
    ];
    signs.iter().find(|(sign, _)| text.contains(sign)).map(|(_, advice)| *advice)
}

/// The code of an error; of one that a script ran into, Redis 6 hides it behind `ERR Error running script`, in one of
/// several places.
fn code(error: &RedisError) -> String {
    let code = error.code().unwrap_or_default();
    let hidden = error.detail().filter(|text| code == "ERR" && text.contains("unning script"));
    let is_code = |word: &&str| NOT_NOW.contains(word) || *word == "WRONGTYPE" || advice(word).is_some();
    let inner = hidden.and_then(|text| text.split([' ', '-', '.', ':']).find(is_code));
    inner.unwrap_or(code).to_owned()
}

fn number(error: &RedisError) -> Option<usize> {
    error.detail()?.split_whitespace().next()?.parse().ok()
}

fn wrong_type(operation: &'static str, call: Option<&Call>, error: RedisError) -> StoreError {
    let at = number(&error).and_then(|n| n.checked_sub(1));
    let key = call.zip(at).and_then(|(call, at)| Some((call.names.get(at)?, call.step.keys().get(at)?)));
    match key {
        Some((name, key)) => StoreError::WrongType { key: name.clone(), expected: key.redis_type() },
        None => StoreError::Other { operation, source: Box::new(error) },
    }
}

fn version(operation: &'static str, call: Option<&Call>, error: RedisError) -> StoreError {
    match call.zip(number(&error).and_then(|found| u32::try_from(found).ok())) {
        Some((call, found)) => StoreError::Version { topic: call.keys.topic().clone(), found, ours: PROTOCOL_VERSION },
        None => StoreError::Other { operation, source: Box::new(error) },
    }
}
