//! The connection for everything that has no order: looks, first contact, the directory of topics.
//!
//! It is made when it is needed and made again when it broke. What goes over it only reads, or may be done twice, so a call
//! whose connection broke is sent once more over a new one.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::sync::Mutex;

use super::connect::{Connector, send};
use super::errors::{Failure, failure, plain, refused};
use super::reply::Reply;
use super::scripts::{Call, Scripts};
use crate::store::StoreError;

/// See the module.
#[derive(Debug)]
pub(super) struct Looks {
    connector: Arc<Connector>,
    scripts: Arc<Scripts>,
    connection: Mutex<Option<Numbered>>,
}

#[derive(Clone)]
struct Numbered(u64, MultiplexedConnection);

impl std::fmt::Debug for Numbered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Connection").field(&self.0).finish()
    }
}

/// How often a look is sent.
const TRIES: usize = 2;

impl Looks {
    pub(super) fn new(connector: Arc<Connector>, scripts: Arc<Scripts>) -> Self {
        Self { connector, scripts, connection: Mutex::default() }
    }

    /// The connection; a new one where it is the one that broke.
    async fn connection(&self, operation: &'static str, broken: Option<u64>) -> Result<Numbered, StoreError> {
        let mut slot = self.connection.lock().await;
        if let Some(known) = slot.as_ref().filter(|known| Some(known.0) != broken) {
            return Ok(known.clone());
        }
        let next = slot.take().map_or(0, |old| old.0 + 1);
        let new = Numbered(next, self.connector.connect(operation, None).await?);
        *slot = Some(new.clone());
        Ok(new)
    }

    /// A command that may be sent twice.
    pub(super) async fn command(&self, operation: &'static str, cmd: &Cmd) -> Result<Value, StoreError> {
        let mut broken = None;
        for _ in 1..TRIES {
            let mut connection = self.connection(operation, broken).await?;
            match send(&mut connection.1, cmd).await {
                Ok(value) => return Ok(value),
                Err(error) if is_broken(operation, None, &error) => broken = Some(connection.0),
                Err(error) => return Err(plain(operation, error)),
            }
        }
        let mut connection = self.connection(operation, broken).await?;
        send(&mut connection.1, cmd).await.map_err(|error| plain(operation, error))
    }

    /// A script that only reads.
    pub(super) async fn ask(&self, mut call: Call) -> Result<Value, StoreError> {
        let operation = call.step.name();
        let (mut broken, mut in_full, mut tries) = (None, false, 0);
        loop {
            tries += 1;
            let mut connection = self.connection(operation, broken).await?;
            let answer = send(&mut connection.1, &call.cmd).await;
            match answer.map_err(|error| failure(operation, Some(&call), error)) {
                Ok(value) => return Ok(value),
                Err(Failure::NoScript) if !in_full => {
                    call.cmd = self.scripts.in_full(call.step, &call.cmd);
                    in_full = true;
                }
                Err(Failure::Broken(_)) if tries < TRIES + usize::from(in_full) => broken = Some(connection.0),
                Err(Failure::Broken(error) | Failure::Answered(error)) => return Err(error),
                Err(Failure::NoScript | Failure::WrongType) => return Err(refused(operation)),
            }
        }
    }

    pub(super) async fn ask_list(&self, call: Call) -> Result<Reply, StoreError> {
        let operation = call.step.name();
        Reply::list(operation, self.ask(call).await?)
    }
}

fn is_broken(operation: &'static str, call: Option<&Call>, error: &redis::RedisError) -> bool {
    matches!(failure(operation, call, error.clone()), Failure::Broken(_))
}
