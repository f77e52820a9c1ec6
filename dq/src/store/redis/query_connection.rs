//! The shared connections to one server, one for each runtime: for requests without an order.
//!
//! A runtime reads and writes its own connection. So handlers that block the threads of one runtime do not hold up another one, such as dq's.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use redis::AsyncConnectionConfig;
use tokio::runtime::{Handle, Id};
use tokio::sync::Mutex;

use super::connect::{ANSWER_WITHIN, Connector, DrivenConnection};
use crate::store::StoreError;

/// The connection of a runtime, once it exists.
type OfRuntime = Arc<Mutex<Option<DrivenConnection>>>;

/// The shared connections to one server.
#[derive(Debug)]
pub(super) struct QueryConnection {
    connector: Arc<Connector>,
    open: std::sync::Mutex<HashMap<Id, OfRuntime>>,
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
            let has_ended = |known: &DrivenConnection| known.ended.is_cancelled();
            open.retain(|_, known| known.try_lock().map_or(true, |known| !known.as_ref().is_some_and(has_ended)));
        }
        Arc::clone(open.entry(here).or_default())
    }

    /// The connection of this runtime, or a new one if that has ended. A caller ends one that it gives up.
    pub(super) async fn get(&self, operation: &'static str) -> Result<DrivenConnection, StoreError> {
        let of_runtime = self.of_this_runtime();
        let mut slot = of_runtime.lock().await;
        if let Some(known) = slot.take().filter(|known| !known.ended.is_cancelled()) {
            return Ok(slot.insert(known).clone());
        }
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_WITHIN));
        let new = self.connector.connect_driven(operation, config).await?;
        Ok(slot.insert(new).clone())
    }
}
