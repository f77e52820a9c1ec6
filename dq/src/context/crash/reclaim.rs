//! Reclaim: the jobs of nodes that died go back (rules 19 and 20).
//!
//! A node looks at all leases when the earliest foreign one, which every transfer tells, has run out. It acts on one that it
//! has seen expired and unchanged for one and a half renewal intervals of unbroken connection: after an outage longer
//! than a lease all leases have run out, and the first node back must not take everybody's jobs.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::context::topic::pipeline::RequestKind;
use crate::context::topic::reclaims::Seen;
use crate::context::topic::{Topic, earliest};
use crate::job::NodeId;
use crate::store::step::{MOST_JOBS, Reclaim, Reclaimed, Role, Scanned};
use crate::time::Timestamp;

/// How often the watcher looks at everything, for the audit.
const AUDIT: Duration = Duration::from_secs(60);

impl Topic {
    /// Looks at all leases when one may have run out; the watcher also once a minute.
    pub(in crate::context) fn scan_leases(&mut self, now: Duration) -> Option<Duration> {
        if self.stopping.is_ordered() || !self.reconciliation.is_settled() {
            return None;
        }
        let audit = (self.sleep.role() == Some(Role::Watcher)).then_some(self.reclaims.audit_at);
        let at = earliest([self.reclaims.look_at, audit])?;
        if now < at {
            return Some(at);
        }
        if !self.pipeline.can_send(RequestKind::Scan, now) {
            return self.pipeline.pause_end(RequestKind::Scan, now);
        }
        self.reclaims.look_at = None;
        self.reclaims.audit_at = now + AUDIT;
        self.pipeline.scan();
        None
    }

    pub(in crate::context) fn on_scanned(&mut self, scanned: &Scanned, now: Duration) {
        self.parts.stats.audited(scanned.records, scanned.places);
        let mut seen = BTreeMap::new();
        for (node, end) in scanned.leases.iter().filter(|(node, _)| node != self.pipeline.node()) {
            let look = if *end > scanned.clock {
                now + end.since(scanned.clock) + Duration::from_millis(1)
            } else {
                let before = self.reclaims.seen.get(node).filter(|before| before.end == *end);
                let since = before.map_or(now, |before| before.since);
                seen.insert(node.clone(), Seen { end: *end, since });
                now + self.parts.node.renewal
            };
            self.reclaims.look_at(look);
        }
        self.reclaims.seen = seen;
    }

    /// Takes back the jobs of the next node that is known to be dead.
    pub(in crate::context) fn reclaim(&mut self, now: Duration) -> Option<Duration> {
        if self.stopping.is_ordered() || !self.reconciliation.is_settled() || self.reclaims.seen.is_empty() {
            return None;
        }
        let watch = self.parts.node.renewal * 3 / 2;
        let ready = |seen: &Seen| if seen.end == Timestamp::EPOCH { seen.since } else { seen.since + watch };
        let next = self.reclaims.seen.iter().min_by_key(|(_, seen)| ready(seen))?;
        let (node, seen) = (next.0.clone(), *next.1);
        if now < ready(&seen) {
            return Some(ready(&seen));
        }
        if !self.pipeline.can_send(RequestKind::Reclaim, now) {
            return self.pipeline.pause_end(RequestKind::Reclaim, now);
        }
        let max_crashes = self.parts.topic.max_crashes;
        self.pipeline.reclaim(Reclaim { node, seen: seen.end, limit: MOST_JOBS, max_crashes });
        None
    }

    pub(in crate::context) fn on_reclaimed(&mut self, node: &NodeId, reclaimed: Reclaimed) {
        if reclaimed.moved > 0 {
            tracing::warn!(topic = %self.parts.key, %node, jobs = reclaimed.moved, "took back the jobs of a dead node");
            self.parts.stats.reclaimed(reclaimed.moved);
            self.sleep.wake();
        }
        if reclaimed.left == 0 || reclaimed.moved == 0 {
            self.reclaims.seen.remove(node);
        }
    }
}
