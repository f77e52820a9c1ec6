//! Lease: until when no other node takes what this node holds, and what keeps every job safe when a node or its connection fails.
//!
//! Transfers and outcomes renew the lease at no cost. A heartbeat (`renew`) does so only while the node holds jobs and had nothing
//! else to send. The node counts the lease on its own clock from the moment it *sent* the renewal, less a margin, so a lease
//! that the node considers valid is valid (rule 21). A node that could not renew cancels the handlers that have not finished. It
//! keeps and sends the outcomes of those that have, because the token judges them (rule 10).
//!
//! * [`reconcile`]: what this node holds against the rows that the store counts for it.
//! * [`reclaim`]: the jobs of dead nodes go back.
//! * [`audit`]: the jobs whose place another program removed go back.
//!
//! The fields are private to this folder, and only it sends `renew`, `reconcile`, `scan`, `reclaim`, `audit` and `recover`.

mod audit;
mod reclaim;
mod reconcile;

use std::sync::Arc;
use std::time::Duration;

use super::flight::Flight;
use super::parts::Parts;
use super::run::LeaseEnd;
use crate::context::topic::moment::Moment;
use crate::job::Sequence;
use crate::store::RequestKind;
use crate::store::step::{LeaseStatus, Renew};
use audit::Audits;
use reclaim::Reclaims;
use reconcile::Reconciliation;

/// The lease as this node counts it, and what it knows of the rows of others and its own.
pub(super) struct Lease {
    parts: Arc<Parts>,
    renewed_at: Duration,
    /// When the last heartbeat was sent.
    asked_at: Duration,
    good_until: Duration,
    end: Arc<LeaseEnd>,
    reconciliation: Reconciliation,
    reclaims: Reclaims,
    audits: Audits,
}

impl Lease {
    pub(super) fn new(parts: Arc<Parts>, end: Arc<LeaseEnd>) -> Self {
        Self {
            parts,
            renewed_at: Duration::ZERO,
            asked_at: Duration::ZERO,
            good_until: Duration::ZERO,
            end,
            reconciliation: Reconciliation::default(),
            reclaims: Reclaims::default(),
            audits: Audits::default(),
        }
    }

    /// A request that was sent at `sent` has renewed the lease.
    fn renewed(&mut self, sent: Duration) {
        let length = self.parts.node.lease;
        self.renewed_at = self.renewed_at.max(sent);
        self.good_until = self.good_until.max(sent + length - length / 15);
        self.end.set(self.good_until);
    }

    /// A claim that was sent at `sent` has renewed the lease if the node has rows.
    pub(super) fn on_claimed(&mut self, status: LeaseStatus, sent: Duration, held: usize, flight: &Flight) {
        if status.rows > 0 {
            self.renewed(sent);
        }
        self.compare(status, held, flight);
    }

    /// An answer counts as a renewal if the node has rows and the answer's sequence number is the one its request named.
    pub(super) fn renewed_if(&mut self, status: LeaseStatus, sent: Duration, named: Sequence) {
        if status.rows > 0 && status.sequence == named {
            self.renewed(sent);
        }
    }

    /// Whether the lease is provably valid.
    pub(super) fn is_good(&self, now: Duration) -> bool {
        now < self.good_until
    }

    /// Until when the lease is provably valid.
    pub(super) const fn good_until(&self) -> Duration {
        self.good_until
    }

    /// A heartbeat may overtake other requests, and its answer other answers. Then its number of rows says nothing, and its
    /// sequence number may be that of the claim in flight: the node goes on renewing under that one while it waits for the
    /// claim's answer, which may be large (rule 6).
    pub(super) fn on_overtaking_renewal(&mut self, status: LeaseStatus, named: Sequence, moment: &mut Moment) {
        if status.sequence == named || status.sequence == moment.flight.last_seen() {
            return;
        }
        if moment.flight.reported(status.sequence) {
            self.renew_now();
        } else if self.agrees() {
            self.reconciliation.need();
        }
    }

    /// Every answer carries the node's sequence number and its number of rows. An unexpected one starts a reconcile.
    pub(super) fn compare(&mut self, status: LeaseStatus, held: usize, flight: &Flight) {
        if self.agrees() && (status.rows != held || status.sequence != flight.last_seen()) {
            tracing::debug!(topic = %self.parts.key.topic, rows = status.rows, held, "the jobs that the store counts for this node differ from those it holds; reconciling");
            self.reconciliation.need();
        }
    }

    /// Makes a heartbeat due at once.
    const fn renew_now(&mut self) {
        self.renewed_at = Duration::ZERO;
        self.asked_at = Duration::ZERO;
    }

    /// Sends a heartbeat when nothing else has renewed the lease for the `renewal` period. A node that holds nothing sends one
    /// while the answer to a claim takes that long: the store may count rows for it.
    pub(super) fn renew(&mut self, holds_nothing: bool, moment: &mut Moment) -> Option<Duration> {
        let claiming_since = moment.flight.claiming_since();
        if !self.agrees() || (holds_nothing && claiming_since.is_none()) {
            return None;
        }
        let renewal = self.parts.node.renewal;
        let idle_since = if holds_nothing { claiming_since.unwrap_or_default() } else { Duration::ZERO };
        let due = (self.renewed_at.max(idle_since) + renewal).max(self.asked_at + renewal / 5);
        if moment.now < due {
            return Some(due);
        }
        if !moment.can_send(RequestKind::Renew) {
            return moment.pause_end(RequestKind::Renew);
        }
        self.asked_at = moment.now;
        moment.send(Renew { last_seen: moment.flight.renewable(), lease: self.parts.node.lease });
        None
    }

    /// The link is lost: the two sides may differ, and what this node has seen of other leases does not count.
    pub(super) fn lost_link(&mut self) {
        self.reconciliation.need();
        self.reclaims.forget();
    }

    /// Requests (of one kind, or all) will not be answered, so they are sent again.
    pub(super) fn send_again(&mut self, kind: Option<RequestKind>) {
        if kind.is_none_or(|kind| kind == RequestKind::Reconcile) && !self.agrees() {
            self.reconciliation.need();
        }
        if kind.is_none_or(|kind| kind == RequestKind::Scan) {
            self.scan_at(Duration::ZERO);
        }
    }

    /// Whether there is still a reason for a request of this kind, which the store refused.
    pub(super) fn asks(&self, refused: RequestKind) -> bool {
        match refused {
            RequestKind::Reclaim => self.reclaims.knows_expired(),
            RequestKind::Audit | RequestKind::Recover => self.audits.asks(refused),
            _ => true,
        }
    }
}
