//! The task that sends the requests of one topic's callers to the store, as batches.
//!
//! The adds of many callers become few batches: a request that arrives while a batch is in flight goes with the next one,
//! without any timer. The coalescer sends a batch beside an unanswered one if it is full or cannot grow, up to 16 of them; and a
//! second one if as many requests wait as are unanswered, so that store and callers need not wait for each other. Callers that
//! were answered together usually add again at once, so the next batch waits until they had their turn on the thread.
//!
//! This is the sending side of rule 18. The coalescer numbers batches in the order in which it sends them. After a pause it
//! repeats every batch that was refused or not answered, in order and under its own number. A batch that the store answered
//! *late* gets a new number. Number n + 16 is not sent before n has its final answer. A caller whose deadline passes
//! receives *not done* or *unknown*, and so do the callers of a batch that the store refused twice because it is full. A batch whose
//! callers have all gone is not repeated; its answer is still read, because only silence for `call_timeout` makes a connection
//! useless.
//!
//! When no answer comes for `call_timeout`, or the connection is lost, the coalescer drops its producer and makes a new
//! one. The store may execute late what was in flight on the old one; the numbers make that harmless. What never left, because
//! there was no connection yet, is taken back first, so that its callers learn that it was not done. The task ends when its
//! inbox is closed and every request has an answer, at the latest when every deadline has passed. `restart` starts it again after
//! a panic.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::batch::{AddMeter, Batch, BatchQueue, Received, Upload};
use super::inbox::{Inbox, WakeAt};
use super::request::{Deadline, Posted};
use super::retries::Retries;
use super::seat::Bell;
use crate::environment::{Environment, or_never};
use crate::job::ProducerId;
use crate::store::step::MAX_JOBS;
use crate::store::{CALL_SLOTS, Party, Producer, Store, StoreError};

/// How long an answer may take over a connection that the coalescer has left behind on the user's runtime.
const STUCK_AFTER: Duration = Duration::from_millis(500);

/// How many batches may be unanswered when one goes out that is not full.
const MAX_BESIDE: usize = 2;

/// How many requests such a batch has at least.
const FEWEST_BESIDE: usize = 16;

/// Whether new batches may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendState {
    /// They may.
    Open,
    /// The store refused a batch: the coalescer reads the other answers first, so that it repeats all batches in order.
    Draining,
    /// The coalescer sends nothing until this time of the node's clock; then it repeats every unanswered batch.
    Paused(Duration),
    /// The coalescer reads the answers to the repeats first: batches that were late go before new ones.
    Repeating,
}

pub(super) struct Coalescer {
    pub(super) inbox: Arc<Inbox>,
    pub(super) store: Arc<dyn Store>,
    pub(super) environment: Environment,
    pub(super) retries: Retries,
    /// How often a task of the provider has panicked.
    pub(super) restarts: Arc<AtomicU64>,
    /// Its part in the outages of its node.
    pub(super) party: Arc<Party>,
    /// What wakes it, if it may run on the user's runtime.
    pub(super) bell: Option<Arc<Bell>>,
    id: ProducerId,
    producer: Option<Arc<dyn Producer>>,
    last_number: u64,
    pub(super) queue: BatchQueue,
    /// Batches without a final answer, in order of their numbers.
    pub(super) in_flight: VecDeque<Batch>,
    send_state: SendState,
    /// The last error of the store since its last answer, for callers whose request was not sent.
    last_error: Option<Arc<StoreError>>,
    /// Since when no answer has come, while the coalescer awaits one.
    quiet_since: Duration,
    /// No caller's deadline is before this.
    next_deadline: Duration,
    alarm: Option<(Duration, BoxFuture<'static, ()>)>,
    upload: Upload,
    meter: AddMeter,
    /// How many callers were answered last, until others had the time to join the next batch.
    expected: usize,
    /// Requests on their way from the inbox to the queue; kept for its capacity.
    pub(super) taken: VecDeque<Posted>,
}

impl Coalescer {
    /// The coalescer of `inbox`, under a new identity.
    pub(super) fn new(
        inbox: Arc<Inbox>,
        store: Arc<dyn Store>,
        environment: Environment,
        retries: Retries,
        restarts: Arc<AtomicU64>,
        party: Arc<Party>,
    ) -> Self {
        let meter = AddMeter::new(inbox.key.topic.as_str());
        Self {
            id: environment.producer_id(),
            queue: BatchQueue::new(environment.random()),
            environment,
            inbox,
            store,
            upload: Upload::new(retries.call_timeout),
            meter,
            retries,
            restarts,
            party,
            bell: None,
            producer: None,
            last_number: 0,
            in_flight: VecDeque::new(),
            send_state: SendState::Open,
            last_error: None,
            quiet_since: Duration::ZERO,
            next_deadline: Duration::MAX,
            alarm: None,
            expected: 0,
            taken: VecDeque::new(),
        }
    }

    /// Sends requests until the inbox is closed and every request has an answer.
    pub(super) async fn work(&mut self) {
        loop {
            let now = self.environment.now();
            self.collect();
            self.give_up(now);
            self.update_send_state(now);
            if self.expects_more() {
                // The callers of the last batch are about to add again: they join this one.
                self.expected = 0;
                if let Some(bell) = &self.bell {
                    bell.is_busy.store(true, SeqCst); // a handler may block this thread before the next poll
                }
                tokio::task::yield_now().await;
                continue;
            }
            self.send_waiting(now);
            if self.is_idle() {
                self.party.rests();
                if self.inbox.is_closed_and_empty() {
                    return;
                }
            }
            self.set_alarm();
            if let Some(bell) = &self.bell {
                bell.is_busy.store(!self.is_idle(), SeqCst);
            }
            if self.inbox.wake_at(self.wake_at()) {
                continue;
            }
            tokio::select! {
                biased;
                (index, received) = next_answer(&mut self.in_flight) => self.receive(index, received),
                () = or_never(self.alarm.as_mut().map(|(_, alarm)| alarm)) => self.alarm = None,
                () = self.inbox.wake.notified() => {}
            }
        }
    }

    fn collect(&mut self) {
        self.inbox.take(&mut self.taken);
        while let Some(posted) = self.taken.pop_front() {
            self.next_deadline = self.next_deadline.min(posted.deadline.at);
            self.queue.push(posted, self.upload.bytes());
        }
    }

    fn give_up(&mut self, now: Duration) {
        if now < self.next_deadline {
            return;
        }
        if self.in_flight.iter().any(|batch| batch.awaits_answer() && batch.is_given_up(now)) {
            self.take_back(now);
        }
        self.queue.give_up(now, self.last_error.as_ref());
        let (mut unresponsive, most) = (false, self.answer_within());
        let closed = self.inbox.is_closed_and_empty();
        self.in_flight.retain_mut(|batch| {
            let awaits_answer = batch.awaits_answer();
            let over = batch.give_up(now, Deadline::no_answer);
            // Callers that wait for less than `call_timeout` do not make the store late: the connection stays.
            let is_young = awaits_answer && !closed && now < batch.sent + most;
            unresponsive |= over && awaits_answer && !is_young;
            !over || is_young
        });
        let in_flight = self.in_flight.iter().filter_map(Batch::earliest_deadline).min();
        let earliest = in_flight.into_iter().chain(self.queue.earliest_deadline()).min();
        self.next_deadline = earliest.unwrap_or(Duration::MAX);
        if unresponsive {
            self.drop_producer(now);
        }
    }

    fn awaits_answers(&self) -> bool {
        self.in_flight.iter().any(Batch::awaits_answer)
    }

    fn update_send_state(&mut self, now: Duration) {
        match self.send_state {
            SendState::Paused(until) if until <= now => self.repeat(now),
            SendState::Paused(_) => {}
            SendState::Draining if !self.awaits_answers() => self.pause(now),
            SendState::Repeating if !self.awaits_answers() => self.send_state = SendState::Open,
            SendState::Open | SendState::Draining | SendState::Repeating => {
                let waited = self.answer_within();
                if !self.awaits_answers() || self.quiet_since + waited > now {
                    return;
                }
                // Bytes for another topic come over the same connection: it works, and these answers are behind them.
                let silent_for = self.producer.as_ref().and_then(|producer| producer.silent_for());
                if let Some(silence) = silent_for.filter(|silence| *silence < waited) {
                    self.quiet_since = now.saturating_sub(silence);
                } else {
                    let reason = self.retries.no_answer(waited);
                    self.failed(&StoreError::Unavailable { operation: "adds and commands", reason });
                    self.upload.timed_out();
                    self.drop_producer(now);
                }
            }
        }
    }

    /// Drops a producer whose batches cannot have left, because it has no connection yet.
    fn take_back(&mut self, now: Duration) {
        if self.producer.as_ref().is_some_and(|producer| producer.take_back()) {
            self.drop_producer(now);
        }
    }

    /// Drops a producer that does not work any more, with the answers that it still owes. Those that have come by now count:
    /// they may say that a batch never left.
    fn drop_producer(&mut self, now: Duration) {
        if let Some(producer) = self.producer.take() {
            producer.take_back();
        }
        // Unconstrained, or tokio might hold back an answer that has come.
        while let Some((index, received)) = tokio::task::unconstrained(next_answer(&mut self.in_flight)).now_or_never()
        {
            self.read(index, received);
        }
        self.in_flight.retain(Batch::has_callers);
        for batch in &mut self.in_flight {
            batch.forget_answer();
        }
        self.pause(now);
    }

    fn pause(&mut self, now: Duration) {
        self.send_state = SendState::Paused(now + self.retries.pause_after_failure(&self.environment));
    }

    /// Sends every unanswered batch again, in order and under its own number.
    fn repeat(&mut self, now: Duration) {
        self.send_state = SendState::Repeating;
        self.quiet_since = now;
        if self.in_flight.is_empty() {
            self.send_state = SendState::Open;
            return;
        }
        let producer = producer(&mut self.producer, &*self.store, &self.inbox, &self.id);
        for batch in &mut self.in_flight {
            batch.send(producer, now);
        }
    }

    fn may_send_next(&self) -> bool {
        self.in_flight.front().is_none_or(|first| self.last_number + 1 < first.number + CALL_SLOTS)
    }

    /// Whether fewer requests wait than were answered just now, and a batch is about to be sent: other callers are on their way.
    fn expects_more(&self) -> bool {
        let waiting = self.queue.growing();
        self.send_state == SendState::Open && 0 < waiting && waiting < self.expected && !self.may_send_full()
    }

    fn may_send_full(&self) -> bool {
        self.may_send_next() && self.queue.has_closed(self.upload.bytes())
    }

    /// How many requests must wait before a batch goes out that could still grow.
    fn enough(&self) -> usize {
        match self.in_flight.len() {
            0 => 1,
            batches if batches < MAX_BESIDE => self.in_flight.iter().map(Batch::len).sum::<usize>().max(FEWEST_BESIDE),
            _ => usize::MAX,
        }
    }

    fn send_waiting(&mut self, now: Duration) {
        if self.send_state != SendState::Open {
            return;
        }
        let enough = self.enough();
        while self.may_send_full() || self.may_send_next() && self.queue.growing() >= enough {
            let producer = producer(&mut self.producer, &*self.store, &self.inbox, &self.id);
            let Some(mut batch) = self.queue.next() else { break };
            if self.in_flight.is_empty() {
                self.quiet_since = now;
            }
            self.last_number += 1;
            batch.number = self.last_number;
            batch.send(producer, now);
            self.in_flight.push_back(batch);
        }
    }

    fn wake_at(&self) -> WakeAt {
        let before = self.alarm.as_ref().map_or(Duration::ZERO, |(at, _)| *at);
        match self.send_state {
            SendState::Open if self.in_flight.is_empty() => WakeAt { requests: 1, bytes: 0, before },
            SendState::Open if self.may_send_next() => {
                let missing = self.enough().saturating_sub(self.queue.growing());
                WakeAt { requests: missing.min(MAX_JOBS), bytes: self.upload.bytes(), before }
            }
            _ => WakeAt { requests: usize::MAX, bytes: usize::MAX, before },
        }
    }

    fn set_alarm(&mut self) {
        let answer = match self.send_state {
            SendState::Paused(until) => Some(until),
            _ => self.awaits_answers().then(|| self.quiet_since + self.answer_within()),
        };
        let Some(at) = answer.into_iter().chain(Some(self.next_deadline).filter(|_| !self.is_idle())).min() else {
            self.alarm = None;
            return;
        };
        if self.alarm.as_ref().is_none_or(|(set, _)| at < *set) {
            self.alarm = Some((at, self.sleep_until(at)));
        }
    }

    /// Waits until this time of the node's clock. A coalescer that may run on the user's runtime is woken by its guard, because
    /// the timers of that runtime end with it.
    pub(super) fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        let Some(bell) = &self.bell else { return self.environment.sleep_until(at) };
        bell.set_alarm(at);
        let environment = self.environment.clone();
        Box::pin(poll_fn(move |_| if environment.now() < at { Poll::Pending } else { Poll::Ready(()) }))
    }

    /// How long no answer may come. What was sent over a connection of the user's runtime may be stuck there once the coalescer
    /// has left that.
    fn answer_within(&self) -> Duration {
        let has_left = |bell: &Arc<Bell>| self.in_flight.front().is_some_and(|first| bell.has_left(first.sent));
        let whole = self.retries.call_timeout;
        if self.bell.as_ref().is_some_and(has_left) { whole.min(STUCK_AFTER) } else { whole }
    }

    fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.queue.is_empty()
    }

    fn receive(&mut self, index: usize, received: Received) {
        let now = self.environment.now();
        self.quiet_since = now;
        let Some(error) = self.read(index, received) else { return };
        if error.ends_connection() {
            self.drop_producer(now);
        } else if error.is_outage() && !matches!(self.send_state, SendState::Paused(_)) {
            self.send_state = SendState::Draining;
        }
    }

    /// Tells of an error of the store. Callers get one that no repeat can mend.
    fn failed(&self, error: &StoreError) {
        let topic = &self.inbox.key.topic;
        if error.is_outage() {
            tracing::debug!(%topic, %error, "adds and commands were not done, or had no answer; dq sends them again until `call_deadline` is over");
        } else {
            tracing::debug!(%topic, %error, "adds or commands were not done; their callers get the error");
        }
        if !error.is_of_topic() {
            self.party.failed(error);
        }
    }

    /// Takes the answer to a batch. A batch that has its outcome, or an error that no repeat can mend, is over. Returns the
    /// error.
    fn read(&mut self, index: usize, received: Received) -> Option<Arc<StoreError>> {
        match received {
            Received::Answered => {
                self.retries.succeeded();
                self.party.answered();
                self.last_error = None;
                if let Some(batch) = self.in_flight.remove(index) {
                    self.expected = batch.callers;
                    let now = self.environment.now();
                    self.upload.answered_after(now.saturating_sub(batch.sent));
                    batch.measure(&self.meter, now);
                    self.queue.recycle(batch);
                }
                None
            }
            Received::Late => {
                if let Some(batch) = self.in_flight.remove(index).filter(Batch::has_callers) {
                    self.queue.put_back(batch);
                }
                None
            }
            Received::Failed(error) => {
                self.failed(&error);
                self.last_error = Some(Arc::clone(&error));
                if self.in_flight.get(index).is_some_and(|batch| batch.is_over(&error)) {
                    // Dropping the batch answers its callers with the error.
                    drop(self.in_flight.remove(index));
                    if !error.passes() {
                        self.retries.succeeded(); // the next caller learns of it as soon
                    }
                }
                Some(error)
            }
        }
    }
}

fn producer<'a>(
    producer: &'a mut Option<Arc<dyn Producer>>,
    store: &dyn Store,
    inbox: &Inbox,
    id: &ProducerId,
) -> &'a dyn Producer {
    &**producer.get_or_insert_with(|| store.producer(&inbox.key, id))
}

/// Waits for the next answer to any batch in flight. Cancel safe.
async fn next_answer(in_flight: &mut VecDeque<Batch>) -> (usize, Received) {
    poll_fn(|cx| {
        for (index, batch) in in_flight.iter_mut().enumerate() {
            if let Poll::Ready(received) = batch.poll(cx) {
                return Poll::Ready((index, received));
            }
        }
        Poll::Pending
    })
    .await
}
