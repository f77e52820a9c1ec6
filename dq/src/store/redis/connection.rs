//! The ordered connection of a link or producer: requests go out in order, and answers come back in order.
//!
//! A request is in flight as soon as [`OrderedConnection::ask`] returns: it is in the queue of the connection's task,
//! which alone sends, in that order. When the connection breaks, falls silent or turns out to lead to a replica, the
//! task ends for good. Every request that is unanswered then, and every later one, is answered with
//! [`Unavailable`](StoreError::Unavailable), and the caller opens another connection. Dropping an `OrderedConnection`
//! closes its connection to the server: requests that were sent may still arrive, and their answers never do.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesOrdered, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisResult, Value};
use tokio::sync::{mpsc, oneshot};

use super::confirm::Confirm;
use super::connect::{self, Connector};
use super::errors::{Failure, classify, server_changed};
use super::reply::Reply;
use super::scripts::{ScriptCall, Scripts};
use crate::store::StoreError;

/// How the script of a request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Hash,
    Text,
    /// Not the script itself, but one that finds the key of a wrong type.
    Diagnosis,
}

/// A call on its way to the server.
#[derive(Debug)]
struct QueuedCall {
    call: ScriptCall,
    form: Form,
    reply: oneshot::Sender<Result<Value, StoreError>>,
}

/// A connection to the server that keeps the order of its requests.
#[derive(Debug, Clone)]
pub(super) struct OrderedConnection {
    queue: mpsc::UnboundedSender<QueuedCall>,
}

impl OrderedConnection {
    /// Opens a connection in a task on the current runtime. The task connects, and sends `first` before anything else
    /// and ignores its answer. With `confirm`, a request is answered once enough replicas have confirmed it.
    pub(super) fn open(connector: Arc<Connector>, scripts: Arc<Scripts>, first: Cmd, confirm: Option<Confirm>) -> Self {
        let (queue, requests) = mpsc::unbounded_channel();
        super::spawn(run(connector, scripts, confirm, requests, first));
        Self { queue }
    }

    /// Sends a call. The returned future only waits for the answer; dropping it does not stop the call.
    pub(super) fn ask(&self, call: ScriptCall) -> impl Future<Output = Result<Value, StoreError>> + Send + use<> {
        let operation = call.step.name();
        let (reply, answer) = oneshot::channel();
        // If the task has ended, this drops the request and with it `reply`.
        drop(self.queue.send(QueuedCall { call, form: Form::Hash, reply }));
        async move { answer.await.unwrap_or_else(|_| Err(lost(operation))) }
    }

    /// Sends a call whose answer is a list.
    pub(super) fn ask_list(&self, call: ScriptCall) -> impl Future<Output = Result<Reply, StoreError>> + Send + use<> {
        let operation = call.step.name();
        let answer = self.ask(call);
        async move { Reply::list(operation, answer.await?) }
    }
}

fn lost(operation: &'static str) -> StoreError {
    StoreError::Unavailable { operation, reason: "the connection was lost before the answer came".into() }
}

/// What came back for a request.
struct Response {
    request: QueuedCall,
    answer: RedisResult<Value>,
    /// The answer to the `WAIT` behind it.
    confirmation: Option<RedisResult<Value>>,
}

/// What the task does after a response.
enum Next {
    GoOn,
    SendAgain(QueuedCall),
    End,
}

async fn run(
    connector: Arc<Connector>,
    scripts: Arc<Scripts>,
    confirm: Option<Confirm>,
    mut requests: mpsc::UnboundedReceiver<QueuedCall>,
    first: Cmd,
) {
    let connection = match connector.connect("connect", None).await {
        Ok(connection) => connection,
        Err(error) => return refuse_all(&mut requests, &error),
    };
    let exchange = Exchange { connection: connection.clone(), scripts, confirm };
    let mut first_connection = connection;
    let mut first_sent = Box::pin(async move { first_connection.send_packed_command(&first).await });
    let mut is_first_answered = false;
    let mut in_flight = FuturesOrdered::new();
    loop {
        tokio::select! {
            biased;
            _ = &mut first_sent, if !is_first_answered => is_first_answered = true,
            Some(response) = in_flight.next() => match exchange.handle(response) {
                Next::GoOn => {}
                Next::SendAgain(request) => in_flight.push_back(exchange.send(request)),
                Next::End => return,
            },
            request = requests.recv() => match request {
                Some(request) => in_flight.push_back(exchange.send(request)),
                None => return,
            },
        }
    }
}

/// Sends requests and handles their responses.
struct Exchange {
    connection: MultiplexedConnection,
    scripts: Arc<Scripts>,
    confirm: Option<Confirm>,
}

impl Exchange {
    fn send(&self, request: QueuedCall) -> BoxFuture<'static, Response> {
        let mut connection = self.connection.clone();
        let confirm = self.confirm.filter(|_| request.form != Form::Diagnosis);
        Box::pin(async move {
            let cmd = &request.call.cmd;
            let (answer, confirmation) = match confirm {
                None => (connect::send(&mut connection, cmd).await, None),
                Some(confirm) => match confirm.send(&mut connection, cmd).await {
                    Ok((answer, confirmation)) => (answer, Some(confirmation)),
                    Err(error) => (Err(error), None),
                },
            };
            Response { request, answer, confirmation }
        })
    }

    /// Passes the answer on to the caller. A script that the server does not know is sent in full, behind what is in
    /// flight: rules 6, 7 and 18 allow the server to execute scripts in another order.
    fn handle(&self, Response { mut request, answer, confirmation }: Response) -> Next {
        let operation = request.call.step.name();
        let answer = answer.map_err(|error| classify(operation, Some(&request.call), error));
        let answer = answer.and_then(|value| match self.confirm.zip(confirmation) {
            Some((confirm, confirmation)) => confirm.check(operation, confirmation).map(|()| value),
            None => Ok(value),
        });
        let (answer, next) = match answer {
            // The wrong type that this diagnosis was to name is gone.
            Ok(_) if request.form == Form::Diagnosis => (Err(server_changed(operation)), Next::GoOn),
            Ok(value) => (Ok(value), Next::GoOn),
            Err(Failure::NoScript) if request.form == Form::Hash => {
                request.call.cmd = self.scripts.in_full(request.call.step, &request.call.cmd);
                request.form = Form::Text;
                return Next::SendAgain(request);
            }
            Err(Failure::WrongType) if request.form != Form::Diagnosis => {
                request.call.cmd = self.scripts.diagnosis(request.call.step, &request.call.cmd);
                request.form = Form::Diagnosis;
                return Next::SendAgain(request);
            }
            Err(Failure::NoScript | Failure::WrongType) => (Err(server_changed(operation)), Next::GoOn),
            Err(Failure::Answered(error)) => (Err(error), Next::GoOn),
            Err(Failure::Broken(error)) => (Err(error), Next::End),
        };
        // The caller may have stopped waiting.
        drop(request.reply.send(answer));
        next
    }
}

/// Answers every request in the queue with the error of a connection that could not be made: nothing was sent.
fn refuse_all(requests: &mut mpsc::UnboundedReceiver<QueuedCall>, error: &StoreError) {
    requests.close();
    while let Ok(request) = requests.try_recv() {
        let operation = request.call.step.name();
        let reason = error.to_string();
        drop(request.reply.send(Err(match error {
            StoreError::Refused { .. } => StoreError::Refused { operation, reason },
            StoreError::Denied { reason, .. } => StoreError::Denied { operation, reason: reason.clone() },
            StoreError::Unavailable { reason, .. } => StoreError::Refused { operation, reason: reason.clone() },
            _ => StoreError::Other { operation, source: reason.into() },
        })));
    }
}
