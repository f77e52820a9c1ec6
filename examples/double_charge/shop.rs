//! Fakes of the shop's database and its bank. They outlive the nodes, and every call takes time.
//!
//! Each call waits before and after it does its work: the node may die at both points, as it may during a real request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

const HALF_A_CALL: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
struct Books {
    /// How often each order was charged.
    charges: BTreeMap<u64, u64>,
    keys: BTreeSet<String>,
    paid: BTreeSet<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Shop(Mutex<Books>);

impl Shop {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the bank for the money. The bank ignores a key that it has seen before.
    pub(crate) async fn charge(&self, order: u64, key: Option<String>) {
        sleep(HALF_A_CALL).await;
        self.book_charge(order, key);
        sleep(HALF_A_CALL).await;
    }

    fn book_charge(&self, order: u64, key: Option<String>) {
        let mut books = self.books();
        if key.is_none_or(|key| books.keys.insert(key)) {
            *books.charges.entry(order).or_default() += 1;
        }
    }

    pub(crate) async fn is_paid(&self, order: u64) -> bool {
        sleep(HALF_A_CALL).await;
        let paid = self.books().paid.contains(&order);
        sleep(HALF_A_CALL).await;
        paid
    }

    pub(crate) async fn mark_paid(&self, order: u64) {
        sleep(HALF_A_CALL).await;
        self.books().paid.insert(order);
        sleep(HALF_A_CALL).await;
    }

    /// Checks what must hold once every job has ended.
    pub(crate) fn every_order_is_charged_once(&self, orders: u64) -> Result<(), String> {
        let books = self.books();
        for order in 1..=orders {
            let times = books.charges.get(&order).copied().unwrap_or_default();
            if times != 1 || !books.paid.contains(&order) {
                return Err(format!("order {order} was charged {times} times"));
            }
        }
        Ok(())
    }
}
