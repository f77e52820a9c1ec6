//! Reconcile: what this node holds against the rows that the store counts for it (rules 6 and 7).
//!
//! It is the first thing a node asks, and it follows every lost link, every wrong sequence number and every difference in the
//! number of rows. A row that is not held goes back; a held job without a row is cancelled. Nothing is claimed meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Lease;
use crate::context::topic::flight::CLAIMS;
use crate::context::topic::held::Held;
use crate::context::topic::moment::{Effect, Moment};
use crate::job::JobId;
use crate::store::RequestKind;
use crate::store::step::{Reconcile, Reconciled, RowCursor, Sequenced};

/// Whether this node and the store are known to agree.
#[derive(Debug, Default)]
pub(super) enum Reconciliation {
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
    pub(super) fn need(&mut self) {
        *self = Self::Needed;
    }
}

impl Lease {
    /// Whether the node and the store are known to agree on what the node holds.
    pub(crate) const fn agrees(&self) -> bool {
        matches!(self.reconciliation, Reconciliation::Settled)
    }

    /// The two sides may differ.
    pub(crate) fn need_reconcile(&mut self) {
        self.reconciliation.need();
    }

    /// Asks for the first page when one is needed and no claim is in flight.
    pub(crate) fn reconcile(&mut self, jobs: &Held, moment: &mut Moment) -> Option<Duration> {
        if !matches!(self.reconciliation, Reconciliation::Needed) || moment.flight.busy(&CLAIMS) {
            return None;
        }
        if !moment.can_send(RequestKind::Reconcile) {
            return moment.pause_end(RequestKind::Reconcile);
        }
        let unseen = jobs.ids(|_| true).into_iter().collect();
        self.reconciliation = Reconciliation::InFlight { unseen };
        self.ask_rows(None, moment);
        None
    }

    fn ask_rows(&self, after: Option<RowCursor>, moment: &mut Moment) {
        moment.send(Reconcile {
            last_seen: moment.flight.last_seen(),
            after,
            limit: moment.flight.limits(RequestKind::Reconcile).0,
        });
    }

    /// A row that is not held goes back: the answer to its claim was lost. A held job without a row is no longer this node's.
    pub(crate) fn on_reconciled(&mut self, sequenced: Sequenced<Reconciled>, jobs: &Held, moment: &mut Moment) {
        let page = match sequenced {
            Sequenced::Done(page) => page,
            Sequenced::Reconcile(_) => return self.reconciliation.need(),
        };
        moment.flight.saw(page.lease_status.sequence);
        for (id, token) in page.rows {
            if let Reconciliation::InFlight { unseen } = &mut self.reconciliation {
                unseen.remove(&id);
            }
            if jobs.under(&id, token).is_none() {
                moment.push(Effect::Unheld(id, token));
            }
        }
        if page.next.is_some() {
            return self.ask_rows(page.next, moment);
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
