//! One line, and the requests on their way over it: from their sending to their answer they have a place on it.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_util::future::{BoxFuture, ready};
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::runtime::Id;
use tokio::sync::{mpsc, oneshot};

use super::confirm::Confirm;
use super::connect::{self, Connection, Connector};
use super::errors::{Failure, classify, not_sent, server_changed};
use super::scripts::{Form, ScriptCall};
use super::stream::LastByte;
use crate::store::StoreError;

/// One line, for those who send over it. It closes when the last of them is gone.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) queue: mpsc::UnboundedSender<Message>,
    /// Where its task runs.
    pub(super) runtime: Id,
    pub(super) state: Arc<LineState>,
    pub(super) pool: Weak<Pool>,
    pub(super) connector: Arc<Connector>,
}

/// Lines that anybody may take.
pub(super) type Pool = Mutex<Vec<Arc<Line>>>;

impl Line {
    /// Nothing new goes over this line. Its server may be no master any more.
    pub(super) fn retire(&self) {
        self.state.leave(&self.pool, |_| true);
        self.connector.doubt();
    }
}

/// What is known of a line.
#[derive(Debug, Default)]
pub(super) struct LineState {
    in_flight: AtomicUsize,
    is_broken: AtomicBool,
    /// How many requests wait in the queue, or are about to be sent from there.
    queued: AtomicUsize,
    /// A request was sent since the task looked last.
    is_used: AtomicBool,
    /// The connection, once it exists: before that, nothing has left the program. The task keeps it.
    exchange: Mutex<Option<Weak<Exchange>>>,
    /// Why nothing leaves any more.
    pub(super) refusal: OnceLock<StoreError>,
    pub(super) last_byte: LastByte,
}

impl LineState {
    /// Takes the line out of its pool, if this is so.
    pub(super) fn leave(&self, pool: &Weak<Pool>, is_so: fn(&Self) -> bool) {
        let Some(pool) = pool.upgrade() else { return };
        let is_this = |line: &mut Arc<Line>| std::ptr::eq(&*line.state, self) && is_so(self);
        let gone: Vec<_> = pool.lock().unwrap_or_else(PoisonError::into_inner).extract_if(.., is_this).collect();
        // Not under the lock: the last user of a line drops what waits in its queue.
        drop(gone);
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn began(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// A request is about to enter the queue.
    pub(super) fn queues(&self) {
        self.queued.fetch_add(1, Ordering::SeqCst);
    }

    /// A request has left the queue: what is sent from now on is behind it.
    pub(super) fn left_queue(&self) {
        self.queued.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn used(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Whether a request was sent since this was asked last.
    pub(super) fn was_used(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    /// Where a request can be sent past the queue: no other one waits there, and the connection works for all that is known.
    pub(super) fn open_exchange(&self) -> Option<Arc<Exchange>> {
        let is_open = self.queued.load(Ordering::SeqCst) == 0 && !self.is_broken() && self.last_byte.is_recent();
        let exchange = self.exchange().as_ref().filter(|_| is_open)?.upgrade()?;
        (!exchange.connection.ended.is_cancelled()).then_some(exchange)
    }

    /// Notes that the connection exists: from now on requests leave.
    pub(super) fn connected(&self, exchange: &Arc<Exchange>) {
        *self.exchange() = Some(Arc::downgrade(exchange));
    }

    fn exchange(&self) -> MutexGuard<'_, Option<Weak<Exchange>>> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back the requests of this user, if none can have left because the connection is still being made. Returns
    /// whether it did.
    pub(super) fn take_back(&self, course: &Course) -> bool {
        let exchange = self.exchange();
        if exchange.is_none() {
            course.is_taken_back.store(true, Ordering::Release);
            course.is_given_up.store(true, Ordering::Release);
        }
        exchange.is_none()
    }

    /// The connection broke, or could not be made.
    pub(super) fn break_off(&self) {
        self.is_broken.store(true, Ordering::Release);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }
}

/// What those who send over a line tell its task.
pub(super) enum Message {
    Call(QueuedCall),
    /// Nobody waits for this response any more. The request has its place on the line until it comes.
    Adopt(BoxFuture<'static, Response>),
    /// The connection is of no use any more.
    End(StoreError),
}

/// A call on its way to the server.
#[derive(Debug)]
pub(super) struct QueuedCall {
    pub(super) call: ScriptCall,
    pub(super) reply: oneshot::Sender<Result<Value, StoreError>>,
    /// Behind `reply`: the answer is there before its place on the line is free.
    pub(super) ticket: Ticket,
}

impl QueuedCall {
    /// Answers a call that was not sent.
    pub(super) fn refuse(self, error: &StoreError) {
        let operation = self.call.step.name();
        // The caller may have stopped waiting.
        drop(self.reply.send(Err(not_sent(operation, error))));
    }
}

/// How the requests of one user go.
#[derive(Debug, Default)]
pub(super) struct Course {
    route: Mutex<Route>,
    pub(super) is_given_up: AtomicBool,
    /// None of the requests left the program, and none will.
    pub(super) is_taken_back: AtomicBool,
}

/// Where the requests of one user are.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// The line of the requests in flight.
    pub(super) line: Option<Arc<Line>>,
    pub(super) in_flight: usize,
    /// The line of the last request.
    pub(super) last: Option<Arc<LineState>>,
}

impl Course {
    pub(super) fn lock(&self) -> MutexGuard<'_, Route> {
        self.route.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one request on its line, from its sending to its answer.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) line: Arc<LineState>,
    pub(super) course: Arc<Course>,
}

impl Ticket {
    /// Whether the user has given up all its requests.
    pub(super) fn is_given_up(&self) -> bool {
        self.course.is_given_up.load(Ordering::Acquire)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.line.ended();
        let mut route = self.course.lock();
        route.in_flight -= 1;
        let left = if route.in_flight == 0 { route.line.take() } else { None };
        drop(route);
        // Not under the lock: the last user of a line drops what waits in its queue.
        drop(left);
    }
}

/// What came back for a request.
pub(super) struct Response {
    request: QueuedCall,
    answer: RedisResult<Value>,
    /// The answer to the `WAIT` behind it.
    confirmation: Option<RedisResult<Value>>,
}

/// What is to do after a response.
pub(super) enum Next {
    GoOn,
    SendAgain(Box<QueuedCall>),
    /// The connection is of no use any more, for this reason.
    End(StoreError),
}

/// Sends requests and handles their responses.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) connection: Connection,
    pub(super) confirm: Option<Confirm>,
}

impl Exchange {
    /// Hands a request to the client library, behind all earlier ones.
    pub(super) fn send(&self, request: QueuedCall) -> BoxFuture<'static, Response> {
        let mut connection = self.connection.clone();
        let confirm = self.confirm.filter(|_| request.call.form != Form::Diagnosis);
        // Unconstrained, or the first poll might leave it out of the client's queue, where later requests would overtake it.
        let mut sending = Box::pin(tokio::task::unconstrained(async move {
            let sent = send_with(&mut connection, &request.call.cmd, confirm).await;
            let (answer, confirmation) = sent.unwrap_or_else(|error| (Err(error), None));
            Response { request, answer, confirmation }
        }));
        match sending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(response) => Box::pin(ready(response)),
            Poll::Pending => sending,
        }
    }

    /// Passes the answer on to the caller. A script that the server does not know is sent in full, behind what is in
    /// flight: rules 6, 7 and 18 allow the server to execute scripts in another order.
    pub(super) fn handle(&self, Response { mut request, answer, confirmation }: Response) -> Next {
        let operation = request.call.step.name();
        let answer = answer.map_err(|error| classify(operation, Some(&request.call), &error));
        let answer = answer.and_then(|value| match self.confirm.zip(confirmation) {
            Some((confirm, confirmation)) => confirm.check(operation, confirmation).map(|()| value),
            None => Ok(value),
        });
        let (answer, next) = match answer {
            // The wrong type that this diagnosis was to name is gone.
            Ok(_) if request.call.form == Form::Diagnosis => (Err(server_changed(operation)), Next::GoOn),
            Ok(value) => (Ok(value), Next::GoOn),
            Err(failure) if failure.asks_again(&mut request.call) => return Next::SendAgain(Box::new(request)),
            Err(Failure::NoScript | Failure::WrongType) => (Err(server_changed(operation)), Next::GoOn),
            Err(Failure::Answered(error)) => (Err(error), Next::GoOn),
            Err(Failure::Broken(error)) => {
                let reason = not_sent("connect", &error);
                (Err(error), Next::End(reason))
            }
        };
        // The caller may have stopped waiting.
        drop(request.reply.send(answer));
        next
    }
}

/// Sends a step, and the `WAIT` of `confirm`, in one write. Returns the answers of the step and of the
/// `WAIT`. An error is one of the connection.
async fn send_with(
    connection: &mut Connection,
    step: &Cmd,
    confirm: Option<Confirm>,
) -> RedisResult<(RedisResult<Value>, Option<RedisResult<Value>>)> {
    let Some(confirm) = confirm else { return Ok((connect::send(connection, step).await, None)) };
    let mut both = Pipeline::with_capacity(2);
    both.add_command(step.clone()).add_command(confirm.command());
    let mut answers = connect::send_all(connection, &both).await?.into_iter();
    let answer_of = |answer: Option<RedisResult<Value>>| answer.unwrap_or(Ok(Value::Nil));
    Ok((answer_of(answers.next()), Some(answer_of(answers.next()))))
}
