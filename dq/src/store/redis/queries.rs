//! The connection for everything that has no order: looks, first contact, the directory of topics.
//!
//! It is made when it is needed and made again when it broke, or when somebody gave up waiting for an answer: a way that
//! broke without a word would else be asked again and again. What goes over it only reads, or may be done twice, so a call
//! whose connection broke is sent once more over a new one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisResult, Value};
use tokio::sync::Mutex;

use super::connect::{Connector, send};
use super::errors::{Failure, failure, plain, refused};
use super::reply::Reply;
use super::scripts::{Call, Scripts};
use crate::store::StoreError;

/// See the module.
#[derive(Debug)]
pub(super) struct Queries {
    connector: Arc<Connector>,
    scripts: Arc<Scripts>,
    connection: Mutex<Option<Numbered>>,
}

/// A connection, its number, and whether somebody waited in vain for an answer over it.
#[derive(Clone)]
struct Numbered {
    number: u64,
    sender: MultiplexedConnection,
    given_up: Arc<AtomicBool>,
}

impl std::fmt::Debug for Numbered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Connection").field(&self.number).finish()
    }
}

impl Numbered {
    /// Sends a command. Dropped before the answer, it leaves a mark, and the next look takes another connection.
    async fn send(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        let waiting = Waiting(&self.given_up);
        let answer = send(&mut self.sender, cmd).await;
        std::mem::forget(waiting);
        answer
    }
}

/// Dropped, it marks the connection.
struct Waiting<'a>(&'a AtomicBool);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How often a look is sent.
const TRIES: usize = 2;

impl Queries {
    pub(super) fn new(connector: Arc<Connector>, scripts: Arc<Scripts>) -> Self {
        Self { connector, scripts, connection: Mutex::default() }
    }

    /// The connection; a new one where it is the one that broke.
    async fn connection(&self, operation: &'static str, broken: Option<u64>) -> Result<Numbered, StoreError> {
        let mut slot = self.connection.lock().await;
        let is_whole = |known: &&Numbered| Some(known.number) != broken && !known.given_up.load(Ordering::Relaxed);
        if let Some(known) = slot.as_ref().filter(is_whole) {
            return Ok(known.clone());
        }
        let number = slot.take().map_or(0, |old| old.number + 1);
        let sender = self.connector.connect(operation, None).await?;
        let new = Numbered { number, sender, given_up: Arc::default() };
        *slot = Some(new.clone());
        Ok(new)
    }

    /// A command that may be sent twice.
    pub(super) async fn command(&self, operation: &'static str, cmd: &Cmd) -> Result<Value, StoreError> {
        let mut broken = None;
        for _ in 1..TRIES {
            let mut connection = self.connection(operation, broken).await?;
            match connection.send(cmd).await {
                Ok(value) => return Ok(value),
                Err(error) if is_broken(operation, None, &error) => broken = Some(connection.number),
                Err(error) => return Err(plain(operation, error)),
            }
        }
        let mut connection = self.connection(operation, broken).await?;
        connection.send(cmd).await.map_err(|error| plain(operation, error))
    }

    /// A script that only reads.
    pub(super) async fn ask(&self, mut call: Call) -> Result<Value, StoreError> {
        let operation = call.step.name();
        let (mut broken, mut in_full, mut tries) = (None, false, 0);
        loop {
            tries += 1;
            let mut connection = self.connection(operation, broken).await?;
            let answer = connection.send(&call.cmd).await;
            match answer.map_err(|error| failure(operation, Some(&call), error)) {
                Ok(value) => return Ok(value),
                Err(Failure::NoScript) if !in_full => {
                    call.cmd = self.scripts.in_full(call.step, &call.cmd);
                    in_full = true;
                }
                Err(Failure::Broken(_)) if tries < TRIES + usize::from(in_full) => broken = Some(connection.number),
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
