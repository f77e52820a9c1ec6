//! The Redis store as a store under examination.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dq::store::Store;
use dq::store::redis::RedisStore;
use dq_testing::conformance::StoreFixture;

use super::{Place, Teller};

/// A store in a place of its own, under a clock that is moved by hand.
#[derive(Debug)]
pub struct RedisFixture {
    store: Arc<RedisStore>,
    teller: Mutex<Teller>,
    clock: AtomicU64,
    place: Place,
}

impl RedisFixture {
    /// A new place and a store in it.
    pub fn start() -> Self {
        let place = Place::find();
        let (store, teller) = (place.store_under_test_clock().into(), Mutex::new(place.connect()));
        Self { store, teller, clock: AtomicU64::new(0), place }
    }
}

impl StoreFixture for RedisFixture {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    fn set_clock(&self, micros: u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.place.set_clock(&mut self.teller.lock().expect("nobody panicked beside it"), micros);
        self.clock.store(micros, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }
}
