//! The task of one line: it connects, sends what is in its queue, in that order, and reads the answers.
//!
//! A producer whose connection exists sends past the queue, if that is empty, and reads the answer itself: no task runs between it
//! and the client library. What the task alone can do, it leaves to the task: sending again, ending the connection, and waiting for
//! an answer that nobody wants any more.
//!
//! When the connection breaks, falls silent for longer than any caller waits, or turns out to lead to a replica, the
//! task ends for good. Every request that is unanswered then is answered with
//! [`Unavailable`](StoreError::Unavailable).

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::stream::{FuturesOrdered, StreamExt};
use redis::AsyncConnectionConfig;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::confirm::Confirm;
use super::connect::{ANSWER_WITHIN, Connector};
use super::line::{Exchange, LineState, Message, Next, Pool};
use crate::environment::{Boottime, Clock, TokioClock};
use crate::store::StoreError;

/// How many requests the client library queues. More than ever wait, so that a request enters the queue when it is sent: those that
/// wait for room do not keep their order.
const MAX_QUEUED: usize = 1 << 16;

/// The task of a line.
pub(super) struct LineTask {
    pub(super) state: Arc<LineState>,
    pub(super) pool: Weak<Pool>,
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
        confirm: Option<Confirm>,
        mut requests: mpsc::UnboundedReceiver<Message>,
    ) {
        let guard = BreakOnDrop(Arc::clone(&self.state));
        // Callers watch for themselves whether bytes still come.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(MAX_QUEUED);
        let error = match connector.connect("connect", config, self.state.last_byte.clone()).await {
            Ok(connection) => {
                let exchange = Arc::new(Exchange { connection, confirm });
                self.state.connected(&exchange);
                match self.exchange(&exchange, &mut requests, connector.check_period).await {
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
        period: Duration,
    ) -> Option<StoreError> {
        let ended = &exchange.connection.ended;
        let lost = || StoreError::NotSent { operation: "connect", reason: "the connection was lost".into() };
        let mut in_flight = FuturesOrdered::new();
        // Under a paused clock no answer comes in time.
        let checks = !TokioClock::is_paused();
        let mut check = Boottime.sleep_until(Boottime.now() + period);
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
                    check = Boottime.sleep_until(Boottime.now() + period);
                    if self.state.in_flight() > 0 && self.state.last_byte.silent_for() >= ANSWER_WITHIN {
                        return Some(lost());
                    }
                    if !self.state.was_used() {
                        self.state.leave(&self.pool, |line| line.in_flight() == 0);
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
