//! The shared connection: for requests without an order, such as queries, first contact and the directory of topics.
//!
//! The first request makes the connection. A request makes another one if the connection broke, or if a caller stopped
//! waiting for an answer: the connection may have broken without a word, and would otherwise be used again and again.
//! Requests over it only read, or may be executed twice, so a request whose connection broke is sent once more over a
//! new one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::Mutex;

use super::connect::{Connection, Connector, Purpose, send, send_all};
use super::errors::{Failure, classify, of_command, server_changed};
use super::reply::{Reply, malformed};
use super::scripts::{ScriptCall, Scripts};
use crate::store::StoreError;

/// Sends queries over the shared connection.
#[derive(Debug)]
pub(super) struct Queries {
    connector: Arc<Connector>,
    scripts: Arc<Scripts>,
    connection: Mutex<Option<SharedConnection>>,
}

/// A connection, its number, and whether a caller stopped waiting for an answer over it.
#[derive(Clone)]
struct SharedConnection {
    number: u64,
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
    async fn send(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        let guard = AbandonOnDrop(&self.is_abandoned);
        let answer = send(&mut self.connection, cmd).await;
        std::mem::forget(guard);
        answer
    }

    /// Sends commands in one write. If this future is dropped before the answers, the next request makes a new connection.
    async fn send_all(&mut self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
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

/// How often a request is sent at most.
const TRIES: usize = 2;

impl Queries {
    pub(super) fn new(connector: Arc<Connector>, scripts: Arc<Scripts>) -> Self {
        Self { connector, scripts, connection: Mutex::default() }
    }

    /// The shared connection, or a new one if the shared one is number `broken` or abandoned.
    async fn connection(&self, operation: &'static str, broken: Option<u64>) -> Result<SharedConnection, StoreError> {
        let mut slot = self.connection.lock().await;
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

    /// Sends a command that the server may execute twice.
    pub(super) async fn command(&self, operation: &'static str, cmd: &Cmd) -> Result<Value, StoreError> {
        let mut one = Pipeline::with_capacity(1);
        one.add_command(cmd.clone());
        let answer = self.commands(operation, &one).await?.pop();
        answer.ok_or_else(|| malformed(operation, "it is missing"))
    }

    /// Sends commands in one write that the server may execute twice. Each has an answer; an error of one is an error of all.
    pub(super) async fn commands(
        &self,
        operation: &'static str,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, StoreError> {
        let mut broken = None;
        for _ in 1..TRIES {
            let mut connection = self.connection(operation, broken).await?;
            match connection.send_all(commands).await {
                Ok(values) => return Ok(values),
                Err(error) if is_broken(operation, &error) => broken = Some(connection.number),
                Err(error) => return Err(of_command(operation, error)),
            }
        }
        let mut connection = self.connection(operation, broken).await?;
        connection.send_all(commands).await.map_err(|error| of_command(operation, error))
    }

    /// Calls a script that only reads.
    pub(super) async fn ask(&self, mut call: ScriptCall) -> Result<Value, StoreError> {
        let operation = call.step.name();
        let (mut broken, mut in_full, mut tries) = (None, false, 0);
        loop {
            tries += 1;
            let mut connection = self.connection(operation, broken).await?;
            let answer = connection.send(&call.cmd).await;
            match answer.map_err(|error| classify(operation, Some(&call), error)) {
                Ok(value) => return Ok(value),
                Err(Failure::NoScript) if !in_full => {
                    call.cmd = self.scripts.in_full(call.step, &call.cmd);
                    in_full = true;
                }
                Err(Failure::Broken(_)) if tries < TRIES + usize::from(in_full) => broken = Some(connection.number),
                Err(Failure::Broken(error) | Failure::Answered(error)) => return Err(error),
                Err(Failure::NoScript | Failure::WrongType) => return Err(server_changed(operation)),
            }
        }
    }

    /// Sends commands, and then the call that `call_with` makes of their answers, over the same connection: on one server, no failover lies
    /// between the two. The server may execute both twice.
    pub(super) async fn ask_after(
        &self,
        operation: &'static str,
        commands: &Pipeline,
        call_with: impl Fn(Vec<Value>) -> Result<ScriptCall, StoreError>,
    ) -> Result<Value, StoreError> {
        let mut broken = None;
        loop {
            let mut connection = self.connection(operation, broken).await?;
            let failure = match connection.send_all(commands).await {
                Ok(answers) => {
                    let call = call_with(answers)?;
                    let classified = |error| classify(operation, Some(&call), error);
                    let mut answer = connection.send(&call.cmd).await.map_err(classified);
                    if let Err(Failure::NoScript) = answer {
                        answer = connection.send(&self.scripts.in_full(call.step, &call.cmd)).await.map_err(classified);
                    }
                    match answer {
                        Ok(value) => return Ok(value),
                        Err(failure) => failure,
                    }
                }
                Err(error) => classify(operation, None, error),
            };
            match failure {
                Failure::Broken(_) if broken.is_none() => broken = Some(connection.number),
                Failure::Broken(error) | Failure::Answered(error) => return Err(error),
                Failure::NoScript | Failure::WrongType => return Err(server_changed(operation)),
            }
        }
    }

    /// Calls a script that only reads and whose answer is a list.
    pub(super) async fn ask_list(&self, call: ScriptCall) -> Result<Reply, StoreError> {
        let operation = call.step.name();
        Reply::list(operation, self.ask(call).await?)
    }
}

fn is_broken(operation: &'static str, error: &redis::RedisError) -> bool {
    matches!(classify(operation, None, error.clone()), Failure::Broken(_))
}
