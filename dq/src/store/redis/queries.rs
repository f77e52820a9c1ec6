//! The shared connection to a server: for requests without an order, such as queries, first contact and the directory of topics.
//! Each goes to the server that has its keys.
//!
//! The first request makes the connection. A request makes another one if the connection broke, or if a caller stopped
//! waiting for an answer: the connection may have broken without a word, and would otherwise be used again and again.
//! Requests over it only read, or may be executed twice, so a request whose connection broke is sent once more over a
//! new one.

use std::sync::Arc;

use futures_util::future::try_join_all;
use redis::{Arg, Cmd, FromRedisValue, Pipeline, ToRedisArgs, Value};

use super::connect::{Connection, send, send_all};
use super::errors::{Failure, classify, classify_read, server_changed};
use super::keys::{Key, Keys};
use super::reply::{Reply, malformed, read};
use super::scripts::{Form, ScriptCall};
use super::shards::{Server, Shards};
use super::slots::{Slot, slot_of};
use crate::store::StoreError;
use crate::time::Timestamp;

impl Shards {
    /// Sends a command that the server may execute twice.
    pub(super) async fn command(&self, operation: &'static str, cmd: &Cmd) -> Result<Value, StoreError> {
        let answer = self.commands(operation, &one(cmd)).await?.pop();
        answer.ok_or_else(|| malformed(operation, "it is missing"))
    }

    /// The same for a command whose answer is a list.
    pub(super) async fn list(&self, operation: &'static str, cmd: &Cmd) -> Result<Reply, StoreError> {
        Reply::list(operation, self.command(operation, cmd).await?)
    }

    /// The clock of a server, in whole seconds.
    pub(super) async fn clock(&self, operation: &'static str) -> Result<Timestamp, StoreError> {
        let seconds: u64 = self.list(operation, &redis::cmd("TIME")).await?.read()?;
        Ok(Timestamp::from_millis(seconds * 1_000))
    }

    /// Sends a command that reads this key of a topic, whose name comes before these arguments. The server may execute it twice.
    pub(super) async fn read_key<T: FromRedisValue>(
        &self,
        operation: &'static str,
        keys: &Keys,
        key: Key,
        command: &str,
        arguments: impl ToRedisArgs,
    ) -> Result<T, StoreError> {
        let (mut cmd, name) = (redis::cmd(command), keys.name(key, ""));
        cmd.arg(&name).arg(arguments);
        let (cmd, name, server) = (&cmd, &name, self.known(operation, Some(keys.slot())).await?);
        let send = |mut connection: Connection| async move {
            send(&mut connection, cmd).await.map_err(|error| classify_read(operation, key, name, &error))
        };
        read(operation, server.sent(operation, send).await?)
    }

    /// Sends commands that may be executed twice, in one write to each server that has keys of them. Each has an answer; an error of one is an
    /// error of all.
    pub(super) async fn commands(
        &self,
        operation: &'static str,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, StoreError> {
        let mut of_servers: Vec<(Arc<Server>, Pipeline, Vec<usize>)> = Vec::new();
        for (place, cmd) in commands.cmd_iter().enumerate() {
            let server = self.known(operation, slot_of_command(cmd)).await?;
            let (_, some, places) = match of_servers.iter().position(|(known, ..)| Arc::ptr_eq(known, &server)) {
                Some(at) => &mut of_servers[at],
                None => {
                    of_servers.push((server, Pipeline::new(), Vec::new()));
                    of_servers.last_mut().expect("one was pushed")
                }
            };
            some.add_command(cmd.clone());
            places.push(place);
        }
        let sent = of_servers.iter().map(|(server, some, _)| server.commands(operation, some));
        let answered = try_join_all(sent).await?;
        let mut answers = vec![Value::Nil; commands.len()];
        for ((_, _, places), some) in of_servers.iter().zip(answered) {
            places.iter().zip(some).for_each(|(place, answer)| answers[*place] = answer);
        }
        Ok(answers)
    }

    /// Calls a script that only reads.
    pub(super) async fn ask<T: FromRedisValue>(&self, call: ScriptCall) -> Result<T, StoreError> {
        let (operation, call) = (call.step.name(), call.complete());
        let server = self.known(operation, Some(call.keys.slot())).await?;
        read(operation, server.sent(operation, |connection| call_over(connection, call.clone())).await?)
    }

    /// Sends commands, and then the call that `call_with` makes of their answers. On one server both go over the same connection, so no
    /// failover lies between the two. Each may be executed twice.
    pub(super) async fn ask_after<T: FromRedisValue>(
        &self,
        operation: &'static str,
        commands: &Pipeline,
        call_with: impl Fn(Vec<Value>) -> ScriptCall,
    ) -> Result<T, StoreError> {
        if self.is_cluster() {
            return self.ask(call_with(self.commands(operation, commands).await?)).await;
        }
        let (server, call_with) = (self.known(operation, None).await?, &call_with);
        let send = |mut connection: Connection| async move {
            let answers = commands_over(&mut connection, operation, commands).await?;
            call_over(connection, call_with(answers).complete()).await
        };
        read(operation, server.sent(operation, send).await?)
    }

    /// Calls a script that only reads and whose answer is a list.
    pub(super) async fn ask_list(&self, call: ScriptCall) -> Result<Reply, StoreError> {
        let operation = call.step.name();
        Reply::list(operation, self.ask(call).await?)
    }
}

impl Server {
    /// Sends a command that this server may execute twice.
    pub(super) async fn command(&self, operation: &'static str, cmd: &Cmd) -> Result<Value, StoreError> {
        let answer = self.commands(operation, &one(cmd)).await?.pop();
        answer.ok_or_else(|| malformed(operation, "it is missing"))
    }

    async fn commands(&self, operation: &'static str, commands: &Pipeline) -> Result<Vec<Value>, StoreError> {
        let send = |mut connection| async move { commands_over(&mut connection, operation, commands).await };
        self.sent(operation, send).await
    }

    /// Sends a request, and once more over a new connection if the first one broke.
    async fn sent<T, A: Future<Output = Result<T, Failure>>>(
        &self,
        operation: &'static str,
        send: impl Fn(Connection) -> A,
    ) -> Result<T, StoreError> {
        let mut is_repeat = false;
        loop {
            let driven = self.queries.get(operation).await?;
            // Without an answer the next request makes a new connection.
            let given_up = driven.ended.clone().drop_guard();
            let answer = match send(driven.connection.clone()).await {
                Err(Failure::Broken(_)) if !is_repeat => {
                    is_repeat = true;
                    continue;
                }
                Err(Failure::Broken(error)) => return Err(error),
                Ok(answer) => Ok(answer),
                Err(Failure::Answered(error)) => Err(error),
                Err(Failure::NoScript | Failure::WrongType) => Err(server_changed(operation)),
            };
            given_up.disarm();
            return answer;
        }
    }
}

async fn call_over(mut connection: Connection, mut call: ScriptCall) -> Result<Value, Failure> {
    loop {
        let answer = send(&mut connection, &call.cmd).await;
        match answer.map_err(|error| classify(call.step.name(), Some(&call), &error)) {
            Err(failure) if failure.asks_again(&mut call) => {}
            // The wrong type that this diagnosis was to name is gone.
            Ok(_) if call.form == Form::Diagnosis => return Err(Failure::WrongType),
            answer => return answer,
        }
    }
}

async fn commands_over(
    connection: &mut Connection,
    operation: &'static str,
    commands: &Pipeline,
) -> Result<Vec<Value>, Failure> {
    let answers = send_all(connection, commands).await.and_then(|answers| answers.into_iter().collect());
    answers.map_err(|error| classify(operation, None, &error))
}

fn one(cmd: &Cmd) -> Pipeline {
    let mut one = Pipeline::with_capacity(1);
    one.add_command(cmd.clone());
    one
}

/// The slot of a command that is no script of a topic, if it has a key.
fn slot_of_command(cmd: &Cmd) -> Option<Slot> {
    let mut words = cmd.args_iter().filter_map(|word| match word {
        Arg::Simple(word) => Some(word),
        _ => None,
    });
    match words.next()? {
        b"INFO" | b"PING" | b"SCAN" | b"TIME" => None,
        b"EVAL" => words.nth(2).map(slot_of),
        _ => words.next().map(slot_of),
    }
}
