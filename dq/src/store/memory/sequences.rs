//! The turns of nodes: they live a day beyond their last use, and a missing one is another.

use std::collections::BTreeMap;
use std::time::Duration;

use super::now::Now;
use crate::job::{NodeId, Sequence};
use crate::time::Timestamp;

/// How long a turn is kept beyond its last use.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// The last executed turn of every node.
#[derive(Debug, Clone, Default)]
pub(super) struct Sequences {
    known: BTreeMap<NodeId, (Sequence, Timestamp)>,
    swept: Timestamp,
}

impl Sequences {
    pub(super) fn get(&self, node: &NodeId) -> Option<Sequence> {
        self.known.get(node).map(|(sequence, _)| *sequence)
    }

    /// Whether the stored turn is this one; if so it was used.
    pub(super) fn names(&mut self, now: Now, node: &NodeId, last_seen: Sequence) -> bool {
        self.sweep(now);
        match self.known.get_mut(node) {
            Some((sequence, used)) if *sequence == last_seen => {
                *used = now.floor();
                true
            }
            _ => false,
        }
    }

    /// Gives the next one.
    pub(super) fn take(&mut self, now: Now, node: &NodeId, last_seen: Sequence) -> Sequence {
        self.sweep(now);
        let sequence = self.get(node).unwrap_or_default().max(last_seen).next();
        self.known.insert(node.clone(), (sequence, now.floor()));
        sequence
    }

    /// Forgets turns that nobody used for a day; looks once an hour.
    fn sweep(&mut self, now: Now) {
        const EVERY: Duration = Duration::from_secs(3600);
        let now = now.floor();
        if now >= self.swept && now.since(self.swept) < EVERY {
            return;
        }
        self.swept = now;
        self.known.retain(|_, (_, used)| now.since(*used) < KEPT);
    }
}
