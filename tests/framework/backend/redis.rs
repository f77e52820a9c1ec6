//! The stores of the framework tests on Redis: each has a keyspace of its own.

use std::sync::Arc;

use dq::context::IntoStore;
use dq::environment::StoreClock;
use dq::store::Store;
use dq::store::redis::RedisStore;
use dq_tests::PacedStore;
use dq_tests::redis::Keyspace;

/// How many seeds a test draws that tries many. Each costs some hundred round trips here.
pub const SEEDS: u32 = 5;

/// Returns a new store under `clock`, which stands still while a request is in flight.
pub fn store_under(clock: Arc<dyn StoreClock>) -> Arc<dyn Store> {
    PacedStore::start(clock)
}

/// A store under the real clock that several nodes share.
#[derive(Debug)]
pub struct Shared {
    store: Arc<RedisStore>,
    keyspace: Keyspace,
}

impl Shared {
    pub fn named(_name: &str) -> Self {
        let keyspace = Keyspace::create();
        Self { store: Arc::new(keyspace.store()), keyspace }
    }

    /// Returns the text with which another process opens the same store.
    pub fn address(&self) -> String {
        self.keyspace.address()
    }

    /// Returns what a node, in this or another process, takes as its store.
    pub fn at(address: &str) -> impl IntoStore + use<> {
        Arc::new(Keyspace::store_at(address))
    }

    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
}
