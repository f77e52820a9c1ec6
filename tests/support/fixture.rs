//! The stores as fixtures of the conformance suite and the model tests.

use std::any::Any;
use std::sync::Arc;

use dq::environment::StoreClock;
use dq::store::Store;
#[cfg(unix)]
use dq::store::file::FileStore;
use dq::store::memory::MemoryStore;
use dq::testing::ManualClock;
use dq_testing::conformance::StoreFixture;
use futures_util::future::{BoxFuture, FutureExt, ready};

#[cfg(unix)]
use crate::file::Folder;
use crate::journaled::Watched;
use crate::redis::Keyspace;

/// An empty store with a manual clock.
#[derive(Debug)]
pub struct Fixture {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    // Dropped last: a store closes its files before they go.
    _home: Box<dyn Any + Send + Sync>,
}

impl Fixture {
    /// This store, which decides by this clock.
    pub fn of(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        Self::at(store, clock, ())
    }

    fn at(store: Arc<dyn Store>, clock: Arc<ManualClock>, home: impl Any + Send + Sync) -> Self {
        Self { store, clock, _home: Box::new(home) }
    }

    /// A memory store.
    pub fn memory() -> Self {
        let clock = Arc::new(ManualClock::at(0));
        Self::of(Arc::new(MemoryStore::new(clock.clone())), clock)
    }

    /// A journaled memory store. Each time its jobs are counted, it is compared with what its changes make of another one.
    pub fn journaled() -> Self {
        let clock = Arc::new(ManualClock::at(0));
        Self::of(Arc::new(Watched::journaled(clock.clone())), clock)
    }

    /// A `file:` store in a new folder.
    ///
    /// # Panics
    /// If it cannot be opened.
    #[cfg(unix)]
    pub async fn file() -> Self {
        let (clock, folder) = (Arc::new(ManualClock::at(0)), Folder::unmade());
        let store = FileStore::new(folder.path()).with(|options| options.clock = clock.clone());
        store.open().await.expect("a new folder opens");
        Self::at(Arc::new(store), clock, folder)
    }

    /// A Redis store in a keyspace of its own.
    pub fn redis() -> Self {
        Self::redis_within(Keyspace::create())
    }

    /// A Redis store in this keyspace.
    pub fn redis_within(keyspace: Keyspace) -> Self {
        let clock = Arc::new(ManualClock::at(0));
        Self::at(Arc::new(keyspace.store_under(clock.clone())), clock, keyspace)
    }

    /// A Redis store on a server that knows all scripts: otherwise a request whose answer is dropped may be executed behind later
    /// ones.
    pub fn redis_in_order() -> Self {
        let (clock, keyspace) = (Arc::new(ManualClock::at(0)), Keyspace::create());
        let store = keyspace.store_under(clock.clone());
        keyspace.load(&store);
        Self::at(Arc::new(store), clock, keyspace)
    }
}

impl StoreFixture for Fixture {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> u64 {
        self.clock.micros()
    }

    fn set_clock(&self, micros: u64) -> BoxFuture<'_, ()> {
        self.clock.set(micros);
        ready(()).boxed()
    }
}
