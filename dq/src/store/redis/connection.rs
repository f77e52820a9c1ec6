//! The ordered connection of a link or producer: its requests go out in order over the lines that it shares with
//! others (`lines`), and their answers come back in order.
//!
//! A request is in flight as soon as [`OrderedConnection::ask`] returns: it is in the queue of a line. Dropping an
//! `OrderedConnection` with requests in flight gives them up and retires their line. Requests of it that were sent may
//! still be executed, and a future that still waits gets its answer; those that were not sent never are.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use redis::Value;
use tokio::sync::oneshot;

use super::line::{LineRefusal, LineUse, QueuedCall, TOO_SLOW};
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
    /// The use of the requests in flight, and what became of the line of the last one.
    last: Mutex<(Weak<LineUse>, LineRefusal)>,
}

impl Drop for User {
    fn drop(&mut self) {
        let Some(line_use) = self.use_in_flight() else { return };
        line_use.is_given_up.store(true, Ordering::Release);
        // Nothing that was taken back can leave, so its line, which still connects, serves the next user.
        if !line_use.is_taken_back() {
            line_use.line.retire();
        }
    }
}

impl User {
    /// The use of the requests in flight, or a new one.
    fn line_use(&self) -> Option<Arc<LineUse>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line_use) = last.0.upgrade() {
            return Some(line_use);
        }
        if last.1.get().is_some() && self.after_break == AfterBreak::Fail {
            return None;
        }
        let line = (self.lines)(&self.shards.of(self.slot)).take();
        let refusal = Arc::clone(&line.refusal);
        let line_use = Arc::new(LineUse { line, is_given_up: AtomicBool::default(), is_taken_back: OnceLock::new() });
        *last = (Arc::downgrade(&line_use), refusal);
        Some(line_use)
    }

    fn use_in_flight(&self) -> Option<Arc<LineUse>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).0.upgrade()
    }
}

impl OrderedConnection {
    /// A connection over these lines of the server that has this slot.
    pub(super) fn new(shards: Arc<Shards>, slot: Slot, lines: fn(&Server) -> &Lines, after_break: AfterBreak) -> Self {
        Self(Arc::new(User { shards, slot, lines, after_break, last: Mutex::default() }))
    }

    /// Sends a call. The returned future only waits for the answer; dropping it does not stop the call.
    pub(super) fn ask(&self, call: ScriptCall) -> impl Future<Output = Result<Value, StoreError>> + Send + use<> {
        let operation = call.step.name();
        let (reply, mut answer) = oneshot::channel();
        let line_use = self.send(call.complete(), reply);
        poll_fn(move |cx| match Pin::new(&mut answer).poll(cx) {
            Poll::Ready(answer) => Poll::Ready(answer.unwrap_or_else(|_| Err(lost(operation)))),
            Poll::Pending if line_use.upgrade().is_some_and(|line_use| line_use.is_taken_back()) => {
                Poll::Ready(Err(StoreError::NotSent { operation, reason: TOO_SLOW.into() }))
            }
            Poll::Pending => Poll::Pending,
        })
    }

    fn send(&self, call: ScriptCall, reply: oneshot::Sender<Result<Value, StoreError>>) -> Weak<LineUse> {
        // Dropping `reply` says that the connection was lost.
        let Some(line_use) = self.0.line_use() else { return Weak::new() };
        let request = QueuedCall { call, reply, line_use: Arc::clone(&line_use) };
        if let Err(unsent) = line_use.line.queue.send(request)
            && let Some(error) = line_use.line.refusal.get()
        {
            unsent.0.refuse(error); // the task of the line has ended
        }
        Arc::downgrade(&line_use)
    }

    /// Takes back every request, if none has left because the connection is still being made: each answer is then
    /// [`NotSent`](StoreError::NotSent). Returns whether it did.
    pub(super) fn take_back(&self) -> bool {
        let line_use = self.0.use_in_flight();
        line_use.is_some_and(|line_use| *line_use.is_taken_back.get_or_init(|| true))
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
        self.0.use_in_flight().map_or(Duration::ZERO, |line_use| line_use.line.last_byte.silent_for())
    }
}

fn lost(operation: &'static str) -> StoreError {
    StoreError::Unavailable { operation, reason: "the connection was lost before the answer came".into() }
}
