//! Sorts the errors of a server, or of the connection to it, into classes: what each one means for a step.
//!
//! | error | class | why |
//! |---|---|---|
//! | connection refused, reset or closed, no answer in time | `Unavailable` | the step may have been executed, or may still be |
//! | the same while connecting, or on a connection that was lost before | `NotSent` | nothing was sent |
//! | `LOADING`, `MASTERDOWN`, `CLUSTERDOWN`, `TRYAGAIN`, `BUSY`; with `redis+cluster://` `MOVED` and `ASK` | `Refused` | refused before the script began; temporary |
//! | `READONLY`, `NOREPLICAS` | `Refused` | refused at the first write of the script, which reads and checks everything before |
//! | `OOM`, `MISCONF` | `Full` | the same; it lasts until somebody makes room, or jobs that end free some |
//! | `MOVED`, `ASK` with `redis://`; `CROSSSLOT` | `Unsupported` | refused before the script began; the URL must be another one |
//! | `NOSCRIPT` | – | the script is sent in full; the caller never sees it |
//! | `DQTYPE`, `WRONGTYPE` (a key of a wrong type) | `WrongType` | the script checked before it wrote; for `WRONGTYPE` a second script finds the key, unless the command reads only one |
//! | `DQVERSION` (another protocol version) | `Version` | the script checked before it wrote |
//! | `DQFULL` (follow-ups or copies have no room) | `TopicFull`, `GroupFull` | the same |
//! | `DQHEAVY` (a copy is heavier than its rate allows) | `TooHeavy` | the same |
//! | `DQAHEAD` (a fence or an order is more than a day ahead of the clock) | `AheadOfClock` | the same |
//! | `DQORDER` (a follow-up is missing before this one) | `Refused` | the same |
//! | `DQDRAINING` (the topic takes no new jobs) | `Draining` | the script checked before it wrote |
//! | `NOAUTH`, `WRONGPASS`, `NOPERM`, a certificate, while connecting | `Denied` | nothing was sent; the operator must fix it |
//! | `max number of clients`, while connecting | `NotSent` | nothing was sent; it passes when other clients have gone |
//! | too few replicas behind a `WAIT` | `NotReplicated` | it is done, and a failover may undo it |
//! | `NOPERM` later, everything else | `Other` | the operator must fix it; a script may have stopped half-way |
//!
//! The text of an error ends with what the operator can do about it ([`advice`]); logs and `health()` show it.

use redis::RedisError;

use super::keys::Key;
use super::scripts::{Form, ScriptCall};
use super::topic_state::draining;
use super::words::words_of;
use crate::job::limits::{FENCE, ORDER};
use crate::job::{GroupName, JobId};
use crate::store::{OUT_OF_ORDER, PROTOCOL_VERSION, StoreError, TooHeavy, TopicFull, check_ahead, rate_in};

/// Codes of a server that refuses for now and has done nothing.
const NOT_NOW: [&str; 7] = ["LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "READONLY", "NOREPLICAS"];

/// Codes of a server that refuses what writes until there is room in its memory, or on its disk.
const FULL: [&str; 2] = ["OOM", "MISCONF"];

/// Codes with which a server of a cluster names another one, or refuses keys of several slots.
const OF_A_CLUSTER: [&str; 3] = ["MOVED", "ASK", "CROSSSLOT"];

/// What an error means for a request and its connection.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is of no use any more: it broke, fell silent, or leads to a replica.
    Broken(StoreError),
    /// The server does not know the script.
    NoScript,
    /// A key has a wrong type, and the server does not say which.
    WrongType,
    /// The server answered with an error, and the connection goes on.
    Answered(StoreError),
}

impl Failure {
    /// Whether the call that failed is to be sent again in another form, which it has now: in full, or to find the key of a wrong type.
    pub(super) fn asks_again(&self, call: &mut ScriptCall) -> bool {
        match self {
            Self::NoScript if call.form == Form::Hash => call.write_in_full(),
            Self::WrongType if call.form != Form::Diagnosis => call.become_diagnosis(),
            _ => return false,
        }
        true
    }
}

/// The error of connecting: nothing was sent.
pub(super) fn of_connecting(operation: &'static str, is_tls: bool, error: &RedisError) -> StoreError {
    let (reason, certificate) = (reason_of(error), advice_in(&CERTIFICATES, &words_of(error)));
    let port = match is_tls {
        true => error.is_timeout().then_some("is that the server's TLS port?"),
        false if error.is_connection_refusal() => None,
        false => error.is_connection_dropped().then_some("if that port expects TLS, write rediss:// in the URL"),
    };
    match of_command(operation, error) {
        StoreError::Other { .. } if reason.contains(TOO_MANY) => StoreError::NotSent { operation, reason },
        StoreError::Other { .. } if reason.contains(IN_CLUSTER) || reason.contains(IN_NO_CLUSTER) => {
            StoreError::Unsupported { operation, reason }
        }
        StoreError::Other { .. } if reason.contains("Parse error") => {
            let reason = "what answers there is no Redis server: are host and port in the URL right?".to_owned();
            StoreError::Unsupported { operation, reason }
        }
        StoreError::Other { .. } => StoreError::Denied { operation, reason },
        StoreError::Unavailable { .. } if certificate.is_some() => StoreError::Denied { operation, reason },
        StoreError::Unavailable { reason, .. } => {
            let reason = port.map_or_else(|| reason.clone(), |advice| format!("{reason} ({advice})"));
            StoreError::NotSent { operation, reason }
        }
        StoreError::Refused { reason, .. } | StoreError::Full { reason, .. } => {
            StoreError::NotSent { operation, reason }
        }
        other => other,
    }
}

/// The error of a command that calls no script.
pub(super) fn of_command(operation: &'static str, error: &RedisError) -> StoreError {
    match classify(operation, None, error) {
        Failure::Broken(error) | Failure::Answered(error) => error,
        Failure::NoScript | Failure::WrongType => server_changed(operation),
    }
}

/// The error of a request that the server refused for a reason that no longer holds: a key of a wrong type was removed
/// meanwhile, or the server forgot a script that it was just sent.
pub(super) fn server_changed(operation: &'static str) -> StoreError {
    StoreError::Refused { operation, reason: "the server changed during the request".into() }
}

/// The error of a request that was not sent because of `error`: the connection could not be made, or was lost before.
pub(super) fn not_sent(operation: &'static str, error: &StoreError) -> StoreError {
    match error {
        StoreError::Denied { reason, .. } => StoreError::Denied { operation, reason: reason.clone() },
        StoreError::Unsupported { reason, .. } => StoreError::Unsupported { operation, reason: reason.clone() },
        StoreError::NotSent { reason, .. }
        | StoreError::Refused { reason, .. }
        | StoreError::Full { reason, .. }
        | StoreError::Unavailable { reason, .. } => StoreError::NotSent { operation, reason: reason.clone() },
        other => StoreError::NotSent { operation, reason: other.to_string() },
    }
}

/// Sorts an error into its class.
pub(super) fn classify(operation: &'static str, call: Option<&ScriptCall>, error: &RedisError) -> Failure {
    let code = code(error);
    match code.as_str() {
        "NOSCRIPT" => return Failure::NoScript,
        "WRONGTYPE" if call.is_some() => return Failure::WrongType,
        "DQTYPE" => return Failure::Answered(wrong_type(operation, call, error)),
        "DQDRAINING" => return Failure::Answered(draining(error.detail().unwrap_or_default())),
        "DQFULL" => return Failure::Answered(full(error.detail().unwrap_or_default())),
        "DQHEAVY" => return Failure::Answered(too_heavy(operation, error)),
        "DQAHEAD" => return Failure::Answered(ahead(operation, error)),
        "DQORDER" => return Failure::Answered(StoreError::Refused { operation, reason: OUT_OF_ORDER.to_owned() }),
        "DQVERSION" => return Failure::Answered(version(operation, call, error)),
        _ => {}
    }
    if FULL.contains(&code.as_str()) {
        return Failure::Answered(StoreError::Full { operation, reason: reason_of(error) });
    }
    if NOT_NOW.contains(&code.as_str()) {
        let refused = StoreError::Refused { operation, reason: reason_of(error) };
        return if code == "READONLY" { Failure::Broken(refused) } else { Failure::Answered(refused) };
    }
    if OF_A_CLUSTER.contains(&code.as_str()) {
        return Failure::Answered(StoreError::Unsupported { operation, reason: reason_of(error) });
    }
    if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() || error.is_connection_refusal() {
        return Failure::Broken(StoreError::Unavailable { operation, reason: reason_of(error) });
    }
    Failure::Answered(StoreError::Other { operation, source: reason_of(error).into() })
}

/// The same for the error of a command that is no script, and reads the key of this name.
pub(super) fn classify_read(operation: &'static str, key: Key, name: &str, error: &RedisError) -> Failure {
    if code(error) == "WRONGTYPE" {
        return Failure::Answered(StoreError::WrongType { key: name.to_owned(), expected: key.redis_type() });
    }
    classify(operation, None, error)
}

/// The words of an error, and what to do about it.
fn reason_of(error: &RedisError) -> String {
    let text = words_of(error);
    let refusal = "is the server running, and are host and port in the URL right?";
    let advice = advice(&code(error))
        .or_else(|| advice_in(&SIGNS, &text))
        .or_else(|| advice_in(&CERTIFICATES, &text))
        .or_else(|| error.is_connection_refusal().then_some(refusal));
    advice.map_or_else(|| text.clone(), |advice| format!("{text} ({advice})"))
}

/// What the operator can do about an error with this code.
fn advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "LOADING" | "TRYAGAIN" => "this is temporary",
        "CLUSTERDOWN" => "this passes when the cluster has recovered",
        "MASTERDOWN" => "the server is a replica that has lost its master: point the URL at a master",
        "READONLY" => "the server is a replica: point the URL at the master",
        "BUSY" => "a script of another program blocks the server: end it with SCRIPT KILL",
        "OOM" => "the server's memory is full: raise `maxmemory`, or wait until running jobs have freed some",
        "MISCONF" => "the server cannot save to its disk: see its log",
        "NOREPLICAS" => "connect more replicas, or lower the server's `min-replicas-to-write`",
        "NOAUTH" => "add user and password to the URL",
        "WRONGPASS" => "fix user and password in the URL",
        "NOPERM" => PERMISSIONS,
        "MOVED" | "ASK" => CLUSTER,
        "CROSSSLOT" => "keys of several slots: with redis+cluster:// in the URL it is a defect of dq, please report it",
        _ => return None,
    })
}

const CLUSTER: &str = "the server belongs to a cluster: write redis+cluster:// in the URL";

const PERMISSIONS: &str = "give the user the permissions in docs/guide/deploying-on-redis.md";

const TOO_MANY: &str = "max number of clients";
const IN_CLUSTER: &str = "not allowed in cluster mode";
const IN_NO_CLUSTER: &str = "cluster support disabled";

/// What the operator can do about errors that have no code of their own, by what their texts have in them.
const SIGNS: [(&str, &str); 9] = [
    ("ACL failure in script", PERMISSIONS),
    ("can't run this command or subcommand", PERMISSIONS),
    ("can't access at least one of the keys", PERMISSIONS),
    ("failed to lookup address", "is the host in the URL right?"),
    ("DB index is out of range", "write a smaller number of a database in the URL, or raise the server's `databases`"),
    ("unknown command", "dq needs Redis 6.2 or later, or Valkey"),
    (TOO_MANY, "raise the server's `maxclients`"),
    (IN_CLUSTER, "the server belongs to a cluster: write redis+cluster:// in the URL, and no database"),
    (IN_NO_CLUSTER, "write redis:// in the URL"),
];

/// The same about a certificate that one side did not accept.
const CERTIFICATES: [(&str, &str); 5] = [
    ("UnknownIssuer", "name the authority that signed the server's certificate: rediss://HOST/?ca=FILE"),
    ("not valid for name", "write the host name in the URL that the server's certificate is for"),
    ("CertificateRequired", "the server wants a client certificate: rediss://HOST/?cert=FILE&key=FILE"),
    ("invalid peer certificate", "give the server a valid certificate"),
    ("fatal alert", "the server refuses the client certificate: use another one in `cert` and `key` of the URL"),
];

fn advice_in(signs: &[(&str, &'static str)], text: &str) -> Option<&'static str> {
    signs.iter().find(|(sign, _)| text.contains(sign)).map(|(_, advice)| *advice)
}

/// The code of an error. Redis 6 hides the code of an error inside a script behind `ERR Error running script`, in one
/// of several places.
fn code(error: &RedisError) -> String {
    let code = error.code().unwrap_or_default();
    let hidden = error.detail().filter(|text| code == "ERR" && text.contains("unning script"));
    let is_code =
        |word: &&str| NOT_NOW.contains(word) || FULL.contains(word) || *word == "WRONGTYPE" || advice(word).is_some();
    let inner = hidden.and_then(|text| text.split([' ', '-', '.', ':']).find(is_code));
    inner.unwrap_or(code).to_owned()
}

fn number(error: &RedisError) -> Option<usize> {
    error.detail()?.split_whitespace().next()?.parse().ok()
}

/// How many jobs wait, how many may, and the group if it is one that is full.
fn full(detail: &str) -> StoreError {
    let mut parts = detail.splitn(3, ' ');
    let mut number = || parts.next().and_then(|number| number.parse().ok()).unwrap_or_default();
    let full = TopicFull { waiting: number(), limit: number() };
    match parts.next().map(GroupName::new) {
        Some(Ok(group)) => StoreError::GroupFull { group, full },
        _ => StoreError::TopicFull(full),
    }
}

/// The rate, the weight, the group whose rate it is or nothing, and behind a tab the id of the job.
fn too_heavy(operation: &'static str, error: &RedisError) -> StoreError {
    let heavy = || {
        let (text, id) = error.detail()?.split_once('\t')?;
        let mut parts = text.splitn(3, ' ');
        let (rate, weight) = (rate_in(parts.next()?)?, parts.next()?.parse().ok()?);
        let heavy = TooHeavy { weight, rate, group: GroupName::new(parts.next()?).ok() };
        Some(StoreError::TooHeavy { id: JobId::new(id).ok()?, heavy })
    };
    heavy().unwrap_or_else(|| StoreError::Other { operation, source: reason_of(error).into() })
}

/// Which number it is, the number, and the clock.
fn ahead(operation: &'static str, error: &RedisError) -> StoreError {
    let ahead = || {
        let mut parts = error.detail()?.split(' ');
        let limit = if parts.next()? == "fence" { FENCE } else { ORDER };
        let (number, clock) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        check_ahead(limit, number, clock).err()
    };
    ahead().unwrap_or_else(|| StoreError::Other { operation, source: reason_of(error).into() })
}

fn wrong_type(operation: &'static str, call: Option<&ScriptCall>, error: &RedisError) -> StoreError {
    let at = number(error).and_then(|n| n.checked_sub(1));
    let key = call.zip(at).and_then(|(call, at)| Some((call.name_of_key(at)?, call.step.keys().get(at)?)));
    match key {
        Some((name, key)) => StoreError::WrongType { key: name, expected: key.redis_type() },
        None => StoreError::Other { operation, source: reason_of(error).into() },
    }
}

fn version(operation: &'static str, call: Option<&ScriptCall>, error: &RedisError) -> StoreError {
    match call.zip(number(error).and_then(|found| u32::try_from(found).ok())) {
        Some((call, found)) => StoreError::Version { topic: call.keys.topic().clone(), found, ours: PROTOCOL_VERSION },
        None => StoreError::Other { operation, source: reason_of(error).into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(detail: &str) -> RedisError {
        redis::make_extension_error("ERR".into(), Some(detail.into()))
    }

    #[test]
    fn the_words_of_a_server_are_cut_and_escaped_wherever_they_come_in() {
        assert_eq!(words_of(&said("unknown command 'HELLO' \"a\\b\" ü")), "ERR unknown command 'HELLO' \"a\\b\" ü");
        let hostile = || said(&format!("a\x1b[2J\n\u{202e}{}", "ü".repeat(5_000_000)));
        for words in [
            words_of(&hostile()),
            of_command("add", &hostile()).to_string(),
            of_connecting("add", false, &hostile()).to_string(),
            wrong_type("add", None, &hostile()).to_string(),
            version("add", None, &hostile()).to_string(),
            too_heavy("add", &hostile()).to_string(),
            std::error::Error::source(&of_command("add", &hostile())).expect("it has a source").to_string(),
        ] {
            assert!(!words.contains(['\x1b', '\n', '\u{202e}']), "{words:.100}");
            assert!((100..2_000).contains(&words.len()), "{} bytes", words.len());
        }
        assert!(
            words_of(&hostile()).starts_with(r"ERR a\u{1b}[2J\n\u{202e}üü") && words_of(&hostile()).ends_with("ü…")
        );
    }
}
