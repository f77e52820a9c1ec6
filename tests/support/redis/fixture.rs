//! The Redis store as a fixture of the conformance suite and the model tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dq::store::Store;
use dq::store::redis::RedisStore;
use dq_testing::conformance::StoreFixture;

use super::{CommandConnection, Keyspace};

/// A store in a keyspace of its own, with a manual clock.
#[derive(Debug)]
pub struct RedisFixture {
    store: Arc<RedisStore>,
    connection: Mutex<CommandConnection>,
    clock: AtomicU64,
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
        let mut connection = fixture.connection.lock().expect("no holder of the lock has panicked");
        fixture.store.scripts().for_each(|script| drop(connection.command(&["SCRIPT", "LOAD", script])));
        drop(connection);
        fixture
    }

    /// Starts a store in this keyspace.
    pub fn within(keyspace: Keyspace) -> Self {
        let (store, connection) = (keyspace.store_under_test_clock().into(), Mutex::new(keyspace.connect()));
        Self { store, connection, clock: AtomicU64::new(0), keyspace }
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
        self.keyspace.set_clock(&mut self.connection.lock().expect("no holder of the lock has panicked"), micros);
        self.clock.store(micros, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }
}
