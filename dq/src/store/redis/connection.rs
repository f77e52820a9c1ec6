//! The ordered connection of a link or producer: requests go out in order, and answers come back in order.
//!
//! A request is in flight as soon as [`OrderedConnection::ask`] returns: it is in the queue of the connection's task,
//! which alone sends, in that order. When the connection breaks, falls silent or turns out to lead to a replica, the
//! task ends for good. Every request that is in flight then is answered with [`Unavailable`](StoreError::Unavailable),
//! every one that did not leave with [`NotSent`](StoreError::NotSent) (`progress`), and the caller opens another
//! connection. Dropping an `OrderedConnection` closes its connection to the server: requests that were sent may still
//! arrive, and their answers never do.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesOrdered, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, RedisResult, Value};
use tokio::sync::{mpsc, oneshot};

use super::confirm::{self, Confirm};
use super::connect::Connector;
use super::errors::{Failure, classify, server_changed};
use super::progress::Progress;
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

impl QueuedCall {
    /// Answers a call that was not sent.
    fn refuse(self, reason: &str) {
        let operation = self.call.step.name();
        // The caller may have stopped waiting.
        drop(self.reply.send(Err(StoreError::NotSent { operation, reason: reason.into() })));
    }
}

/// A connection to the server that keeps the order of its requests.
#[derive(Debug, Clone)]
pub(super) struct OrderedConnection {
    queue: mpsc::UnboundedSender<QueuedCall>,
    progress: Arc<Progress>,
}

impl OrderedConnection {
    /// Opens a connection in a task on the current runtime. With `confirm`, a request is answered once enough replicas
    /// have confirmed it.
    pub(super) fn open(connector: Arc<Connector>, scripts: Arc<Scripts>, confirm: Option<Confirm>) -> Self {
        let (queue, requests) = mpsc::unbounded_channel();
        let progress = Arc::<Progress>::default();
        super::spawn(run(connector, scripts, confirm, requests, Arc::clone(&progress)));
        Self { queue, progress }
    }

    /// Sends a call. The returned future only waits for the answer; dropping it does not stop the call.
    pub(super) fn ask(&self, call: ScriptCall) -> impl Future<Output = Result<Value, StoreError>> + Send + use<> {
        let operation = call.step.name();
        let (reply, mut answer) = oneshot::channel();
        let progress = Arc::clone(&self.progress);
        if let Err(unsent) = self.queue.send(QueuedCall { call, form: Form::Hash, reply }) {
            // The task has ended. The receiver is here, so this cannot fail.
            drop(unsent.0.reply.send(Err(progress.unsent(operation))));
        }
        poll_fn(move |cx| match progress.is_taken_back() {
            true => Poll::Ready(Err(progress.unsent(operation))),
            false => Pin::new(&mut answer).poll(cx).map(|answer| answer.unwrap_or_else(|_| Err(lost(operation)))),
        })
    }

    /// Takes back every call, if none can have left because the connection is still being made: each answer is then
    /// [`NotSent`](StoreError::NotSent). Returns whether it did.
    pub(super) fn take_back(&self) -> bool {
        self.progress.take_back()
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
    /// The connection is of no use any more, for this reason.
    End(String),
}

async fn run(
    connector: Arc<Connector>,
    scripts: Arc<Scripts>,
    confirm: Option<Confirm>,
    mut requests: mpsc::UnboundedReceiver<QueuedCall>,
    progress: Arc<Progress>,
) {
    let (pushes, mut pushed) = mpsc::unbounded_channel();
    let connection = match connector.connect_watched("connect", pushes).await {
        Ok(connection) if progress.connected() => connection,
        Ok(_) => return,
        Err(error) => return refuse_all(requests, &progress, &error).await,
    };
    let exchange = Exchange { connection, scripts, confirm };
    let mut in_flight = FuturesOrdered::new();
    let reason = loop {
        tokio::select! {
            biased;
            Some(response) = in_flight.next() => match exchange.handle(response) {
                Next::GoOn => {}
                Next::SendAgain(request) => in_flight.push_back(exchange.send(request)),
                Next::End(reason) => break reason,
            },
            // Behind the answers, which may have come before, and in front of requests, which would not arrive.
            () = disconnected(&mut pushed) => break LOST.into(),
            request = requests.recv() => match request {
                Some(request) if in_flight.is_empty() && is_lost(&mut pushed).await => {
                    request.refuse(LOST);
                    break LOST.into();
                }
                Some(request) => in_flight.push_back(exchange.send(request)),
                None => return,
            },
        }
    };
    refuse_all(requests, &progress, &StoreError::NotSent { operation: "connect", reason }).await;
}

const LOST: &str = "the connection was lost";

/// Whether an idle connection has been lost. The runtime reads the socket first: otherwise the request would leave on a
/// connection that has ended, and nobody could say what became of it.
async fn is_lost(pushed: &mut mpsc::UnboundedReceiver<PushInfo>) -> bool {
    tokio::task::yield_now().await;
    std::iter::from_fn(|| pushed.try_recv().ok()).any(|push| push.kind == PushKind::Disconnection)
}

/// Waits until the connection is lost. Cancel safe.
async fn disconnected(pushed: &mut mpsc::UnboundedReceiver<PushInfo>) {
    while pushed.recv().await.is_some_and(|push| push.kind != PushKind::Disconnection) {}
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
            let behind = request.call.behind.as_deref().filter(|_| request.form != Form::Diagnosis);
            let sent = confirm::send(&mut connection, &request.call.cmd, behind, confirm).await;
            let (answer, confirmation) = sent.unwrap_or_else(|error| (Err(error), None));
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
            Err(Failure::Broken(error)) => {
                let reason = match &error {
                    StoreError::Unavailable { reason, .. } | StoreError::Refused { reason, .. } => reason.clone(),
                    other => other.to_string(),
                };
                (Err(error), Next::End(reason))
            }
        };
        // The caller may have stopped waiting.
        drop(request.reply.send(answer));
        next
    }
}

/// Answers every request in the queue, and every later one, with the error of a connection that could not be made or was
/// lost before: nothing was sent.
async fn refuse_all(mut requests: mpsc::UnboundedReceiver<QueuedCall>, progress: &Progress, error: &StoreError) {
    progress.end(error);
    requests.close();
    while let Some(request) = requests.recv().await {
        // The caller may have stopped waiting.
        drop(request.reply.send(Err(progress.unsent(request.call.step.name()))));
    }
}
