//! The framework on the memory store.

use std::sync::Arc;

use dq::environment::{StoreClock, WallClock};
use dq::store::Store;
use dq::store::memory::MemoryStore;

/// A new store under this clock.
pub fn store_under(clock: Arc<dyn StoreClock>) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(clock))
}

/// A store of its own under the real clock, which nodes of this process find by its URL.
#[derive(Debug)]
pub struct Shared(String);

impl Shared {
    pub fn named(name: &str) -> Self {
        Self(format!("memory:{name}"))
    }

    pub fn url(&self) -> &str {
        &self.0
    }

    pub fn store(&self) -> Arc<dyn Store> {
        store_under(Arc::new(WallClock))
    }
}
