//! The ordered connection of a link or producer: its requests go out in order over the lines that it shares with
//! others (`lines`), and their answers come back in order.
//!
//! A request is in flight as soon as [`OrderedConnection::ask`] returns: it is in the queue of a line. Dropping an
//! `OrderedConnection` with requests in flight gives them up and retires their line. Requests of it that were sent may
//! still arrive, and their answers never do; those that were not sent never are.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::Value;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::oneshot;

use super::line::{Course, Exchange, Line, Message, Next, QueuedCall, Response, Ticket};
use super::lines::Lines;
use super::reply::Reply;
use super::scripts::ScriptCall;
use super::shards::{Server, Shards};
use super::slots::Slot;
use crate::store::StoreError;

/// A connection to the server that keeps the order of its requests.
#[derive(Debug, Clone)]
pub(super) struct OrderedConnection(Arc<User>);

/// What happens to requests after the line of earlier ones broke while none of them was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterBreak {
    /// The next request fails, so that its sender learns of it: a node reconciles (rule 7).
    Fail,
    /// They go over another line.
    GoOn,
}

#[derive(Debug)]
struct User {
    shards: Arc<Shards>,
    slot: Slot,
    lines: fn(&Server) -> &Lines,
    after_break: AfterBreak,
    course: Arc<Course>,
}

impl Drop for User {
    fn drop(&mut self) {
        self.course.is_given_up.store(true, Ordering::Release);
        if self.course.is_taken_back.load(Ordering::Acquire) {
            return; // nothing of it can leave, so the line, which still connects, serves the next user
        }
        let line = self.course.lock().line.clone();
        if let Some(line) = line {
            line.retire();
        }
    }
}

impl OrderedConnection {
    /// A connection over these lines of the server that has this slot.
    pub(super) fn new(shards: Arc<Shards>, slot: Slot, lines: fn(&Server) -> &Lines, after_break: AfterBreak) -> Self {
        Self(Arc::new(User { shards, slot, lines, after_break, course: Arc::default() }))
    }

    /// Sends a call. The returned future only waits for the answer; dropping it does not stop the call.
    pub(super) fn ask(&self, call: ScriptCall) -> impl Future<Output = Result<Value, StoreError>> + Send + use<> {
        let operation = call.step.name();
        let (reply, mut answer) = oneshot::channel();
        let mut direct = self.send(call.complete(), reply);
        let course = Arc::clone(&self.0.course);
        poll_fn(move |cx| {
            if course.is_taken_back.load(Ordering::Acquire) {
                return Poll::Ready(Err(StoreError::NotSent { operation, reason: TOO_SLOW.into() }));
            }
            if let Some(direct) = &mut direct {
                ready!(direct.poll(cx));
            }
            Pin::new(&mut answer).poll(cx).map(|answer| answer.unwrap_or_else(|_| Err(lost(operation))))
        })
    }

    /// Takes back every request, if none can have left because the connection is still being made: each answer is then
    /// [`NotSent`](StoreError::NotSent). Returns whether it did.
    pub(super) fn take_back(&self) -> bool {
        let course = &self.0.course;
        let line = course.lock().line.as_ref().map(|line| Arc::clone(&line.state));
        line.is_some_and(|line| line.take_back(course))
    }

    /// Sends a call whose answer is a list.
    pub(super) fn ask_list(&self, call: ScriptCall) -> impl Future<Output = Result<Reply, StoreError>> + Send + use<> {
        let operation = call.step.name();
        let answer = self.ask(call);
        async move { Reply::list(operation, answer.await?) }
    }

    /// For how long no byte has come over the line of the requests in flight. Zero if every answer is there: the caller may
    /// not have read it yet, and must not take it for late.
    pub(super) fn silent_for(&self) -> Duration {
        let route = self.0.course.lock();
        route.line.as_ref().map_or(Duration::ZERO, |line| line.state.last_byte.silent_for())
    }

    fn send(&self, call: ScriptCall, reply: oneshot::Sender<Result<Value, StoreError>>) -> Option<Direct> {
        let user = &*self.0;
        let mut route = user.course.lock();
        let line = match &route.line {
            Some(line) => {
                line.state.began();
                Arc::clone(line)
            }
            None => {
                let broken = route.last.as_ref().map(|last| last.is_broken());
                if broken == Some(true) && user.after_break == AfterBreak::Fail {
                    return None; // dropping `reply` says that the connection was lost
                }
                let line = (user.lines)(&user.shards.of(user.slot)).take();
                route.last = Some(Arc::clone(&line.state));
                route.line = Some(Arc::clone(&line));
                line
            }
        };
        route.in_flight += 1;
        let ticket = Ticket { line: Arc::clone(&line.state), course: Arc::clone(&user.course) };
        let request = QueuedCall { call, reply, ticket };
        if user.after_break == AfterBreak::GoOn
            && let Some(exchange) = line.state.open_exchange()
        {
            line.state.used();
            let sent = Some(exchange.send(request));
            return Some(Direct { sent, exchange, line: Arc::clone(&line) });
        }
        line.state.queues();
        let unsent = line.queue.send(Message::Call(request)).err();
        drop(route);
        // The task of the line has ended. Dropping the request takes the lock.
        if let Some((SendError(Message::Call(unsent)), error)) = unsent.zip(line.state.refusal.get()) {
            unsent.refuse(error);
        }
        None
    }
}

/// A request that was sent past the queue of its line.
struct Direct {
    /// `None` once the response is there.
    sent: Option<BoxFuture<'static, Response>>,
    exchange: Arc<Exchange>,
    line: Arc<Line>,
}

impl Direct {
    /// Ready once the request has its answer, or is left to the line.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(sent) = &mut self.sent else { return Poll::Ready(()) };
        let response = ready!(sent.as_mut().poll(cx));
        self.sent = None;
        let left = match self.exchange.handle(response) {
            Next::GoOn => return Poll::Ready(()),
            Next::SendAgain(request) => {
                self.line.state.queues();
                Message::Call(*request)
            }
            Next::End(error) => Message::End(error),
        };
        // If the task of the line has ended, so has the connection.
        drop(self.line.queue.send(left));
        Poll::Ready(())
    }
}

/// The request keeps its place on the line until its response comes.
impl Drop for Direct {
    fn drop(&mut self) {
        if let Some(sent) = self.sent.take() {
            drop(self.line.queue.send(Message::Adopt(sent)));
        }
    }
}

/// Why a connection is missing that took longer than its caller waits. A firewall that drops packets is the usual cause.
const TOO_SLOW: &str = "no connection was made in time (are host and port in the URL right, is it the TLS port if and only if \
                        the URL begins with rediss://, and does a firewall let this program through?)";

fn lost(operation: &'static str) -> StoreError {
    StoreError::Unavailable { operation, reason: "the connection was lost before the answer came".into() }
}
