//! The memory store as a fixture of the conformance suite and the model tests.

use std::sync::Arc;

use dq::environment::StoreClock;
use dq::store::Store;
use dq::store::memory::MemoryStore;
use dq::testing::ManualClock;
use dq_testing::conformance::StoreFixture;

/// A memory store with a manual clock.
#[derive(Debug)]
pub struct MemoryFixture {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
}

impl MemoryFixture {
    /// A new store.
    pub fn empty() -> Self {
        let clock = Arc::new(ManualClock::at(0));
        Self { store: Arc::new(MemoryStore::new(clock.clone())), clock }
    }
}

impl StoreFixture for MemoryFixture {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> u64 {
        self.clock.micros()
    }

    fn set_clock(&self, micros: u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.clock.set(micros);
        Box::pin(async {})
    }
}
