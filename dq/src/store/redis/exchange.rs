//! The task of one line: it connects, sends what is in its queue, in that order, and reads the answers.
//!
//! The client library reads and writes within this task, so no other one runs between a request and the socket.
//!
//! When the connection breaks, falls silent for longer than any caller waits, or turns out to lead to a replica, the
//! task ends for good. Every request that is unanswered then is answered with
//! [`Unavailable`](StoreError::Unavailable).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Fuse, FusedFuture, ready};
use futures_util::task::AtomicWaker;
use redis::{AsyncConnectionConfig, Pipeline, Value};
use tokio::sync::mpsc;

use super::confirm::Confirm;
use super::connect::{self, ANSWER_WITHIN, Connection, Connector, Driver};
use super::errors::{Failure, classify, not_sent, server_changed};
use super::line::{Line, LineRefusal, Pool, QueuedCall, TOO_SLOW, leave};
use super::scripts::{Form, ScriptCall};
use super::stream::LastByte;
use crate::environment::{Boottime, Clock, TokioClock};
use crate::store::StoreError;

/// How many requests the client library queues. More than ever wait, so that a request enters the queue when it is sent: those that
/// wait for room do not keep their order.
const MAX_QUEUED: usize = 1 << 16;

/// The task of a line.
pub(super) struct LineTask {
    pub(super) refusal: LineRefusal,
    pub(super) last_byte: LastByte,
    pub(super) pool: Weak<Pool>,
    pub(super) requests: mpsc::UnboundedReceiver<QueuedCall>,
    /// Nobody uses the line any more.
    pub(super) is_unused: bool,
}

/// A task that ends in any other way than because nobody uses its line any more leaves a broken line. It answers every request in the
/// queue with the reason: nothing of these was sent.
impl Drop for LineTask {
    fn drop(&mut self) {
        if self.is_unused {
            return;
        }
        let error = self.refusal.get_or_init(lost);
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            request.refuse(error);
        }
    }
}

impl LineTask {
    pub(super) async fn run(mut self, connector: Arc<Connector>, confirm: Option<Confirm>) {
        // Callers watch for themselves whether bytes still come.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(MAX_QUEUED);
        let ended = match connector.connect("connect", config, self.last_byte.clone()).await {
            Ok((connection, driver)) => {
                let (driver, waker, in_flight) = (driver.fuse(), Arc::default(), VecDeque::new());
                let exchange = Exchange { connection, confirm, driver, waker, in_flight };
                self.exchange(exchange, connector.check_period).await
            }
            Err(error) => Some(error),
        };
        match ended {
            Some(error) => drop(self.refusal.set(error)),
            None => self.is_unused = true,
        }
    }

    /// Sends and reads until nobody uses the line any more, or until the connection is of no use, for the returned reason.
    async fn exchange(&mut self, mut exchange: Exchange, period: Duration) -> Option<StoreError> {
        // Under a paused clock no answer comes in time.
        let checks = !TokioClock::is_paused();
        let mut check = Boottime.sleep_until(Boottime.now() + period);
        let mut was_used = false;
        loop {
            tokio::select! {
                biased;
                reason = poll_fn(|cx| exchange.poll(cx)) => return Some(reason),
                request = self.requests.recv() => {
                    let request = request?;
                    if exchange.in_flight.is_empty() && self.is_lost(&mut exchange).await {
                        request.refuse(&lost());
                        return Some(lost());
                    }
                    was_used = true;
                    exchange.send(request);
                    while let Ok(request) = self.requests.try_recv() {
                        exchange.send(request);
                    }
                }
                () = &mut check, if checks => {
                    check = Boottime.sleep_until(Boottime.now() + period);
                    if !exchange.in_flight.is_empty() && self.last_byte.silent_for() >= ANSWER_WITHIN {
                        return Some(lost());
                    }
                    if !std::mem::take(&mut was_used) {
                        leave(&self.pool, &self.refusal, Line::is_free);
                    }
                }
            }
        }
    }

    /// Whether an idle connection has been lost. The runtime reads the socket first, unless bytes came just now: otherwise the
    /// request would leave on a connection that has ended, and nobody could say what became of it.
    async fn is_lost(&self, exchange: &mut Exchange) -> bool {
        if self.last_byte.is_recent() {
            return false;
        }
        tokio::task::yield_now().await;
        poll_fn(|cx| Poll::Ready(exchange.poll(cx).is_ready())).await
    }
}

fn lost() -> StoreError {
    StoreError::NotSent { operation: "connect", reason: "the connection was lost".into() }
}

/// Sends requests and handles their answers.
struct Exchange {
    connection: Connection,
    confirm: Option<Confirm>,
    driver: Fuse<Driver>,
    waker: Arc<DriverWaker>,
    /// In the order in which they were sent.
    in_flight: VecDeque<BoxFuture<'static, Next>>,
}

/// What is to do after an answer: send a request again, or nothing. The error ends the connection, for this reason.
type Next = Result<Option<QueuedCall>, StoreError>;

/// Lets the driver wake the task, except while the task itself hands it a request: it polls the driver right after that. A task that
/// wakes itself is queued once more, and a runtime with several threads wakes one of them for it.
#[derive(Default)]
struct DriverWaker {
    task: AtomicWaker,
    is_quiet: AtomicBool,
}

impl Wake for DriverWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_quiet.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

impl Exchange {
    /// Hands a request to the client library, after all earlier ones. [`poll`](Self::poll) then writes it.
    fn send(&mut self, request: QueuedCall) {
        // A caller that gave its link up wants nothing of it executed.
        if !request.line_use.may_send() {
            return request.refuse(&StoreError::NotSent { operation: "connect", reason: TOO_SLOW.into() });
        }
        let (mut connection, confirm) = (self.connection.clone(), self.confirm);
        // Unconstrained, or a poll might leave it out of the client's queue, where later requests would overtake it, or its answer there.
        let mut sending = Box::pin(tokio::task::unconstrained(async move {
            let answer = ask(&mut connection, &request.call, confirm).await;
            handle(request, answer)
        }));
        self.waker.is_quiet.store(true, Ordering::SeqCst);
        let sent = sending.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.waker.is_quiet.store(false, Ordering::SeqCst);
        self.in_flight.push_back(match sent {
            Poll::Ready(next) => Box::pin(ready(next)),
            Poll::Pending => sending,
        });
    }

    /// Writes, reads, and handles the answers. Ready once the connection is of no use any more, for this reason.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<StoreError> {
        self.waker.task.register(cx.waker());
        let waker = Waker::from(Arc::clone(&self.waker));
        loop {
            let _ = self.driver.poll_unpin(&mut Context::from_waker(&waker));
            let mut has_sent = false;
            // Only the driver brings an answer, so none has to wake the task.
            while let Some(Poll::Ready(next)) =
                self.in_flight.front_mut().map(|sent| sent.poll_unpin(&mut Context::from_waker(Waker::noop())))
            {
                self.in_flight.pop_front();
                match next {
                    Ok(None) => {}
                    Ok(Some(request)) => {
                        self.send(request);
                        has_sent = true;
                    }
                    Err(reason) => return Poll::Ready(reason),
                }
            }
            if !has_sent {
                return if self.driver.is_terminated() { Poll::Ready(lost()) } else { Poll::Pending };
            }
        }
    }
}

/// Sends a step, and the `WAIT` of `confirm`, in one write.
async fn ask(connection: &mut Connection, call: &ScriptCall, confirm: Option<Confirm>) -> Result<Value, Failure> {
    let operation = call.step.name();
    let failure = |error| classify(operation, Some(call), &error);
    let Some(confirm) = confirm.filter(|_| call.form != Form::Diagnosis) else {
        return connect::send(connection, &call.cmd).await.map_err(failure);
    };
    let mut both = Pipeline::with_capacity(2);
    both.add_command(call.cmd.clone()).add_command(confirm.command());
    let mut answers = connect::send_all(connection, &both).await.map_err(failure)?.into_iter();
    let mut next = || answers.next().unwrap_or(Ok(Value::Nil));
    let (answer, confirmation) = (next().map_err(failure)?, next());
    confirm.check(operation, confirmation).map(|()| answer)
}

/// Passes the answer on to the caller. A script that the server does not know is sent in full, after what is in
/// flight: rules 6, 7 and 18 allow the server to execute scripts in another order.
fn handle(mut request: QueuedCall, answer: Result<Value, Failure>) -> Next {
    let operation = request.call.step.name();
    let (answer, next) = match answer {
        // The wrong type that this diagnosis was to name is gone.
        Ok(_) if request.call.form == Form::Diagnosis => (Err(server_changed(operation)), Ok(None)),
        Ok(value) => (Ok(value), Ok(None)),
        Err(failure) if failure.asks_again(&mut request.call) => return Ok(Some(request)),
        Err(Failure::NoScript | Failure::WrongType) => (Err(server_changed(operation)), Ok(None)),
        Err(Failure::Answered(error)) => (Err(error), Ok(None)),
        Err(Failure::Broken(error)) => {
            let reason = not_sent("connect", &error);
            (Err(error), Err(reason))
        }
    };
    // The caller may have stopped waiting.
    drop(request.reply.send(answer));
    next
}
