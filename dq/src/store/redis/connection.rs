//! An ordered way to the server: one connection, first in, first out.
//!
//! A call is under way when [`Connection::ask`] returns: it stands in the queue of the line's task, which alone sends, in that
//! order. The first sign that the connection is of no use (broken, silent, no master any more) ends the line for good:
//! what was under way is answered *unavailable*, everything later too, and whoever needs a way makes a new one. A line
//! that is dropped takes its connection with it, so that what it had sent may arrive late and its answers never do.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesOrdered, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisResult, Value};
use tokio::sync::{mpsc, oneshot};

use super::confirm::Confirm;
use super::connect::{self, Connector};
use super::errors::{Failure, failure, refused};
use super::reply::Reply;
use super::scripts::{Call, Scripts};
use crate::store::StoreError;

type Answer = Result<Value, StoreError>;

/// What was sent of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    ByHash,
    InFull,
    /// Not the call: which key has a wrong type.
    Diagnosis,
}

#[derive(Debug)]
struct Asked {
    call: Call,
    stage: Stage,
    reply: oneshot::Sender<Answer>,
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    queue: mpsc::UnboundedSender<Asked>,
}

impl Connection {
    /// A line on the current runtime. It connects by itself and sends `first` before anything else, whose answer counts
    /// for nothing. What is asked is answered when it was executed, and confirmed where that is wanted.
    pub(super) fn open(connector: Arc<Connector>, scripts: Arc<Scripts>, first: Cmd, confirm: Option<Confirm>) -> Self {
        let (queue, asked) = mpsc::unbounded_channel();
        super::spawn(run(connector, Sender { scripts, confirm }, asked, first));
        Self { queue }
    }

    /// Sends a call; the future is only its answer.
    pub(super) fn ask(&self, call: Call) -> impl Future<Output = Result<Value, StoreError>> + Send + use<> {
        let operation = call.step.name();
        let (reply, answer) = oneshot::channel();
        // A task that has ended drops what it is sent, and with it `reply`.
        drop(self.queue.send(Asked { call, stage: Stage::ByHash, reply }));
        async move { answer.await.unwrap_or_else(|_| Err(lost(operation))) }
    }

    /// Sends a call whose answer is a list.
    pub(super) fn ask_list(&self, call: Call) -> impl Future<Output = Result<Reply, StoreError>> + Send + use<> {
        let operation = call.step.name();
        let answer = self.ask(call);
        async move { Reply::list(operation, answer.await?) }
    }
}

fn lost(operation: &'static str) -> StoreError {
    StoreError::Unavailable { operation, reason: "the connection was lost before the answer came".into() }
}

/// The answer to a call, and to the `WAIT` behind it.
type Replied = (Asked, RedisResult<Value>, Option<RedisResult<Value>>);
type InFlight = FuturesOrdered<BoxFuture<'static, Replied>>;

/// How calls are sent and their answers read.
struct Sender {
    scripts: Arc<Scripts>,
    confirm: Option<Confirm>,
}

async fn run(connector: Arc<Connector>, sender: Sender, mut queue: mpsc::UnboundedReceiver<Asked>, first: Cmd) {
    let connection = match connector.connect("connect", None).await {
        Ok(connection) => connection,
        Err(error) => return refuse_all(&mut queue, &error),
    };
    let mut directory = connection.clone();
    let mut in_flight: InFlight = FuturesOrdered::new();
    let mut noted = Box::pin(async move { directory.send_packed_command(&first).await });
    let mut is_noted = false;
    loop {
        tokio::select! {
            biased;
            _ = &mut noted, if !is_noted => is_noted = true,
            Some(heard) = in_flight.next() => match sender.handle(heard) {
                Handled::Answered => {}
                Handled::Again(asked) => in_flight.push_back(sender.send(&connection, asked)),
                Handled::Broken => return,
            },
            asked = queue.recv() => match asked {
                Some(asked) => in_flight.push_back(sender.send(&connection, asked)),
                None => return,
            },
        }
    }
}

enum Handled {
    Answered,
    Again(Asked),
    Broken,
}

impl Sender {
    fn send(&self, connection: &MultiplexedConnection, asked: Asked) -> BoxFuture<'static, Replied> {
        let mut connection = connection.clone();
        let confirm = self.confirm.filter(|_| asked.stage != Stage::Diagnosis);
        Box::pin(async move {
            let cmd = &asked.call.cmd;
            let (answer, confirmed) = match confirm {
                None => (connect::send(&mut connection, cmd).await, None),
                Some(confirm) => match confirm.send(&mut connection, cmd).await {
                    Ok((answer, confirmed)) => (answer, Some(confirmed)),
                    Err(error) => (Err(error), None),
                },
            };
            (asked, answer, confirmed)
        })
    }

    /// Gives an answer to who asked. A script that the server does not know is sent in full, behind what is under way:
    /// scripts bear to be executed in another order (PROTOCOL.md rules 6, 7 and 18).
    fn handle(&self, (mut asked, answer, confirmed): Replied) -> Handled {
        let operation = asked.call.step.name();
        let answer = answer.map_err(|error| failure(operation, Some(&asked.call), error));
        let answer = answer.and_then(|value| match self.confirm.zip(confirmed) {
            Some((confirm, confirmed)) => confirm.handle(operation, confirmed).map(|()| value),
            None => Ok(value),
        });
        let (error, handled) = match answer {
            Ok(_) if asked.stage == Stage::Diagnosis => (refused(operation), Handled::Answered),
            Ok(value) => {
                // Nobody waits for it any more.
                drop(asked.reply.send(Ok(value)));
                return Handled::Answered;
            }
            Err(Failure::NoScript) if asked.stage == Stage::ByHash => {
                asked.call.cmd = self.scripts.in_full(asked.call.step, &asked.call.cmd);
                asked.stage = Stage::InFull;
                return Handled::Again(asked);
            }
            Err(Failure::WrongType) if asked.stage != Stage::Diagnosis => {
                asked.call.cmd = self.scripts.diagnosis(asked.call.step, &asked.call.cmd);
                asked.stage = Stage::Diagnosis;
                return Handled::Again(asked);
            }
            Err(Failure::NoScript | Failure::WrongType) => (refused(operation), Handled::Answered),
            Err(Failure::Answered(error)) => (error, Handled::Answered),
            Err(Failure::Broken(error)) => (error, Handled::Broken),
        };
        drop(asked.reply.send(Err(error)));
        handled
    }
}

/// Answers everything that waits for a connection that will not come.
fn refuse_all(queue: &mut mpsc::UnboundedReceiver<Asked>, error: &StoreError) {
    queue.close();
    while let Ok(asked) = queue.try_recv() {
        let operation = asked.call.step.name();
        let reason = error.to_string();
        drop(asked.reply.send(Err(match error {
            StoreError::Refused { .. } => StoreError::Refused { operation, reason },
            StoreError::Denied { reason, .. } => StoreError::Denied { operation, reason: reason.clone() },
            StoreError::Unavailable { reason, .. } => StoreError::Refused { operation, reason: reason.clone() },
            _ => StoreError::Other { operation, source: reason.into() },
        })));
    }
}
