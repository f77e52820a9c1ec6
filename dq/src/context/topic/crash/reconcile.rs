//! Reconcile: what this node holds against the rows the store knows of it (rules 6 and 7).
//!
//! It is the first thing a node asks, and what follows every lost link, every wrong turn and every difference in the
//! number of rows. A row that is not held goes back; a held job without a row is cancelled. Nothing is claimed meanwhile.

use std::time::Duration;

use bytes::Bytes;

use crate::context::topic::pipeline::RequestKind;
use crate::context::topic::reconciliation::Reconciliation;
use crate::context::topic::{HeldJob, Mode, Stage, Topic};
use crate::job::{JobId, Metadata, Record, Token};
use crate::store::step::{Change, MOST_JOBS, Reconcile, Reconciled, Sequenced};

impl Topic {
    /// Asks for the first page when it is needed and no claim is under way.
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

    fn ask_rows(&mut self, after: Option<JobId>) {
        self.pipeline.reconcile(Reconcile { last_seen: self.pipeline.last_seen, after, limit: MOST_JOBS });
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

    /// A row of this node. One that is not held was swallowed by a lost answer: it goes back as it was.
    fn on_row(&mut self, id: &JobId, token: Token) {
        if self.held.under(id, token).is_some() {
            return;
        }
        self.drop_held(id);
        let record = Record::from_bytes(Bytes::new());
        let stage = Stage::settling(Change::Rollback, None);
        self.held.insert(id.clone(), HeldJob::new(token, record, Metadata::default(), 0, Mode::Due, stage));
    }

    /// A held job that the store does not count among this node's: its outcome arrived, or it is another's now.
    fn on_missing_row(&mut self, id: &JobId) {
        if let Some(Stage::Running(_)) = self.held.get(id).map(HeldJob::stage) {
            tracing::warn!(topic = %self.parts.key, job.id = %id, "the job is not this node's any more: its handler is cancelled");
            self.parts.stats.lease_lost();
        }
        self.drop_held(id);
    }
}
