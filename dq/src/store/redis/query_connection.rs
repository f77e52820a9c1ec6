//! The shared connection to one server: for requests without an order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::Mutex;

use super::connect::{Connection, Connector, Purpose, send, send_all};
use crate::store::StoreError;

/// The shared connection to one server, once it exists.
#[derive(Debug)]
pub(super) struct QueryConnection {
    connector: Arc<Connector>,
    open: Mutex<Option<SharedConnection>>,
}

/// A connection, its number, and whether a caller stopped waiting for an answer over it.
#[derive(Clone)]
pub(super) struct SharedConnection {
    pub(super) number: u64,
    connection: Connection,
    is_abandoned: Arc<AtomicBool>,
}

impl std::fmt::Debug for SharedConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SharedConnection").field(&self.number).finish()
    }
}

impl SharedConnection {
    /// Sends a command. If this future is dropped before the answer, the next request makes a new connection.
    pub(super) async fn send(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        let guard = AbandonOnDrop(&self.is_abandoned);
        let answer = send(&mut self.connection, cmd).await;
        std::mem::forget(guard);
        answer
    }

    /// Sends commands in one write. If this future is dropped before the answers, the next request makes a new connection.
    pub(super) async fn send_all(&mut self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        let guard = AbandonOnDrop(&self.is_abandoned);
        let answers = send_all(&mut self.connection, commands).await;
        std::mem::forget(guard);
        answers?.into_iter().collect()
    }
}

/// Marks the connection as abandoned when it is dropped.
struct AbandonOnDrop<'a>(&'a AtomicBool);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl QueryConnection {
    pub(super) fn new(connector: Arc<Connector>) -> Self {
        Self { connector, open: Mutex::default() }
    }

    /// The shared connection, or a new one if the shared one is number `broken` or abandoned.
    pub(super) async fn get(
        &self,
        operation: &'static str,
        broken: Option<u64>,
    ) -> Result<SharedConnection, StoreError> {
        let mut slot = self.open.lock().await;
        let is_usable =
            |known: &&SharedConnection| Some(known.number) != broken && !known.is_abandoned.load(Ordering::Relaxed);
        if let Some(known) = slot.as_ref().filter(is_usable) {
            return Ok(known.clone());
        }
        let number = slot.take().map_or(0, |old| old.number + 1);
        let connection = self.connector.connect(operation, Purpose::Queries).await?;
        let new = SharedConnection { number, connection, is_abandoned: Arc::default() };
        *slot = Some(new.clone());
        Ok(new)
    }
}
