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
use crate::store::{OutboxEntry, OutboxPosition};

/// How many such entries a relay passes over. The target of one more waits for the doctor.
const MOST: usize = 1_000;

/// The entries that a relay cannot read.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// By target and place: the position of the entry before it.
    known: BTreeMap<(TopicName, u64), OutboxPosition>,
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
            let unreadable = entry.unfit().filter(|_| self.known.len() < MOST);
            if let Some(error) = unreadable {
                self.found(parts, &entry, error.to_string());
                continue;
            }
            entry.after = self.before(&entry, read.last());
            read.push(entry);
        }
        read
    }

    /// The position that an entry follows. `last` is the last entry that the round has so far.
    fn before(&self, entry: &OutboxEntry, last: Option<&OutboxEntry>) -> OutboxPosition {
        let mut before = entry.after;
        while let Some(further) = self.known.get(&(entry.target.clone(), before.at)) {
            before = *further;
        }
        // The one before cannot be read so far that it names one. The round begins with the first that there is.
        let follows = last.filter(|last| before.at == 0 && last.target == entry.target);
        follows.map_or(before, |last| last.position)
    }

    fn found(&mut self, parts: &Parts, OutboxEntry { target, position, after, .. }: &OutboxEntry, cause: String) {
        let Entry::Vacant(place) = self.known.entry((target.clone(), position.at)) else { return };
        // Another program may name any other entry.
        place.insert(if after.at < position.at { *after } else { OutboxPosition::START });
        let topic = &parts.key.topic;
        tracing::warn!(%topic, %target, position = position.at, cause, "a follow-up cannot be read: it stays in the outbox, and later ones pass it; `dq doctor` names it");
        let job = format!("at position {}", position.at);
        parts.stats.refused_follow_up(RefusedJob::new(target, &job, cause, parts.environment.wall()));
    }

    /// The outbox has something that is no entry, which begins so.
    pub(super) fn skipped(&mut self, parts: &Parts, begins: &str) {
        if self.warned.is_due(parts.environment.now()) {
            tracing::warn!(topic = %parts.key.topic, begins, "the outbox has something that is not a follow-up: it stays there, and follow-ups pass it; `dq doctor` names it");
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::store::Packed;

    fn entry(target: &str, position: u64, after: u64) -> OutboxEntry {
        let batch = Packed::from_bytes(Bytes::new());
        let [position, after] = [position, after].map(OutboxPosition::clock);
        OutboxEntry { target: TopicName::new(target).unwrap(), position, after, batch }
    }

    #[test]
    fn an_entry_follows_the_one_that_can_be_read_before_it() {
        let known = [(3, 2), (4, 3), (7, 0)]
            .map(|(position, after)| ((TopicName::new("a").unwrap(), position), OutboxPosition::clock(after)));
        let unread = Unread { known: known.into(), ..Unread::default() };
        let before = |entry: &OutboxEntry, last: Option<&OutboxEntry>| unread.before(entry, last).at;
        assert_eq!(before(&entry("a", 2, 1), None), 1);
        assert_eq!(before(&entry("a", 5, 4), None), 2);
        assert_eq!(before(&entry("b", 5, 4), None), 4, "of another target");
        // The one before names none: it follows the last one of the round, or is the first that there is.
        assert_eq!(before(&entry("a", 8, 7), None), 0);
        assert_eq!(before(&entry("a", 8, 7), Some(&entry("a", 5, 2))), 5);
        assert_eq!(before(&entry("a", 8, 7), Some(&entry("0", 9, 8))), 0);
    }
}
