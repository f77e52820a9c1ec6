//! The lease: until when nobody takes what this node holds.
//!
//! Transfers and outcomes renew it at no cost; a heartbeat (`renew`) only while the node holds jobs and had nothing else to
//! say. The node counts it on its own clock from the moment the renewal was *sent*, less a margin, so what it thinks good
//! is good (rule 21). A node that could not renew cancels the handlers that have not finished; outcomes of those that have
//! are kept and sent, because the token judges (rule 11).

use std::time::Duration;

use crate::context::topic::pipeline::RequestKind;
use crate::context::topic::{Stage, Topic};
use crate::job::{JobId, Sequence, Token};
use crate::store::step::{Change, LeaseStatus, Note, Noted, Renew};

impl Topic {
    /// Every answer says how many rows the store knows of this node, and its turn. A difference starts a reconcile; only an
    /// answer whose turn is the one its request named counts as a renewal.
    pub(in crate::context) fn on_lease_status(&mut self, lease_status: LeaseStatus, sent: Duration, named: Sequence) {
        self.lease.renewed_if(lease_status, sent, named);
        self.compare_rows(lease_status);
    }

    pub(in crate::context) fn compare_rows(&mut self, lease_status: LeaseStatus) {
        let differs = lease_status.rows != self.held.len() || lease_status.sequence != self.pipeline.last_seen;
        if self.reconciliation.is_settled() && differs {
            tracing::debug!(topic = %self.parts.key, rows = lease_status.rows, held = self.held.len(), "the store knows other rows: reconciling");
            self.reconciliation.need();
        }
    }

    /// Sends a heartbeat when nothing else renewed the lease for a while.
    pub(in crate::context) fn renew(&mut self, now: Duration) -> Option<Duration> {
        if self.held.is_empty() || !self.reconciliation.is_settled() {
            return None;
        }
        let due = self.lease.renewed_at + self.parts.node.renewal;
        if now < due {
            return Some(due);
        }
        if !self.pipeline.can_send(RequestKind::Renew, now) {
            return self.pipeline.pause_end(RequestKind::Renew, now);
        }
        self.pipeline.renew(Renew { last_seen: self.pipeline.last_seen, lease: self.parts.node.lease });
        None
    }

    /// Cancels the handlers of a node that could not renew: their jobs may be another's by now.
    pub(in crate::context) fn expire_lease(&mut self, now: Duration) -> Option<Duration> {
        if self.runs.running() == 0 {
            return None;
        }
        if self.lease.is_good(now) {
            return Some(self.lease.good_until);
        }
        for id in self.held.ids(|stage| matches!(stage, Stage::Running(_))) {
            tracing::warn!(topic = %self.parts.key, job.id = %id, "the lease could not be renewed: the handler is cancelled");
            self.parts.stats.lease_lost();
            self.give_up_run(&id);
            self.held.set(&id, Stage::settling(Change::Rollback, None));
        }
        None
    }

    pub(in crate::context) fn on_isolated(
        &mut self,
        id: &JobId,
        token: Token,
        noted: Noted,
        sent: Duration,
        named: Sequence,
        now: Duration,
    ) {
        self.lease.renewed_if(noted.lease_status, sent, named);
        if self.held.under(id, token).is_some_and(|job| *job.stage() == Stage::Beginning) {
            match noted.note {
                Note::Stale => self.held.remove(id).map_or((), drop),
                Note::Ended => self.held.set(id, Stage::settling(Change::Rollback, None)),
                Note::Done if self.stopping.is_ordered() => {
                    self.held.set(id, Stage::settling(Change::Rollback, None));
                }
                Note::Done if self.lease.is_good(now) => self.start_held(id, now, true),
                Note::Done => self.held.set(id, Stage::Waiting),
            }
        }
        self.compare_rows(noted.lease_status);
    }
}
