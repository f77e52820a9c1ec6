//! What this node has seen of the leases of others, and when it looks at them next.

use std::collections::BTreeMap;
use std::time::Duration;

use super::deadlines::earliest;
use crate::job::NodeId;
use crate::time::Timestamp;

/// An expired lease, and since when it has been seen like this.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) end: Timestamp,
    pub(super) since: Duration,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Reclaims {
    pub(super) look_at: Option<Duration>,
    pub(super) audit_at: Duration,
    pub(super) seen: BTreeMap<NodeId, Seen>,
}

impl Reclaims {
    /// Looks at the leases then, or earlier.
    pub(super) fn look_at(&mut self, at: Duration) {
        self.look_at = earliest([self.look_at, Some(at)]);
    }

    /// The connection was broken: what was seen does not count.
    pub(super) fn forget(&mut self) {
        self.seen.clear();
        self.look_at = Some(Duration::ZERO);
    }
}
