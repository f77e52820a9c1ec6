//! The stores of the framework tests in memory.

use std::sync::Arc;

use dq::context::IntoStore;
use dq::environment::{StoreClock, WallClock};
use dq::store::Store;
use dq::store::memory::MemoryStore;

/// How many seeds a test draws that tries many.
pub const SEEDS: u32 = 300;

/// Returns a new store under `clock`.
pub fn store_under(clock: Arc<dyn StoreClock>) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(clock))
}

/// A store under the real clock that the nodes of this process share by its URL.
#[derive(Debug)]
pub struct Shared(String);

impl Shared {
    pub fn named(name: &str) -> Self {
        Self(format!("memory:{name}"))
    }

    /// Returns the URL of the store. Another process opens a store of its own with it.
    pub fn address(&self) -> String {
        self.0.clone()
    }

    /// Returns what a node, in this or another process, takes as its store.
    pub fn at(address: &str) -> impl IntoStore + use<> {
        address.to_owned()
    }

    pub fn store(&self) -> Arc<dyn Store> {
        store_under(Arc::new(WallClock))
    }
}
