//! The sequence numbers of nodes. The store keeps one for a day after its last use; a missing one never matches (rule 6).

use std::collections::BTreeMap;
use std::time::Duration;

use super::now::Now;
use crate::job::{NodeId, Sequence};
use crate::time::Timestamp;

/// How long the store keeps a sequence number after its last use.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);

/// The newest sequence number of every node.
#[derive(Debug, Clone, Default)]
pub(super) struct Sequences {
    known: BTreeMap<NodeId, (Sequence, Timestamp)>,
    swept: Timestamp,
}

impl Sequences {
    pub(super) fn get(&self, node: &NodeId) -> Option<Sequence> {
        self.known.get(node).map(|(sequence, _)| *sequence)
    }

    /// Whether the stored number is `last_seen`; a match counts as a use.
    pub(super) fn is_current(&mut self, now: Now, node: &NodeId, last_seen: Sequence) -> bool {
        self.sweep(now);
        match self.known.get_mut(node) {
            Some((sequence, used)) if *sequence == last_seen => {
                *used = now.floor();
                true
            }
            _ => false,
        }
    }

    /// Takes and returns the next number: beyond both the stored one and `last_seen`.
    pub(super) fn take(&mut self, now: Now, node: &NodeId, last_seen: Sequence) -> Sequence {
        self.sweep(now);
        let sequence = self.get(node).unwrap_or_default().max(last_seen).next();
        self.known.insert(node.clone(), (sequence, now.floor()));
        sequence
    }

    /// Forgets numbers that were not used for a day; checks at most once an hour.
    fn sweep(&mut self, now: Now) {
        const EVERY: Duration = Duration::from_secs(3600);
        let now = now.floor();
        if now >= self.swept && now.since(self.swept) < EVERY {
            return;
        }
        self.swept = now;
        self.known.retain(|_, (_, used)| now.since(*used) < KEPT_FOR);
    }
}
