//! What the lines of the ledger say when they are read in order: the state of every order, and every rule that was broken.
//!
//! The running shop and the audit at its end use the same [`Books`]; the audit makes new ones from the file alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::orders::Happening;

/// How far the clock of the store and the one of this program may run apart while an order is open.
const CLOCKS_APART_US: u64 = 20_000;

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// The program began to work with the ledger.
    Started { at_ms: u64 },
    /// An order is open from `at_ms` to `due_ms`, by the clock of this program.
    Placed { order: u64, at_ms: u64, due_ms: u64 },
    /// It was paid or cancelled in time.
    Ended { order: u64, event: Happening },
    /// A program that went on added its job again, in case the store had lost it.
    Resumed { order: u64 },
    /// Its job was taken back; `found` is where.
    JobDeleted { order: u64, found: Option<String> },
    /// It was closed at `at_us`, by a job that was due at `due_ms` by the store's clock.
    Closed { order: u64, fence: u64, due_ms: u64, at_us: u64 },
    /// Its job ran once more after it had been closed, and changed nothing.
    RanAgain { order: u64, fence: u64 },
    /// It was paid or cancelled after it had been closed: the money goes back.
    TooLate { order: u64 },
}

/// One order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    pub(crate) placed_ms: u64,
    pub(crate) due_ms: u64,
    pub(crate) ended: Option<Happening>,
    pub(crate) job_deleted: bool,
    pub(crate) closed: bool,
    pub(crate) too_late: bool,
    /// Its job may be in the store a second time, as [`Entry::Resumed`] says.
    resumed: bool,
    closed_by_start: u64,
    fence: u64,
}

impl Order {
    pub(crate) const fn is_open(&self) -> bool {
        !self.closed && self.ended.is_none()
    }

    /// Whether what happened is on record already.
    pub(crate) const fn knows(&self, event: Happening) -> bool {
        match event {
            Happening::Placed => true,
            Happening::Paid | Happening::Cancelled => self.ended.is_some() || self.too_late,
        }
    }
}

/// How many orders there are of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) placed: u64,
    pub(crate) open: u64,
    pub(crate) closed: u64,
    pub(crate) deleted: u64,
    pub(crate) too_late: u64,
    /// Closed before the job was due, or before the order was.
    pub(crate) early: u64,
    /// Closed twice, or the job of a closed order ran again though nothing of [`Counts::again`] explains it.
    pub(crate) twice: u64,
    /// Closed and also paid or cancelled in time, or never placed.
    pub(crate) wrong: u64,
    /// The job of a closed order ran again and changed nothing: after a new start, for at least once is what dq promises, or
    /// once because it had been added again while it was running.
    pub(crate) again: u64,
}

/// All orders.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) orders: BTreeMap<u64, Order>,
    pub(crate) counts: Counts,
    /// Of each closing: start of the handler less the due time of the job, in microseconds; zero for one that was early.
    pub(crate) lateness_us: Vec<u64>,
    starts: u64,
}

impl Books {
    /// Takes one line into account.
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
