//! The one task that talks to the store for the callers of a lane.
//!
//! Single adds of many callers become few requests: what arrives while a batch is under way goes with the next one, without
//! any timer. A second batch is sent beside an unanswered one only if it is full or cannot grow, up to 16.
//!
//! This is the sending side of PROTOCOL.md rule 18. Batches are numbered in the order in which they are sent; one that was
//! refused or not answered is sent again under its own number, all of them in order, after a pause; one that was answered
//! *late* gets a new number. Number n + 16 is not sent before n is over. A caller whose time is over is told whether that is
//! certain.
//!
//! When answers stay away for `call_timeout`, or the store says it is unreachable, the way to it is dropped and a new one
//! is made; what the old one still had under way may be executed late, which the numbers make harmless. The task ends when
//! its lane is closed and everything is answered, at the latest when every caller's time is over.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::DropGuard;

use super::batch::{BATCH_BYTES, Batch, Received, Spare};
use super::batches::BatchQueue;
use super::inbox::{Inbox, Request, WakeAt};
use super::pace::Pace;
use crate::environment::{Environment, Runtime};
use crate::job::ProducerId;
use crate::store::step::MOST_JOBS;
use crate::store::{CALL_SLOTS, Producer, Store, StoreError};

/// Whether new batches may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendState {
    /// They may.
    Fair,
    /// One was refused: the other answers are read first, so that all are repeated in order.
    Clearing,
    /// Nothing is sent until this time of the node's clock; then everything unanswered is repeated.
    Paused(Duration),
    /// The answers to the repeats are read first: those that are late go before anything new.
    Repeating,
}

pub(super) struct Coalescer {
    inbox: Arc<Inbox>,
    store: Arc<dyn Store>,
    environment: Environment,
    pace: Pace,
    id: ProducerId,
    producer: Option<Arc<dyn Producer>>,
    last_number: u64,
    batches: BatchQueue,
    /// Sent and not over, in order of their numbers.
    in_flight: VecDeque<Batch>,
    send_state: SendState,
    /// Since when an answer is awaited and none came.
    quiet_since: Duration,
    /// No caller's time is over before this.
    next_deadline: Duration,
    alarm: Option<(Duration, BoxFuture<'static, ()>)>,
    taken: Vec<Request>,
    spare: Spare,
}

impl Coalescer {
    /// Starts the task of `inbox`.
    pub(super) fn start(inbox: Arc<Inbox>, store: Arc<dyn Store>, environment: &Environment, pace: Pace) {
        let coalescer = Self {
            id: environment.producer_id(),
            batches: BatchQueue::new(environment.random()),
            environment: environment.clone(),
            inbox,
            store,
            pace,
            producer: None,
            last_number: 0,
            in_flight: VecDeque::new(),
            send_state: SendState::Fair,
            quiet_since: Duration::ZERO,
            next_deadline: Duration::MAX,
            alarm: None,
            taken: Vec::new(),
            spare: Spare::default(),
        };
        environment.spawn(Runtime::Own, coalescer.run());
    }

    async fn run(mut self) {
        let _ended: DropGuard = self.inbox.ended.clone().drop_guard();
        loop {
            let now = self.environment.now();
            self.collect();
            self.give_up(now);
            self.judge_send_state(now);
            let sent = self.send_waiting(now);
            if self.inbox.is_closed_and_empty() && self.batches.is_empty() && self.in_flight.is_empty() {
                return;
            }
            if sent {
                // Lets the other tasks of dq's thread run, and callers come together.
                tokio::task::yield_now().await;
            }
            self.set_alarm();
            if self.inbox.wake_at(self.wanted()) {
                continue;
            }
            tokio::select! {
                biased;
                (place, received) = next_answer(&mut self.in_flight) => self.receive(place, received),
                () = ring(&mut self.alarm) => self.alarm = None,
                () = self.inbox.wake.notified() => {}
            }
        }
    }

    fn collect(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        self.inbox.take(&mut taken);
        for entry in taken.drain(..) {
            self.next_deadline = self.next_deadline.min(entry.deadline());
            self.batches.push(entry, &mut self.spare);
        }
        self.taken = taken;
    }

    fn give_up(&mut self, now: Duration) {
        if now < self.next_deadline {
            return;
        }
        let waited = self.pace.call_total;
        self.batches.give_up(|batch| batch.give_up(now, waited));
        let mut unresponsive = false;
        self.in_flight.retain_mut(|batch| {
            let over = batch.give_up(now, waited);
            unresponsive |= over && batch.awaits_answer();
            !over
        });
        let in_flight = self.in_flight.iter().filter_map(Batch::earliest).min();
        self.next_deadline = in_flight.into_iter().chain(self.batches.earliest()).min().unwrap_or(Duration::MAX);
        if unresponsive {
            self.lose_way(now);
        }
    }

    fn awaits_answers(&self) -> bool {
        self.in_flight.iter().any(Batch::awaits_answer)
    }

    fn judge_send_state(&mut self, now: Duration) {
        match self.send_state {
            SendState::Paused(until) if until <= now => self.repeat(now),
            SendState::Paused(_) => {}
            SendState::Clearing if !self.awaits_answers() => self.pause(now),
            SendState::Repeating if !self.awaits_answers() => self.send_state = SendState::Fair,
            SendState::Fair | SendState::Clearing | SendState::Repeating => {
                if self.awaits_answers() && self.quiet_since + self.pace.call_timeout <= now {
                    tracing::warn!(topic = %self.inbox.key, waited = ?self.pace.call_timeout, "the store does not answer");
                    self.lose_way(now);
                }
            }
        }
    }

    /// The way to the store is broken: whatever it still carries is not heard of again.
    fn lose_way(&mut self, now: Duration) {
        for batch in &mut self.in_flight {
            batch.forget_answer();
        }
        self.producer = None;
        self.pause(now);
    }

    fn pause(&mut self, now: Duration) {
        self.send_state = SendState::Paused(now + self.pace.pause(&self.environment));
    }

    /// Everything unanswered again, in order, under its own numbers.
    fn repeat(&mut self, now: Duration) {
        self.send_state = SendState::Repeating;
        self.quiet_since = now;
        if self.in_flight.is_empty() {
            self.send_state = SendState::Fair;
            return;
        }
        let producer = producer(&mut self.producer, &*self.store, &self.inbox, &self.id);
        for batch in &mut self.in_flight {
            batch.send(producer);
        }
    }

    fn may_number(&self) -> bool {
        self.in_flight.front().is_none_or(|first| self.last_number + 1 < first.number + CALL_SLOTS)
    }

    fn send_waiting(&mut self, now: Duration) -> bool {
        if self.send_state != SendState::Fair {
            return false;
        }
        let alone = self.in_flight.is_empty();
        let mut sent = false;
        while self.may_number() && (alone || self.batches.has_closed()) {
            let Some(mut batch) = self.batches.next() else { break };
            if self.in_flight.is_empty() {
                self.quiet_since = now;
            }
            self.last_number += 1;
            batch.number = self.last_number;
            batch.send(producer(&mut self.producer, &*self.store, &self.inbox, &self.id));
            self.in_flight.push_back(batch);
            sent = true;
        }
        sent
    }

    fn wanted(&self) -> WakeAt {
        let before = self.alarm.as_ref().map_or(Duration::ZERO, |(at, _)| *at);
        match self.send_state {
            SendState::Fair if self.in_flight.is_empty() => WakeAt { entries: 1, bytes: 0, before },
            SendState::Fair if self.may_number() => WakeAt { entries: MOST_JOBS, bytes: BATCH_BYTES, before },
            _ => WakeAt { entries: usize::MAX, bytes: usize::MAX, before },
        }
    }

    fn set_alarm(&mut self) {
        let answer = match self.send_state {
            SendState::Paused(until) => Some(until),
            _ => self.awaits_answers().then(|| self.quiet_since + self.pace.call_timeout),
        };
        let Some(at) = answer.into_iter().chain(Some(self.next_deadline).filter(|_| !self.is_idle())).min() else {
            self.alarm = None;
            return;
        };
        if self.alarm.as_ref().is_none_or(|(set, _)| at < *set) {
            self.alarm = Some((at, self.environment.sleep_until(at)));
        }
    }

    fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.batches.is_empty()
    }

    fn receive(&mut self, place: usize, received: Received) {
        let now = self.environment.now();
        self.quiet_since = now;
        match received {
            Received::Answered => {
                self.pace.worked();
                if let Some(batch) = self.in_flight.remove(place) {
                    batch.recycle(&mut self.spare);
                }
            }
            Received::Late => {
                if let Some(batch) = self.in_flight.remove(place) {
                    self.batches.put_back(batch);
                }
            }
            Received::Failed(error) => self.fail(place, &error, now),
        }
    }

    fn fail(&mut self, place: usize, error: &StoreError, now: Duration) {
        tracing::warn!(topic = %self.inbox.key, %error, "a batch failed");
        match error {
            StoreError::Refused { .. } | StoreError::NotReplicated { .. } => {
                if !matches!(self.send_state, SendState::Paused(_)) {
                    self.send_state = SendState::Clearing;
                }
            }
            _ if error.is_outage() => self.lose_way(now),
            // Dropping the batch answers its callers with the error.
            _ => {
                drop(self.in_flight.remove(place));
                if matches!(error, StoreError::Denied { .. }) {
                    self.producer = None;
                }
            }
        }
    }
}

/// When the runtime drops the task, nobody may wait for it any more.
impl Drop for Coalescer {
    fn drop(&mut self) {
        self.inbox.close();
        self.inbox.take(&mut self.taken);
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

/// The first answer that is there, of any flying batch. Cancel safe.
async fn next_answer(in_flight: &mut VecDeque<Batch>) -> (usize, Received) {
    poll_fn(|cx| {
        for (place, batch) in in_flight.iter_mut().enumerate() {
            if let Poll::Ready(received) = batch.poll(cx) {
                return Poll::Ready((place, received));
            }
        }
        Poll::Pending
    })
    .await
}

async fn ring(alarm: &mut Option<(Duration, BoxFuture<'static, ()>)>) {
    match alarm {
        Some((_, ringing)) => ringing.await,
        None => std::future::pending().await,
    }
}
