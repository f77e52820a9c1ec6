//! The store of these tests, where those of `../framework` have several.

use std::sync::Arc;

use dq::environment::StoreClock;
use dq::store::Store;
use dq::store::memory::MemoryStore;

/// Returns a new store in memory under `clock`.
pub fn store_under(clock: Arc<dyn StoreClock>) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(clock))
}
