//! The state that follows from the lines of the ledger: every order, and how often each rule was broken.
//!
//! The running shop and the final audit both use [`Books`]; the audit builds its own from the file alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::orders::EventKind;

/// How far the clocks of the store and of this program may drift apart while an order is open.
const CLOCKS_APART_US: u64 = 20_000;

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// The program opened the ledger.
    Started { at_ms: u64 },
    /// An order was placed at `at_ms` and is to be closed at `due_ms`, by the clock of this program.
    Placed { order: u64, at_ms: u64, due_ms: u64 },
    /// The order was paid or cancelled in time.
    Ended { order: u64, event: EventKind },
    /// After a restart the program adds the job again, in case the store has lost it.
    Resumed { order: u64 },
    /// The job was deleted; `found` is the state it was in.
    JobDeleted { order: u64, found: Option<String> },
    /// The order was closed at `at_us` by a job that was due at `due_ms` by the store's clock.
    Closed { order: u64, fence: u64, due_ms: u64, at_us: u64 },
    /// The job ran again after the order was closed, and changed nothing.
    RanAgain { order: u64, fence: u64 },
    /// The order was paid or cancelled after it was closed: the shop refunds the money.
    TooLate { order: u64 },
}

/// One order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    pub(crate) placed_ms: u64,
    pub(crate) due_ms: u64,
    pub(crate) ended: Option<EventKind>,
    pub(crate) job_deleted: bool,
    pub(crate) closed: bool,
    pub(crate) too_late: bool,
    /// The job may have been added a second time: see [`Entry::Resumed`].
    resumed: bool,
    closed_by_start: u64,
    fence: u64,
}

impl Order {
    pub(crate) const fn is_open(&self) -> bool {
        !self.closed && self.ended.is_none()
    }

    /// Returns whether the ledger already has an event of this kind.
    pub(crate) const fn has_recorded(&self, event: EventKind) -> bool {
        match event {
            EventKind::Placed => true,
            EventKind::Paid | EventKind::Cancelled => self.ended.is_some() || self.too_late,
        }
    }
}

/// The numbers of orders, by what happened to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) placed: u64,
    pub(crate) open: u64,
    pub(crate) closed: u64,
    pub(crate) deleted: u64,
    pub(crate) too_late: u64,
    /// Closed before the job or the order was due.
    pub(crate) early: u64,
    /// Closed twice, or the job of a closed order ran again for no reason that [`Counts::again`] names.
    pub(crate) twice: u64,
    /// Closed although paid, cancelled or never placed.
    pub(crate) wrong: u64,
    /// The job of a closed order ran again and changed nothing: after a restart, because dq runs a job at least once, or once
    /// because the program added it again after a restart.
    pub(crate) again: u64,
}

/// All orders.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) orders: BTreeMap<u64, Order>,
    pub(crate) counts: Counts,
    /// The lateness of each closing in microseconds: start of the handler minus due time of the job, zero if it was early.
    pub(crate) lateness_us: Vec<u64>,
    starts: u64,
}

impl Books {
    /// Applies one line of the ledger.
    pub(crate) fn apply(&mut self, entry: &Entry) {
        match *entry {
            Entry::Started { .. } => self.starts += 1,
            Entry::Placed { order, at_ms, due_ms } => {
                self.orders.insert(order, Order { placed_ms: at_ms, due_ms, ..Order::default() });
                self.counts.placed += 1;
                self.counts.open += 1;
            }
            Entry::Ended { order, event } => {
                let known = self.orders.contains_key(&order);
                let order = self.orders.entry(order).or_default();
                self.counts.open -= u64::from(known && order.is_open());
                self.counts.wrong += u64::from(!known || order.closed);
                order.ended = Some(event);
            }
            Entry::Resumed { order } => self.orders.entry(order).or_default().resumed = true,
            Entry::JobDeleted { order, .. } => {
                self.orders.entry(order).or_default().job_deleted = true;
                self.counts.deleted += 1;
            }
            Entry::Closed { order, fence, due_ms, at_us } => self.close(order, fence, due_ms, at_us),
            Entry::RanAgain { order, fence } => {
                let order = self.orders.entry(order).or_default();
                let resumed = std::mem::take(&mut order.resumed);
                let excused = (resumed || order.closed_by_start < self.starts) && order.fence < fence;
                *if excused { &mut self.counts.again } else { &mut self.counts.twice } += 1;
            }
            Entry::TooLate { order } => {
                self.orders.entry(order).or_default().too_late = true;
                self.counts.too_late += 1;
            }
        }
    }

    fn close(&mut self, order: u64, fence: u64, due_ms: u64, at_us: u64) {
        let known = self.orders.contains_key(&order);
        let order = self.orders.entry(order).or_default();
        self.counts.open -= u64::from(known && order.is_open());
        self.counts.twice += u64::from(order.closed);
        self.counts.wrong += u64::from(!known || order.ended.is_some());
        self.counts.early += u64::from(at_us < due_ms * 1_000 || at_us + CLOCKS_APART_US < order.due_ms * 1_000);
        self.counts.closed += u64::from(!order.closed);
        self.lateness_us.push(at_us.saturating_sub(due_ms * 1_000));
        (order.closed, order.fence, order.closed_by_start) = (true, fence, self.starts);
    }
}
