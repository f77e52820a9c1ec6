//! The task of one line: it connects, sends what is in its queue, in that order, and reads the answers.
//!
//! A producer whose connection exists sends past the queue, if that is empty, and reads the answer itself: no task runs between it
//! and the client library. What the task alone can do, it leaves to the task: sending again, ending the connection, and waiting for
//! an answer that nobody wants any more.
//!
//! When the connection breaks, falls silent for longer than any caller waits, or turns out to lead to a replica, the
//! task ends for good. Every request that is unanswered then is answered with
//! [`Unavailable`](StoreError::Unavailable).

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{FuturesOrdered, StreamExt};
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::confirm::Confirm;
use super::connect::{self, ANSWER_WITHIN, Connection, Connector, Purpose};
use super::errors::{Failure, classify, not_sent, server_changed};
use super::line::{Form, LineState, Message, QueuedCall};
use super::scripts::Scripts;
use crate::environment::{Boottime, Clock, TokioClock};
use crate::store::StoreError;

/// How often a line looks whether it is still used and still works. A line closes after one to two of these without a
/// request.
const CHECK_PERIOD: Duration = Duration::from_secs(30);

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

/// The task of a line.
pub(super) struct LineTask {
    pub(super) state: Arc<LineState>,
    /// Closes the line if no request of it is in flight.
    pub(super) close_if_idle: Box<dyn Fn() + Send + Sync>,
}

/// A task that ends in any other way than because nobody uses its line any more leaves a broken line.
struct BreakOnDrop(Arc<LineState>);

impl Drop for BreakOnDrop {
    fn drop(&mut self) {
        self.0.break_off();
    }
}

impl LineTask {
    pub(super) async fn run(
        self,
        connector: Arc<Connector>,
        scripts: Arc<Scripts>,
        confirm: Option<Confirm>,
        mut requests: mpsc::UnboundedReceiver<Message>,
    ) {
        let guard = BreakOnDrop(Arc::clone(&self.state));
        let error = match connector.connect("connect", Purpose::Line(self.state.last_byte.clone())).await {
            Ok(connection) => {
                self.state.connected();
                let exchange = Arc::new(Exchange { connection, scripts, confirm });
                let _ = self.state.exchange.set(Arc::downgrade(&exchange));
                match self.exchange(&exchange, &mut requests).await {
                    Some(error) => error,
                    None => return std::mem::forget(guard), // nobody uses the line any more
                }
            }
            Err(error) => error,
        };
        self.refuse_all(&mut requests, error);
    }

    /// Sends and reads until nobody uses the line any more, or until the connection is of no use, for the returned reason.
    async fn exchange(
        &self,
        exchange: &Exchange,
        requests: &mut mpsc::UnboundedReceiver<Message>,
    ) -> Option<StoreError> {
        let ended = &exchange.connection.ended;
        let lost = || StoreError::NotSent { operation: "connect", reason: "the connection was lost".into() };
        let mut in_flight = FuturesOrdered::new();
        // Under a paused clock no answer comes in time.
        let checks = !TokioClock::is_paused();
        let mut check = Boottime.sleep_until(Boottime.now() + CHECK_PERIOD);
        loop {
            tokio::select! {
                biased;
                Some(response) = in_flight.next() => match exchange.handle(response) {
                    Next::GoOn => {}
                    Next::SendAgain(request) => in_flight.push_back(exchange.send(*request)),
                    Next::End(error) => return Some(error),
                },
                request = requests.recv() => match request {
                    // A caller that gave its link up wants nothing of it executed.
                    Some(Message::Call(request)) if request.ticket.is_given_up() => self.state.left_queue(),
                    Some(Message::Call(request)) => {
                        if in_flight.is_empty() && self.is_lost(ended).await {
                            request.refuse(&lost());
                            return Some(lost());
                        }
                        self.state.used();
                        in_flight.push_back(exchange.send(request));
                        self.state.left_queue();
                    }
                    Some(Message::Adopt(response)) => in_flight.push_back(response),
                    Some(Message::End(error)) => return Some(error),
                    None => return None,
                },
                () = ended.cancelled(), if in_flight.is_empty() => return Some(lost()),
                () = &mut check, if checks => {
                    check = Boottime.sleep_until(Boottime.now() + CHECK_PERIOD);
                    if self.state.in_flight() > 0 && self.state.last_byte.silent_for() >= ANSWER_WITHIN {
                        return Some(lost());
                    }
                    if !self.state.was_used() {
                        (self.close_if_idle)();
                    }
                }
            }
        }
    }

    /// Whether an idle connection has been lost. The runtime reads the socket first, unless bytes came just now: otherwise the
    /// request would leave on a connection that has ended, and nobody could say what became of it.
    async fn is_lost(&self, ended: &CancellationToken) -> bool {
        if !self.state.last_byte.is_recent() {
            tokio::task::yield_now().await;
        }
        ended.is_cancelled()
    }

    /// Answers every request in the queue with the error of a connection that could not be made, or was lost before: nothing
    /// was sent.
    fn refuse_all(&self, requests: &mut mpsc::UnboundedReceiver<Message>, error: StoreError) {
        let error = self.state.refusal.get_or_init(|| error);
        self.state.break_off();
        requests.close();
        while let Ok(message) = requests.try_recv() {
            if let Message::Call(request) = message {
                request.refuse(error);
            }
        }
    }
}

/// Sends requests and handles their responses.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) connection: Connection,
    scripts: Arc<Scripts>,
    confirm: Option<Confirm>,
}

impl Exchange {
    /// Hands a request to the client library, behind all earlier ones.
    pub(super) fn send(&self, request: QueuedCall) -> BoxFuture<'static, Response> {
        let mut connection = self.connection.clone();
        let confirm = self.confirm.filter(|_| request.form != Form::Diagnosis);
        let mut sending = Box::pin(async move {
            let behind = request.call.behind.as_deref().filter(|_| request.form != Form::Diagnosis);
            let sent = send_with(&mut connection, &request.call.cmd, behind, confirm).await;
            let (answer, confirmation) = sent.unwrap_or_else(|error| (Err(error), None));
            Response { request, answer, confirmation }
        });
        match sending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(response) => Box::pin(ready(response)),
            Poll::Pending => sending,
        }
    }

    /// Passes the answer on to the caller. A script that the server does not know is sent in full, behind what is in
    /// flight: rules 6, 7 and 18 allow the server to execute scripts in another order.
    pub(super) fn handle(&self, Response { mut request, answer, confirmation }: Response) -> Next {
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
                return Next::SendAgain(Box::new(request));
            }
            Err(Failure::WrongType) if request.form != Form::Diagnosis => {
                request.call.cmd = self.scripts.diagnosis(request.call.step, &request.call.cmd);
                request.form = Form::Diagnosis;
                return Next::SendAgain(Box::new(request));
            }
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

/// Sends a step, what goes out behind it, and the `WAIT` of `confirm`, in one write. Returns the answers of the step and of the
/// `WAIT`. An error is one of the connection.
async fn send_with(
    connection: &mut Connection,
    step: &Cmd,
    behind: Option<&Cmd>,
    confirm: Option<Confirm>,
) -> RedisResult<(RedisResult<Value>, Option<RedisResult<Value>>)> {
    if behind.is_none() && confirm.is_none() {
        return Ok((connect::send(connection, step).await, None));
    }
    let mut all = Pipeline::with_capacity(3);
    all.add_command(step.clone());
    if let Some(behind) = behind {
        all.add_command(behind.clone());
    }
    if let Some(confirm) = confirm {
        all.add_command(confirm.command());
    }
    let mut answers = connect::send_all(connection, &all).await?.into_iter();
    let answer_of = |answer: Option<RedisResult<Value>>| answer.unwrap_or(Ok(Value::Nil));
    Ok((answer_of(answers.next()), confirm.map(|_| answer_of(answers.last()))))
}
