//! The ordered connection of a link or producer: its requests go out in order over the lines that it shares with
//! others (`lines`), and their answers come back in order.
//!
//! A request is in flight as soon as [`OrderedConnection::ask`] returns: it is in the queue of a line. Dropping an
//! `OrderedConnection` with requests in flight gives them up and retires their line. Requests of it that were sent may
//! still arrive, and their answers never do; those that were not sent never are.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::sync::oneshot;

use super::line::{Course, QueuedCall, Ticket};
use super::lines::Lines;
use super::reply::Reply;
use super::scripts::ScriptCall;
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
    lines: Arc<Lines>,
    after_break: AfterBreak,
    /// Goes ahead of the first request, and of the first one after the line broke.
    first: Option<Cmd>,
    course: Arc<Course>,
}

impl Drop for User {
    fn drop(&mut self) {
        self.course.is_given_up.store(true, Ordering::Relaxed);
        let line = self.course.lock().line.clone();
        if let Some(line) = line {
            self.lines.retire(&line);
        }
    }
}

impl OrderedConnection {
    /// A connection over these lines. `first` goes ahead of its first request; its answer does not
    /// matter.
    pub(super) fn new(lines: Arc<Lines>, after_break: AfterBreak, first: Option<Cmd>) -> Self {
        Self(Arc::new(User { lines, after_break, first, course: Arc::default() }))
    }

    /// Sends a call. The returned future only waits for the answer; dropping it does not stop the call.
    pub(super) fn ask(&self, call: ScriptCall) -> impl Future<Output = Result<Value, StoreError>> + Send + use<> {
        let operation = call.step.name();
        let (reply, answer) = oneshot::channel();
        self.send(call, reply);
        async move { answer.await.unwrap_or_else(|_| Err(lost(operation))) }
    }

    /// Sends a call whose answer is a list.
    pub(super) fn ask_list(&self, call: ScriptCall) -> impl Future<Output = Result<Reply, StoreError>> + Send + use<> {
        let operation = call.step.name();
        let answer = self.ask(call);
        async move { Reply::list(operation, answer.await?) }
    }

    /// For how long no byte has come over the line of the requests in flight.
    pub(super) fn silent_for(&self) -> Option<Duration> {
        self.0.course.lock().line.as_ref().map(|line| line.state.last_byte.silent_for())
    }

    fn send(&self, call: ScriptCall, reply: oneshot::Sender<Result<Value, StoreError>>) {
        let user = &*self.0;
        let mut route = user.course.lock();
        let mut first = None;
        let line = match &route.line {
            Some(line) => {
                line.state.began();
                Arc::clone(line)
            }
            None => {
                let broken = route.last.as_ref().map(|last| last.is_broken());
                if broken == Some(true) && user.after_break == AfterBreak::Fail {
                    return; // dropping `reply` says that the connection was lost
                }
                first = user.first.clone().filter(|_| broken != Some(false));
                let line = user.lines.take();
                route.last = Some(Arc::clone(&line.state));
                route.line = Some(Arc::clone(&line));
                line
            }
        };
        route.in_flight += 1;
        let ticket = Ticket { line: Arc::clone(&line.state), course: Arc::clone(&user.course) };
        let unsent = line.queue.send(QueuedCall::new(call, first, reply, ticket)).err();
        drop(route);
        // The task of the line has ended. Dropping the request takes the lock, and says that the connection was lost.
        if let Some((unsent, error)) = unsent.zip(line.state.refusal.get()) {
            unsent.0.refuse(error);
        }
    }
}

fn lost(operation: &'static str) -> StoreError {
    StoreError::Unavailable { operation, reason: "the connection was lost before the answer came".into() }
}
