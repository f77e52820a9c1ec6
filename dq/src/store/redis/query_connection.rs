//! The shared connections to one server, one for each runtime: for requests without an order.
//!
//! A runtime reads and writes its own connection. So handlers that block the threads of one runtime do not hold up another one, such as dq's.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::runtime::{Handle, Id};
use tokio::sync::Mutex;

use super::connect::{Connection, Connector, Purpose, send, send_all};
use crate::store::StoreError;

/// The connection of a runtime, once it exists.
type OfRuntime = Arc<Mutex<Option<SharedConnection>>>;

/// The shared connections to one server.
#[derive(Debug)]
pub(super) struct QueryConnection {
    connector: Arc<Connector>,
    open: std::sync::Mutex<HashMap<Id, OfRuntime>>,
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
        Self { connector, open: std::sync::Mutex::default() }
    }

    fn of_this_runtime(&self) -> OfRuntime {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let here = Handle::current().id();
        if !open.contains_key(&here) {
            // A connection ends with its runtime.
            let has_ended = |known: &SharedConnection| known.connection.ended.is_cancelled();
            open.retain(|_, known| known.try_lock().map_or(true, |known| !known.as_ref().is_some_and(has_ended)));
        }
        Arc::clone(open.entry(here).or_default())
    }

    /// The connection of this runtime, or a new one if that is number `broken` or abandoned.
    pub(super) async fn get(
        &self,
        operation: &'static str,
        broken: Option<u64>,
    ) -> Result<SharedConnection, StoreError> {
        let of_runtime = self.of_this_runtime();
        let mut slot = of_runtime.lock().await;
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
