//! What the server, or the way to it, can say, and what that means for a step.
//!
//! | said | class | why |
//! |---|---|---|
//! | connection refused, reset or closed, no answer in time | `Unavailable` | the step may have been executed, or may still be |
//! | `LOADING`, `MASTERDOWN`, `CLUSTERDOWN`, `TRYAGAIN`, `BUSY` | `Refused` | refused before the script began; passes by itself |
//! | `READONLY`, `OOM`, `MISCONF`, `NOREPLICAS` | `Refused` | refused at the first write of the script, which reads and checks everything before that |
//! | `NOSCRIPT` | – | the script is sent in full; the caller never sees it |
//! | `DQTYPE`, `WRONGTYPE` (a key of a wrong type) | `WrongType` | the script looked before it wrote; a second one finds out which key |
//! | `DQVERSION` (another protocol version) | `Version` | likewise |
//! | `NOPERM`, `NOAUTH`, `WRONGPASS`, everything else | `Other` | somebody must change something |

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
        return Failure::Broken(StoreError::Unavailable { operation, reason: error.to_string() });
    }
    Failure::Answered(StoreError::Other { operation, source: said(&error).into() })
}

/// What the server said, as it said it; of other errors what the client says.
fn said(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}

/// The code of an error; of one that a script ran into, Redis 6 hides it behind `ERR Error running script`.
fn code(error: &RedisError) -> String {
    let code = error.code().unwrap_or_default();
    let hidden = error.detail().filter(|text| code == "ERR" && text.contains("unning script"));
    let inner = hidden.and_then(|text| text.split(" -").find_map(|part| part.split([' ', '.']).next().filter(is_code)));
    inner.unwrap_or(code).to_owned()
}

fn is_code(word: &&str) -> bool {
    word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase())
}

fn number(error: &RedisError) -> Option<usize> {
    error.detail()?.split_whitespace().next()?.parse().ok()
}

fn wrong_type(operation: &'static str, call: Option<&Call>, error: RedisError) -> StoreError {
    let at = number(&error).and_then(|n| n.checked_sub(1));
    let key = call.zip(at).and_then(|(call, at)| Some((call.names.get(at)?, call.step.keys().get(at)?)));
    match key {
        Some((name, key)) => StoreError::WrongType { key: name.clone(), expected: key.kind() },
        None => StoreError::Other { operation, source: Box::new(error) },
    }
}

fn version(operation: &'static str, call: Option<&Call>, error: RedisError) -> StoreError {
    match call.zip(number(&error).and_then(|found| u32::try_from(found).ok())) {
        Some((call, found)) => StoreError::Version { topic: call.keys.topic().clone(), found, ours: PROTOCOL_VERSION },
        None => StoreError::Other { operation, source: Box::new(error) },
    }
}
