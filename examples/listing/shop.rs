//! The shop around the listing: fakes of its database, its mail and its cache.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// The result of closing an unpaid order.
pub(crate) enum Closing {
    Closed,
    AlreadyPaid,
    PaymentPending,
}

/// The database of orders.
pub(crate) struct Orders;

impl Orders {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) async fn close_if_unpaid(&self, order: u64) -> io::Result<Closing> {
        Ok(match order % 3 {
            0 => Closing::Closed,
            1 => Closing::AlreadyPaid,
            _ => Closing::PaymentPending,
        })
    }

    pub(crate) async fn mail(&self, who: &str) -> io::Result<()> {
        println!("a mail to {who}; end this program with Ctrl-C or SIGTERM");
        Ok(())
    }

    pub(crate) fn page(&self, what: &str) {
        println!("PAGE: {what}");
    }
}

/// A cache that has nothing in it.
pub(crate) struct Cache;

impl Cache {
    pub(crate) fn forget(&self, key: &str) {
        println!("dropped {key}");
    }
}

/// Counts the runs of a handler.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
