//! What the shop writes down.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct Page {
    asked: u32,
    refused: bool,
    paid: bool,
}

/// The payments of all orders.
#[derive(Debug, Default)]
pub(crate) struct Books(Mutex<BTreeMap<u64, Page>>);

impl Books {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Page>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bank was asked.
    pub(crate) fn asked(&self, order: u64) {
        self.lock().entry(order).or_default().asked += 1;
    }

    /// The bank has answered. A repeated answer writes the same again.
    pub(crate) fn answered(&self, order: u64, paid: bool) {
        let mut pages = self.lock();
        let page = pages.entry(order).or_default();
        page.refused |= !paid;
        page.paid |= paid;
    }

    /// A line for each order, and whether each was paid after as many questions as it took.
    pub(crate) fn report(&self) -> (Vec<String>, bool) {
        let pages = self.lock();
        let line = |(order, page): (&u64, &Page)| {
            let refused = if page.refused { " after a refusal" } else { "" };
            let end = if page.paid { "paid" } else { "NOT PAID" };
            format!("order {order}: {end}{refused}, the bank was asked {} time(s)", page.asked)
        };
        let is_right = |page: &Page| page.paid && page.asked == 1 + u32::from(page.refused);
        (pages.iter().map(line).collect(), pages.len() == 3 && pages.values().all(is_right))
    }
}
