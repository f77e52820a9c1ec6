//! What a step or a query says that meets a row which another program, or a later version of dq, wrote and this one cannot read (rule 1).
//! The rest of what it reads is answered.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::RedisStore;
use super::keys::Key;
use crate::environment::{Boottime, Clock};
use crate::job::TopicKey;
use crate::store::{StoreError, WARNING_PAUSE};

/// How much of a row is shown.
const SHOWN: usize = 100;

/// The beginning of a row, for people.
pub(super) fn shown(bytes: &[u8]) -> String {
    let end = if bytes.len() > SHOWN { ".." } else { "" };
    format!("{}{end}", bytes[..bytes.len().min(SHOWN)].escape_ascii())
}

/// The error of a request about one row, which cannot be read.
pub(super) fn unreadable(operation: &'static str, key: Key, name: &[u8]) -> StoreError {
    let text = format!(
        "`{}` has a row that cannot be read: {}; `dq doctor --repair` sets it aside",
        key.suffix(),
        shown(name)
    );
    StoreError::Other { operation, source: text.into() }
}

/// When a query warned last that it left something out.
#[derive(Debug, Default)]
pub(super) struct Skips(Mutex<Option<Duration>>);

impl RedisStore {
    /// A query leaves this row out: the log says so, once a minute.
    pub(super) fn skips(&self, topic: &TopicKey, key: Key, name: &[u8]) {
        let now = Boottime.now();
        let mut last = self.skips.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| now >= last + WARNING_PAUSE) {
            *last = Some(now);
            let (topic, key, row) = (&topic.topic, key.suffix(), shown(name));
            tracing::warn!(%topic, key, row, "a query leaves out what cannot be read; `dq doctor` names it");
        }
    }
}
