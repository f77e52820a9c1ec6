//! The Redis store as a fixture of the conformance suite and the model tests.

use std::sync::Arc;

use dq::environment::StoreClock;
use dq::store::Store;
use dq::store::redis::RedisStore;
use dq::testing::ManualClock;
use dq_testing::conformance::StoreFixture;

use super::Keyspace;

/// A store in a keyspace of its own, with a manual clock.
#[derive(Debug)]
pub struct RedisFixture {
    store: Arc<RedisStore>,
    clock: Arc<ManualClock>,
    keyspace: Keyspace,
}

impl RedisFixture {
    /// Starts a store in a new keyspace.
    pub fn start() -> Self {
        Self::within(Keyspace::create())
    }

    /// Starts a store in a new keyspace, on a server that knows all scripts: otherwise a request whose answer is dropped may be
    /// executed behind later ones.
    pub fn in_order() -> Self {
        let fixture = Self::start();
        fixture.keyspace.load(&fixture.store);
        fixture
    }

    /// Starts a store in this keyspace.
    pub fn within(keyspace: Keyspace) -> Self {
        let clock = Arc::new(ManualClock::at(0));
        Self { store: keyspace.store_under(clock.clone()).into(), clock, keyspace }
    }
}

impl StoreFixture for RedisFixture {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> u64 {
        self.clock.micros()
    }

    fn set_clock(&self, micros: u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.clock.set(micros);
        Box::pin(std::future::ready(()))
    }
}
