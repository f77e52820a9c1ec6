//! Reconcile: what this node holds against the rows that the store counts for it (rules 6 and 7).
//!
//! It is the first thing a node asks, and it follows every lost link, every wrong sequence number and every difference in the
//! number of rows. A row that is not held goes back; a held job without a row is cancelled. Nothing is claimed meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use crate::context::topic::pipeline::RequestKind;
use crate::context::topic::{HeldJob, Mode, Stage, Topic};
use crate::job::{JobId, Metadata, Record, Token};
use crate::store::step::{Change, Reconcile, Reconciled, RowCursor, Sequenced};

/// Whether this node and the store are known to agree.
#[derive(Debug, Default)]
pub(in crate::context::topic) enum Reconciliation {
    /// They may differ, as at the start.
    #[default]
    Needed,
    /// The node has asked.
    InFlight {
        /// The held jobs that no page has shown so far.
        unseen: BTreeSet<JobId>,
    },
    /// They agree.
    Settled,
}

impl Reconciliation {
    /// The two sides may differ: compare them, from the first page on.
    pub(in crate::context::topic) fn need(&mut self) {
        *self = Self::Needed;
    }

    /// The answer will not come.
    pub(in crate::context::topic) fn interrupted(&mut self) {
        if !self.is_settled() {
            *self = Self::Needed;
        }
    }

    pub(in crate::context::topic) const fn is_settled(&self) -> bool {
        matches!(self, Self::Settled)
    }
}

impl Topic {
    /// Asks for the first page when one is needed and no claim is in flight.
    pub(in crate::context::topic) fn reconcile(&mut self, now: Duration) -> Option<Duration> {
        if !matches!(self.reconciliation, Reconciliation::Needed)
            || self.pipeline.busy(&[RequestKind::Transfer, RequestKind::Sweep])
        {
            return None;
        }
        if !self.pipeline.can_send(RequestKind::Reconcile, now) {
            return self.pipeline.pause_end(RequestKind::Reconcile, now);
        }
        let unseen = self.held.ids(|_| true).into_iter().collect();
        self.reconciliation = Reconciliation::InFlight { unseen };
        self.ask_rows(None);
        None
    }

    fn ask_rows(&mut self, after: Option<RowCursor>) {
        self.pipeline.send(Reconcile { last_seen: self.pipeline.last_seen, after, limit: self.budgets.rows.jobs() });
    }

    pub(in crate::context::topic) fn on_reconciled(&mut self, sequenced: Sequenced<Reconciled>) {
        let page = match sequenced {
            Sequenced::Done(page) => page,
            Sequenced::Reconcile(_) => return self.reconciliation.need(),
        };
        self.pipeline.last_seen = page.lease_status.sequence;
        for (id, token) in &page.rows {
            if let Reconciliation::InFlight { unseen } = &mut self.reconciliation {
                unseen.remove(id);
            }
            self.on_row(id, *token);
        }
        if page.next.is_some() {
            return self.ask_rows(page.next);
        }
        if let Reconciliation::InFlight { unseen } =
            std::mem::replace(&mut self.reconciliation, Reconciliation::Settled)
        {
            for id in unseen {
                self.on_missing_row(&id);
            }
        }
        self.lease.renew_now();
        self.sleep.wake();
        self.parts.stats.reconciled();
    }

    /// The store counts this row for the node. If the job is not held, its claim's answer was lost, and it goes back as it was.
    fn on_row(&mut self, id: &JobId, token: Token) {
        if self.held.under(id, token).is_some() {
            return;
        }
        self.drop_held(id);
        let record = Record::from_bytes(Bytes::new());
        let stage = Stage::settling(Change::Rollback);
        self.held.insert(id.clone(), HeldJob::new(token, record, Metadata::default(), 0, Mode::Due, stage));
    }

    /// The store counts no row for this held job: its outcome has arrived, or another node has the job.
    fn on_missing_row(&mut self, id: &JobId) {
        match self.held.get(id).map(HeldJob::stage) {
            Some(Stage::Running(_)) => {
                tracing::info!(topic = %self.parts.key.topic, job.id = %id, "this node no longer holds the job; its handler is cancelled");
                self.parts.stats.lease_lost();
                self.drop_held(id);
            }
            Some(Stage::Settling { .. }) => self.forget_unknown(id),
            _ => self.drop_held(id),
        }
    }
}
