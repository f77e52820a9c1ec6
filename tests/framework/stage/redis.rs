//! The framework on a Redis store: for each a place of its own.

use std::sync::Arc;

use dq::context::IntoStore;
use dq::environment::StoreClock;
use dq::store::Store;
use dq::store::redis::RedisStore;
use dq_tests::PacedStore;
use dq_tests::redis::Place;

/// A new store under this clock, which stands while the server is asked.
pub fn store_under(clock: Arc<dyn StoreClock>) -> Arc<dyn Store> {
    PacedStore::start(clock)
}

/// A store of its own under the real clock, which several nodes share.
#[derive(Debug)]
pub struct Shared {
    store: Arc<RedisStore>,
    place: Place,
}

impl Shared {
    pub fn named(_name: &str) -> Self {
        let place = Place::find();
        Self { store: Arc::new(place.store()), place }
    }

    /// What another process needs to know to share it.
    pub fn address(&self) -> String {
        self.place.address()
    }

    /// What a node is given, also in another process.
    pub fn at(address: &str) -> impl IntoStore + use<> {
        Arc::new(Place::store_at(address))
    }

    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
}
