//! The framework on the memory store.

use std::sync::Arc;

use dq::context::IntoStore;
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

    /// What another process needs to know to have one like it.
    pub fn address(&self) -> String {
        self.0.clone()
    }

    /// What a node is given, also in another process.
    pub fn at(address: &str) -> impl IntoStore + use<> {
        address.to_owned()
    }

    pub fn store(&self) -> Arc<dyn Store> {
        store_under(Arc::new(WallClock))
    }
}
