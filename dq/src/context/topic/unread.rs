//! What a relay meets in the outbox of its topic and cannot read: another program wrote it, or a later version of dq (rules 1, 18).
//!
//! It stays in the outbox, so a version that can read it relays it, or the doctor sets it aside. It holds up nothing: an entry after one
//! names the one before that.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Parts;
use crate::context::condition::Warned;
use crate::job::TopicName;
use crate::provider::RefusedJob;
use crate::store::OutboxEntry;

/// How many such entries a relay passes over. The target of one more waits for the doctor.
const MOST: usize = 1_000;

/// The entries that a relay cannot read.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// By target and position: the position of the entry before it.
    known: BTreeMap<(TopicName, u64), u64>,
    warned: Warned,
}

impl Unread {
    /// What the store need not give again.
    pub(super) fn names(&self) -> Vec<(TopicName, u64)> {
        self.known.keys().cloned().collect()
    }

    /// Takes out what cannot be read.
    pub(super) fn pass_over(&mut self, parts: &Parts, entries: Vec<OutboxEntry>) -> Vec<OutboxEntry> {
        let mut read = Vec::with_capacity(entries.len());
        for mut entry in entries {
            let unreadable = entry.batch().err().filter(|_| self.known.len() < MOST);
            if let Some(error) = unreadable {
                self.found(parts, &entry, error.to_string());
                continue;
            }
            while let Some(before) = self.known.get(&(entry.target.clone(), entry.after)) {
                entry.after = *before;
            }
            read.push(entry);
        }
        read
    }

    fn found(&mut self, parts: &Parts, OutboxEntry { target, position, after, .. }: &OutboxEntry, cause: String) {
        let Entry::Vacant(place) = self.known.entry((target.clone(), *position)) else { return };
        // Another program may name any other entry.
        place.insert(if after < position { *after } else { 0 });
        let topic = &parts.key.topic;
        tracing::warn!(%topic, %target, position, cause, "a follow-up cannot be read: it stays in the outbox, and later ones pass it; `dq doctor` names it");
        let job = format!("at position {position}");
        parts.stats.refused_follow_up(RefusedJob::new(target, &job, cause, parts.environment.wall()));
    }

    /// The outbox has something that is no entry, which begins so.
    pub(super) fn skipped(&mut self, parts: &Parts, begins: &str) {
        if self.warned.is_due(parts.environment.now()) {
            tracing::warn!(topic = %parts.key.topic, begins, "the outbox has something that is no follow-up: it stays there, and follow-ups pass it; `dq doctor` names it");
        }
    }
}
