//! Lease: until when no other node takes what this node holds, and what keeps every job safe when a node or its connection fails.
//!
//! Transfers and outcomes renew the lease at no cost. A heartbeat (`renew`) does so only while the node holds jobs and had nothing
//! else to send. The node counts the lease on its own clock from the moment it *sent* the renewal, less a margin, so a lease
//! that the node considers valid is valid (rule 21). A node that could not renew cancels the handlers that have not finished. It
//! keeps and sends the outcomes of those that have, because the token judges them (rule 10).
//!
//! *Reconcile* compares what this node holds with the rows that the store counts for it (rules 6 and 7). It is the first thing a node
//! asks, and it follows every lost link, every wrong sequence number and every difference in the number of rows. A row that is not held
//! goes back; a held job without a row is cancelled. Nothing is claimed meanwhile.
//!
//! * [`reclaim`]: the jobs of dead nodes go back.
//! * [`audit`]: the jobs whose place another program removed go back.
//!
//! The fields are private to this folder, and only it sends `renew`, `reconcile`, `scan`, `reclaim`, `audit` and `recover`.

mod audit;
mod reclaim;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Parts;
use super::flight::CLAIMS;
use super::held::Held;
use super::moment::{Effect, Moment};
use super::run::LeaseEnd;
use super::slab::HeldId;
use crate::job::Sequence;
use crate::store::RequestKind;
use crate::store::step::{LeaseStatus, Reconcile, Reconciled, Renew, RowCursor, Sequenced};
use crate::time::micros;
use audit::Audits;
use reclaim::Reclaims;
pub(crate) use reclaim::takeover;

/// Whether this node and the store are known to agree.
#[derive(Debug, Default)]
pub(super) enum Reconciliation {
    /// They may differ, as at the start.
    #[default]
    Needed,
    /// The node has asked.
    InFlight {
        /// The held jobs that no page has shown so far.
        unseen: BTreeSet<HeldId>,
    },
    /// They agree.
    Settled,
}

/// The lease as this node counts it, and what it knows of the rows of others and its own.
pub(super) struct Lease {
    parts: Arc<Parts>,
    renewed_at: Duration,
    /// When the last heartbeat was sent.
    asked_at: Duration,
    end: Arc<LeaseEnd>,
    reconciliation: Reconciliation,
    reclaims: Reclaims,
    audits: Audits,
    /// Since when the store has kept the topic, as it has said.
    born: Option<u64>,
}

impl Lease {
    pub(super) fn new(parts: Arc<Parts>, end: Arc<LeaseEnd>) -> Self {
        Self {
            parts,
            renewed_at: Duration::ZERO,
            asked_at: Duration::ZERO,
            end,
            reconciliation: Reconciliation::default(),
            reclaims: Reclaims::default(),
            audits: Audits::default(),
            born: None,
        }
    }

    /// A request that was sent at `sent` has renewed the lease.
    fn renewed(&mut self, sent: Duration) {
        let length = self.parts.node.lease;
        self.renewed_at = self.renewed_at.max(sent);
        self.end.extend(sent + length - length / 15);
        tracing::trace!(
            topic = %self.parts.key.topic,
            good_for_us = micros(self.good_until().saturating_sub(self.parts.environment.now())),
            "the lease was renewed"
        );
    }

    /// An answer counts as a renewal if its sequence number is the one its request named, and the node has as many rows as it holds jobs:
    /// after the end of a lease others may have taken some of them, and a lease is one of those that are left.
    pub(super) fn renewed_if(&mut self, status: LeaseStatus, sent: Duration, named: Sequence, held: &Held) {
        if status.rows > 0 && status.rows == held.counts().all && status.sequence == named {
            self.renewed(sent);
        }
    }

    /// Whether the lease is provably valid.
    pub(super) fn is_good(&self, now: Duration) -> bool {
        now < self.good_until()
    }

    /// Until when the lease is provably valid.
    pub(super) fn good_until(&self) -> Duration {
        self.end.get()
    }

    /// A heartbeat may overtake other requests, and its answer other answers. Then its number of rows says nothing, and its
    /// sequence number may be that of the claim in flight: the node goes on renewing under that one while it waits for the
    /// claim's answer, which may be large (rule 6). After the end of a lease it renews none of jobs that the node held before.
    pub(super) fn on_overtaking_renewal(
        &mut self,
        status: LeaseStatus,
        sent: Duration,
        named: Sequence,
        moment: &mut Moment,
    ) {
        let lost_none = sent < self.good_until() || moment.held.counts().all == 0;
        if status.rows > 0 && status.sequence == named && lost_none {
            self.renewed(sent);
        }
        if status.sequence == named || status.sequence == moment.flight.last_seen() {
            return;
        }
        if moment.flight.reported(status.sequence) {
            self.renew_now();
        } else if self.agrees() {
            self.need_reconcile();
        }
    }

    /// Every answer carries the node's sequence number and its number of rows. An unexpected one starts a reconcile.
    pub(super) fn compare(&mut self, status: LeaseStatus, moment: &Moment) {
        let (rows, held) = (status.rows, moment.held.counts().all);
        if self.agrees() && (rows != held || status.sequence != moment.flight.last_seen()) {
            tracing::debug!(topic = %self.parts.key.topic, rows, held, "the jobs that the store counts for this node differ from those it holds; reconciling");
            self.need_reconcile();
        }
    }

    /// Makes a heartbeat due at once.
    const fn renew_now(&mut self) {
        self.renewed_at = Duration::ZERO;
        self.asked_at = Duration::ZERO;
    }

    /// Sends a heartbeat when nothing else has renewed the lease for the `heartbeat_interval` period. A node that holds nothing sends one
    /// while the answer to a claim takes that long: the store may count rows for it.
    pub(super) fn renew(&mut self, moment: &mut Moment) -> Option<Duration> {
        let holds_nothing = moment.held.counts().all == 0;
        let claiming_since = moment.flight.claiming_since();
        if !self.agrees() || (holds_nothing && claiming_since.is_none()) {
            return None;
        }
        let renewal = self.parts.node.heartbeat_interval;
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
        self.need_reconcile();
        self.reclaims.forget();
    }

    /// Requests (of one kind, or all) will not be answered, so they are sent again.
    pub(super) fn send_again(&mut self, kind: Option<RequestKind>) {
        if kind.is_none_or(|kind| kind == RequestKind::Reconcile) && !self.agrees() {
            self.need_reconcile();
        }
        if kind.is_none_or(|kind| kind == RequestKind::Scan) {
            self.scan_at(Duration::ZERO);
        }
    }

    /// Whether there is still a reason for a request of this kind, which the store refused.
    pub(super) fn asks(&self, refused: RequestKind) -> bool {
        match refused {
            RequestKind::Reclaim => self.reclaims.knows_expired(),
            RequestKind::Audit | RequestKind::Recover => self.audits.next() == Some(refused),
            _ => true,
        }
    }

    /// Whether the node and the store are known to agree on what the node holds.
    pub(super) const fn agrees(&self) -> bool {
        matches!(self.reconciliation, Reconciliation::Settled)
    }

    /// The two sides may differ: compare them, from the first page on.
    pub(super) fn need_reconcile(&mut self) {
        self.reconciliation = Reconciliation::Needed;
    }

    /// Asks for the first page when one is needed and no claim is in flight.
    pub(super) fn reconcile(&mut self, moment: &mut Moment) -> Option<Duration> {
        if !matches!(self.reconciliation, Reconciliation::Needed) || moment.flight.busy(&CLAIMS) {
            return None;
        }
        if !moment.can_send(RequestKind::Reconcile) {
            return moment.pause_end(RequestKind::Reconcile);
        }
        let unseen = moment.held.ids(|_| true).into_iter().collect();
        self.reconciliation = Reconciliation::InFlight { unseen };
        Self::ask_rows(None, moment);
        None
    }

    fn ask_rows(after: Option<RowCursor>, moment: &mut Moment) {
        let (last_seen, limit) = (moment.flight.last_seen(), moment.flight.limits(RequestKind::Reconcile).0);
        moment.send(Reconcile { last_seen, after, limit });
    }

    /// A row that is not held goes back: the answer to its claim was lost. A held job without a row is no longer this node's.
    pub(super) fn on_reconciled(&mut self, sequenced: Sequenced<Reconciled>, moment: &mut Moment) {
        let Sequenced::Done(page) = sequenced else { return self.need_reconcile() };
        moment.flight.saw(page.lease_status.sequence);
        if self.born.replace(page.born).is_some_and(|born| born != page.born) {
            moment.push(Effect::Forgotten);
        }
        for (id, token) in page.rows {
            if let (Reconciliation::InFlight { unseen }, Some(held)) = (&mut self.reconciliation, moment.held.find(&id))
            {
                unseen.remove(&held);
            }
            if moment.held.under(&id, token).is_none() {
                moment.push(Effect::Unheld(id, token));
            }
        }
        if page.next.is_some() {
            return Self::ask_rows(page.next, moment);
        }
        if let Reconciliation::InFlight { unseen } =
            std::mem::replace(&mut self.reconciliation, Reconciliation::Settled)
        {
            moment.effects.extend(unseen.into_iter().map(Effect::Missing));
        }
        self.renew_now();
        moment.push(Effect::Wake);
        self.parts.stats.count.reconciled.add(1);
    }
}
