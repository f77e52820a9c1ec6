//! A table of orders, as a database would have it: one statement for many rows.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the statement did with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    /// It was unpaid, and is closed now; or an earlier run closed it.
    Closed,
    /// It is paid, and stays open.
    Paid,
    /// Another transaction has it.
    Locked,
    /// There is no such order.
    Unknown,
}

/// What happened, at the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    pub(crate) closed: usize,
    pub(crate) paid: usize,
    pub(crate) unknown: usize,
    pub(crate) locked: usize,
    pub(crate) statements: usize,
}

#[derive(Debug, Default)]
struct Rows {
    /// `true`: closed. Paid orders are not here.
    unpaid: BTreeMap<u64, bool>,
    paid: BTreeSet<u64>,
    /// Another transaction has them, until the next statement that wants them.
    locked: BTreeSet<u64>,
    were_locked: usize,
    unknown: BTreeSet<u64>,
    statements: usize,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Table(Mutex<Rows>);

impl Table {
    /// Each tenth order is paid, each hundredth is locked at first, and some are missing.
    pub(crate) fn with_orders(orders: u64) -> Self {
        let mut rows = Rows::default();
        for order in 0..orders {
            match order {
                order if order % 1_000 == 3 => {}
                order if order % 10 == 0 => drop(rows.paid.insert(order)),
                order => drop(rows.unpaid.insert(order, false)),
            }
            if order % 100 == 7 {
                rows.locked.insert(order);
            }
        }
        Self(Mutex::new(rows))
    }

    /// `UPDATE orders SET closed = true WHERE id = ANY($1) AND NOT paid AND .. RETURNING id`, skipping locked rows.
    pub(crate) async fn close_unpaid(&self, orders: &[u64]) -> Result<BTreeMap<u64, Closing>, io::Error> {
        tokio::time::sleep(Duration::from_millis(5)).await; // the trip to the database, paid once for all
        let rows = &mut *self.rows();
        rows.statements += 1;
        let close = |&order: &u64| {
            let closing = if rows.locked.remove(&order) {
                rows.were_locked += 1;
                Closing::Locked
            } else if let Some(closed) = rows.unpaid.get_mut(&order) {
                *closed = true;
                Closing::Closed
            } else if rows.paid.contains(&order) {
                Closing::Paid
            } else {
                Closing::Unknown
            };
            (order, closing)
        };
        Ok(orders.iter().map(close).collect())
    }

    /// The job of an order that is not there is given up.
    pub(crate) fn report_unknown(&self, order: u64) {
        self.rows().unknown.insert(order);
    }

    pub(crate) fn report(&self) -> Report {
        let rows = self.rows();
        Report {
            closed: rows.unpaid.values().filter(|closed| **closed).count(),
            paid: rows.paid.len(),
            unknown: rows.unknown.len(),
            locked: rows.were_locked,
            statements: rows.statements,
        }
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
