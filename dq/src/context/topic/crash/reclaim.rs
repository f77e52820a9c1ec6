//! Reclaim: the jobs of nodes that died go back (rules 19 and 20).
//!
//! Every transfer returns the end of the earliest lease of another node. Once that has passed, the node scans all leases. It
//! reclaims from a node whose lease it has seen expired and unchanged for the time of its [`watch`], over an unbroken
//! connection: after an outage longer than a lease all leases have expired, and the first node back must not take the jobs
//! of all others.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::config::NodeSettings;
use crate::context::topic::pipeline::{RequestKind, longest_pause};
use crate::context::topic::{Topic, earliest};
use crate::job::NodeId;
use crate::store::step::{Reclaim, Reclaimed, Role, Scan, Scanned, is_free_lease};
use crate::time::Timestamp;

/// How often the watcher scans, for the audit.
const AUDIT_PERIOD: Duration = Duration::from_secs(60);

/// How long a node watches an expired lease before it takes the jobs under it: longer than any node needs to be back after an
/// outage. Such a node may have sent a request just before the end, gives it up after the call timeout, and then pauses.
fn watch(settings: &NodeSettings) -> Duration {
    let back_within = settings.call_timeout * 5 / 4 + longest_pause(settings.renewal);
    back_within.max(settings.renewal * 3 / 2)
}

/// An expired lease.
#[derive(Debug, Clone, Copy)]
struct Expired {
    end: Timestamp,
    /// Since when this node has seen it unchanged.
    since: Duration,
}

/// What this node knows of the leases of others, and when it scans next.
#[derive(Debug, Default)]
pub(in crate::context::topic) struct Reclaims {
    scan_at: Option<Duration>,
    audit_at: Duration,
    expired: BTreeMap<NodeId, Expired>,
}

impl Reclaims {
    /// Makes a scan due then, or earlier.
    pub(in crate::context::topic) fn scan_at(&mut self, at: Duration) {
        self.scan_at = earliest([self.scan_at, Some(at)]);
    }

    /// The connection was broken, so what this node has seen does not count.
    pub(in crate::context::topic) fn forget(&mut self) {
        self.expired.clear();
        self.scan_at = Some(Duration::ZERO);
    }
}

impl Topic {
    /// Scans all leases when one may have expired; the watcher also does so once a minute.
    pub(in crate::context::topic) fn scan_leases(&mut self, now: Duration) -> Option<Duration> {
        if self.stopping.is_ordered() || !self.reconciliation.is_settled() {
            return None;
        }
        let audit = (self.sleep.role() == Some(Role::Watcher)).then_some(self.reclaims.audit_at);
        let at = earliest([self.reclaims.scan_at, audit])?;
        if now < at {
            return Some(at);
        }
        if !self.pipeline.can_send(RequestKind::Scan, now) {
            return self.pipeline.pause_end(RequestKind::Scan, now);
        }
        self.reclaims.scan_at = None;
        self.reclaims.audit_at = now + AUDIT_PERIOD;
        self.pipeline.send(Scan);
        None
    }

    pub(in crate::context::topic) fn on_scanned(&mut self, scanned: &Scanned, now: Duration) {
        self.parts.stats.audited(scanned.records, scanned.places);
        if self.sleep.role() == Some(Role::Watcher) {
            self.on_counted(scanned.records, scanned.places, now);
        }
        let mut expired = BTreeMap::new();
        for (node, end) in scanned.leases.iter().filter(|(node, _)| node != self.pipeline.node()) {
            let scan = if *end > scanned.clock {
                now + end.since(scanned.clock) + Duration::from_millis(1)
            } else {
                let before = self.reclaims.expired.get(node).filter(|before| before.end == *end);
                let since = before.map_or(now, |before| before.since);
                expired.insert(node.clone(), Expired { end: *end, since });
                now + self.parts.node.renewal
            };
            self.reclaims.scan_at(scan);
        }
        self.reclaims.expired = expired;
    }

    /// Reclaims the jobs of the next node that is known to be dead. One that released its lease, or whose process has certainly ended, needs no watching.
    pub(in crate::context::topic) fn reclaim(&mut self, now: Duration) -> Option<Duration> {
        if self.stopping.is_ordered() || !self.reconciliation.is_settled() || self.reclaims.expired.is_empty() {
            return None;
        }
        let watch = watch(&self.parts.node);
        let ready = |lease: &Expired| {
            if is_free_lease(lease.end) { lease.since } else { lease.since + watch }
        };
        let next = self.reclaims.expired.iter().min_by_key(|(_, lease)| ready(lease))?;
        let (node, lease) = (next.0.clone(), *next.1);
        if now < ready(&lease) {
            return Some(ready(&lease));
        }
        if !self.pipeline.can_send(RequestKind::Reclaim, now) {
            return self.pipeline.pause_end(RequestKind::Reclaim, now);
        }
        let max_crashes = self.parts.topic.max_crashes;
        let (limit, bytes) = (self.budgets.outcomes.jobs(), self.budgets.outcomes.bytes());
        self.pipeline.send(Reclaim { node, seen: lease.end, limit, bytes, max_crashes });
        None
    }

    pub(in crate::context::topic) fn on_reclaimed(&mut self, node: &NodeId, reclaimed: Reclaimed) {
        if reclaimed.moved > 0 {
            tracing::warn!(topic = %self.parts.key, %node, jobs = reclaimed.moved, "reclaimed the jobs of a dead node");
            self.parts.stats.reclaimed(reclaimed.moved);
            self.sleep.wake();
        }
        if reclaimed.left == 0 || reclaimed.moved == 0 {
            self.reclaims.expired.remove(node);
        }
    }
}
