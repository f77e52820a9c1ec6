//! The lease: until when no other node takes what this node holds.
//!
//! Transfers and outcomes renew it at no cost. A heartbeat (`renew`) does so only while the node holds jobs and had nothing
//! else to send. The node counts the lease on its own clock from the moment it *sent* the renewal, less a margin, so a lease
//! that the node considers valid is valid (rule 21). A node that could not renew cancels the handlers that have not finished. It
//! keeps and sends the outcomes of those that have, because the token judges them (rule 11).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::Duration;

use crate::context::topic::pipeline::RequestKind;
use crate::context::topic::{Stage, Topic};
use crate::job::Sequence;
use crate::store::step::{LeaseStatus, Renew};

/// The lease as this node counts it.
#[derive(Debug)]
pub(in crate::context::topic) struct Lease {
    length: Duration,
    renewed_at: Duration,
    /// When the last heartbeat was sent.
    asked_at: Duration,
    good_until: Duration,
    end: Arc<LeaseEnd>,
}

/// When the lease ends, for the tasks of runs: a handler starts at the first poll of its task, long after the topic handed it
/// over if the process was paused meanwhile.
#[derive(Debug, Default)]
pub(in crate::context::topic) struct LeaseEnd(AtomicU64);

impl LeaseEnd {
    /// Whether the lease is provably valid.
    pub(in crate::context::topic) fn is_good(&self, now: Duration) -> bool {
        now < Duration::from_nanos(self.0.load(Acquire))
    }

    fn set(&self, end: Duration) {
        self.0.store(u64::try_from(end.as_nanos()).unwrap_or(u64::MAX), Release);
    }
}

impl Lease {
    pub(in crate::context::topic) fn new(length: Duration) -> Self {
        let (renewed_at, asked_at, good_until) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Self { length, renewed_at, asked_at, good_until, end: Arc::default() }
    }

    /// A request that was sent at `sent` has renewed the lease.
    pub(in crate::context::topic) fn renewed(&mut self, sent: Duration) {
        let margin = self.length / 15;
        self.renewed_at = self.renewed_at.max(sent);
        self.good_until = self.good_until.max(sent + self.length - margin);
        self.end.set(self.good_until);
    }

    /// When the lease ends, as the tasks of runs see it.
    pub(in crate::context::topic) fn end(&self) -> Arc<LeaseEnd> {
        Arc::clone(&self.end)
    }

    /// An answer counts as a renewal if the node has rows and the answer's sequence number is the one its request named.
    pub(in crate::context::topic) fn renewed_if(&mut self, lease_status: LeaseStatus, sent: Duration, named: Sequence) {
        if lease_status.rows > 0 && lease_status.sequence == named {
            self.renewed(sent);
        }
    }

    /// Whether the lease is provably valid.
    pub(in crate::context::topic) fn is_good(&self, now: Duration) -> bool {
        now < self.good_until
    }

    /// Makes a heartbeat due at once.
    pub(super) const fn renew_now(&mut self) {
        self.renewed_at = Duration::ZERO;
        self.asked_at = Duration::ZERO;
    }
}

impl Topic {
    /// Every answer carries the node's sequence number and its number of rows. An unexpected one starts a reconcile.
    pub(in crate::context::topic) fn on_lease_status(
        &mut self,
        lease_status: LeaseStatus,
        sent: Duration,
        named: Sequence,
    ) {
        self.lease.renewed_if(lease_status, sent, named);
        self.compare_rows(lease_status);
    }

    /// A heartbeat may overtake other requests, and its answer other answers. Then its number of rows says nothing, and its
    /// sequence number may be that of the claim in flight: the node goes on renewing under that one while it waits for the
    /// claim's answer, which may be large (rule 6).
    pub(in crate::context::topic) fn on_renewed(
        &mut self,
        lease_status: LeaseStatus,
        sent: Duration,
        named: Sequence,
        is_in_order: bool,
    ) {
        if is_in_order {
            return self.on_lease_status(lease_status, sent, named);
        }
        self.lease.renewed_if(lease_status, sent, named);
        if lease_status.sequence == named || lease_status.sequence == self.pipeline.last_seen {
            return;
        }
        if self.pipeline.reported(lease_status.sequence) {
            self.lease.renew_now();
        } else if self.reconciliation.is_settled() {
            self.reconciliation.need();
        }
    }

    pub(in crate::context::topic) fn compare_rows(&mut self, lease_status: LeaseStatus) {
        let differs = lease_status.rows != self.held.len() || lease_status.sequence != self.pipeline.last_seen;
        if self.reconciliation.is_settled() && differs {
            tracing::debug!(topic = %self.parts.key.topic, rows = lease_status.rows, held = self.held.len(), "the jobs that the store counts for this node differ from those it holds; reconciling");
            self.reconciliation.need();
        }
    }

    /// Sends a heartbeat when nothing else has renewed the lease for the `renewal` period. A node that holds nothing sends one
    /// while the answer to a claim takes that long: the store may count rows for it.
    pub(in crate::context::topic) fn renew(&mut self, now: Duration) -> Option<Duration> {
        let claiming_since = self.pipeline.claiming_since();
        if !self.reconciliation.is_settled() || (self.held.is_empty() && claiming_since.is_none()) {
            return None;
        }
        let renewal = self.parts.node.renewal;
        let idle_since = if self.held.is_empty() { claiming_since.unwrap_or_default() } else { Duration::ZERO };
        let due = (self.lease.renewed_at.max(idle_since) + renewal).max(self.lease.asked_at + renewal / 5);
        if now < due {
            return Some(due);
        }
        if !self.pipeline.can_send(RequestKind::Renew, now) {
            return self.pipeline.pause_end(RequestKind::Renew, now);
        }
        self.lease.asked_at = now;
        self.pipeline.send(Renew { last_seen: self.pipeline.renewable(), lease: self.parts.node.lease });
        None
    }

    /// Cancels the handlers of a node that could not renew: other nodes may run their jobs by now.
    pub(in crate::context::topic) fn expire_lease(&mut self, now: Duration) -> Option<Duration> {
        if self.runs.running() == 0 {
            return None;
        }
        if self.lease.is_good(now) {
            return Some(self.lease.good_until);
        }
        self.settings_decide_all();
        self.take_back();
        for id in self.held.ids(|stage| matches!(stage, Stage::Running(_))) {
            tracing::info!(topic = %self.parts.key.topic, job.id = %id, "the lease could not be renewed in time; the handler is cancelled, and the job runs again");
            self.parts.stats.lease_lost();
            self.give_up_run(&id);
            self.roll_back(&id);
        }
        None
    }
}
