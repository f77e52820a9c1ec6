//! The look a watcher takes once a minute: `scan` (PROTOCOL.md rules 20 and 26).

use super::now::Now;
use super::topic::Topic;
use crate::store::step::Scanned;

impl Topic {
    /// All leases, and the records against the sum of all places. O(nodes).
    pub(crate) fn scan(&mut self, now: Now) -> Scanned {
        self.cut_leases(now);
        let leases = self.jobs.holders().iter().map(|(node, holder)| (node.clone(), holder.lease));
        Scanned {
            clock: now.floor(),
            leases: leases.collect(),
            records: self.jobs.len(),
            places: self.jobs.in_places(),
        }
    }
}
