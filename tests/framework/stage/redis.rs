//! The framework on a Redis store: for each a server of its own.

use std::sync::Arc;

use dq::environment::StoreClock;
use dq::store::Store;
use dq::store::redis::RedisStore;
use dq_tests::PacedStore;
use dq_tests::redis::RedisServer;

/// A new store under this clock, which stands while the server is asked.
pub fn store_under(clock: Arc<dyn StoreClock>) -> Arc<dyn Store> {
    PacedStore::start(clock)
}

/// A store of its own under the real clock, which nodes find by its URL.
#[derive(Debug)]
pub struct Shared {
    url: String,
    _server: RedisServer,
}

impl Shared {
    pub fn named(_name: &str) -> Self {
        let server = RedisServer::start();
        Self { url: server.url(), _server: server }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn store(&self) -> Arc<dyn Store> {
        Arc::new(RedisStore::new(&self.url).unwrap())
    }
}
