//! The memory store as a store under examination.

use std::sync::Arc;

use dq::environment::StoreClock;
use dq::store::Store;
use dq::store::memory::MemoryStore;
use dq::testing::ManualClock;
use dq_testing::conformance::StoreFixture;

/// The memory store under a clock that is moved by hand.
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
