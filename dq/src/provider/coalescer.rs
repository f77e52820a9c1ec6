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

use super::batch::{BATCH_BYTES, Batch, Heard, Spare};
use super::lane::{Entry, Lane, WakeAt};
use super::line::Line;
use super::pace::Pace;
use crate::environment::{Environment, Place};
use crate::job::ProducerId;
use crate::store::step::MOST_JOBS;
use crate::store::{CALL_SLOTS, Producer, Store, StoreError};

/// Whether new batches may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
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
    lane: Arc<Lane>,
    store: Arc<dyn Store>,
    environment: Environment,
    pace: Pace,
    id: ProducerId,
    way: Option<Arc<dyn Producer>>,
    last_number: u64,
    line: Line,
    /// Sent and not over, in order of their numbers.
    flying: VecDeque<Batch>,
    weather: Weather,
    /// Since when an answer is awaited and none came.
    quiet_since: Duration,
    /// No caller's time is over before this.
    next_deadline: Duration,
    alarm: Option<(Duration, BoxFuture<'static, ()>)>,
    taken: Vec<Entry>,
    spare: Spare,
}

impl Coalescer {
    /// Starts the task of `lane`.
    pub(super) fn start(lane: Arc<Lane>, store: Arc<dyn Store>, environment: &Environment, pace: Pace) {
        let coalescer = Self {
            id: environment.producer_id(),
            line: Line::new(environment.random()),
            environment: environment.clone(),
            lane,
            store,
            pace,
            way: None,
            last_number: 0,
            flying: VecDeque::new(),
            weather: Weather::Fair,
            quiet_since: Duration::ZERO,
            next_deadline: Duration::MAX,
            alarm: None,
            taken: Vec::new(),
            spare: Spare::default(),
        };
        environment.spawn(Place::Link, coalescer.run());
    }

    async fn run(mut self) {
        let _ended: DropGuard = self.lane.ended.clone().drop_guard();
        loop {
            let now = self.environment.now();
            self.collect();
            self.give_up(now);
            self.judge_weather(now);
            let sent = self.send_waiting(now);
            if self.lane.is_closed_and_empty() && self.line.is_empty() && self.flying.is_empty() {
                return;
            }
            if sent {
                // Lets the other tasks of dq's thread run, and callers come together.
                tokio::task::yield_now().await;
            }
            self.set_alarm();
            if self.lane.wake_at(self.wanted()) {
                continue;
            }
            tokio::select! {
                biased;
                (place, heard) = next_answer(&mut self.flying) => self.hear(place, heard),
                () = ring(&mut self.alarm) => self.alarm = None,
                () = self.lane.wake.notified() => {}
            }
        }
    }

    fn collect(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        self.lane.take(&mut taken);
        for entry in taken.drain(..) {
            self.next_deadline = self.next_deadline.min(entry.deadline());
            self.line.push(entry, &mut self.spare);
        }
        self.taken = taken;
    }

    fn give_up(&mut self, now: Duration) {
        if now < self.next_deadline {
            return;
        }
        let waited = self.pace.call_total;
        self.line.give_up(|batch| batch.give_up(now, waited));
        let mut deaf = false;
        self.flying.retain_mut(|batch| {
            let over = batch.give_up(now, waited);
            deaf |= over && batch.awaits_answer();
            !over
        });
        let flying = self.flying.iter().filter_map(Batch::earliest).min();
        self.next_deadline = flying.into_iter().chain(self.line.earliest()).min().unwrap_or(Duration::MAX);
        if deaf {
            self.lose_way(now);
        }
    }

    fn awaits_answers(&self) -> bool {
        self.flying.iter().any(Batch::awaits_answer)
    }

    fn judge_weather(&mut self, now: Duration) {
        match self.weather {
            Weather::Paused(until) if until <= now => self.repeat(now),
            Weather::Paused(_) => {}
            Weather::Clearing if !self.awaits_answers() => self.pause(now),
            Weather::Repeating if !self.awaits_answers() => self.weather = Weather::Fair,
            Weather::Fair | Weather::Clearing | Weather::Repeating => {
                if self.awaits_answers() && self.quiet_since + self.pace.call_timeout <= now {
                    tracing::warn!(topic = %self.lane.key, waited = ?self.pace.call_timeout, "the store does not answer");
                    self.lose_way(now);
                }
            }
        }
    }

    /// The way to the store is broken: whatever it still carries is not heard of again.
    fn lose_way(&mut self, now: Duration) {
        for batch in &mut self.flying {
            batch.forget_answer();
        }
        self.way = None;
        self.pause(now);
    }

    fn pause(&mut self, now: Duration) {
        self.weather = Weather::Paused(now + self.pace.pause(&self.environment));
    }

    /// Everything unanswered again, in order, under its own numbers.
    fn repeat(&mut self, now: Duration) {
        self.weather = Weather::Repeating;
        self.quiet_since = now;
        if self.flying.is_empty() {
            self.weather = Weather::Fair;
            return;
        }
        let way = way(&mut self.way, &*self.store, &self.lane, &self.id);
        for batch in &mut self.flying {
            batch.send(way);
        }
    }

    fn may_number(&self) -> bool {
        self.flying.front().is_none_or(|first| self.last_number + 1 < first.number + CALL_SLOTS)
    }

    fn send_waiting(&mut self, now: Duration) -> bool {
        if self.weather != Weather::Fair {
            return false;
        }
        let alone = self.flying.is_empty();
        let mut sent = false;
        while self.may_number() && (alone || self.line.has_closed()) {
            let Some(mut batch) = self.line.next() else { break };
            if self.flying.is_empty() {
                self.quiet_since = now;
            }
            self.last_number += 1;
            batch.number = self.last_number;
            batch.send(way(&mut self.way, &*self.store, &self.lane, &self.id));
            self.flying.push_back(batch);
            sent = true;
        }
        sent
    }

    fn wanted(&self) -> WakeAt {
        let before = self.alarm.as_ref().map_or(Duration::ZERO, |(at, _)| *at);
        match self.weather {
            Weather::Fair if self.flying.is_empty() => WakeAt { entries: 1, bytes: 0, before },
            Weather::Fair if self.may_number() => WakeAt { entries: MOST_JOBS, bytes: BATCH_BYTES, before },
            _ => WakeAt { entries: usize::MAX, bytes: usize::MAX, before },
        }
    }

    fn set_alarm(&mut self) {
        let answer = match self.weather {
            Weather::Paused(until) => Some(until),
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
        self.flying.is_empty() && self.line.is_empty()
    }

    fn hear(&mut self, place: usize, heard: Heard) {
        let now = self.environment.now();
        self.quiet_since = now;
        match heard {
            Heard::Answered => {
                self.pace.worked();
                if let Some(batch) = self.flying.remove(place) {
                    batch.recycle(&mut self.spare);
                }
            }
            Heard::Late => {
                if let Some(batch) = self.flying.remove(place) {
                    self.line.put_back(batch);
                }
            }
            Heard::Failed(error) => self.fail(place, &error, now),
        }
    }

    fn fail(&mut self, place: usize, error: &StoreError, now: Duration) {
        tracing::warn!(topic = %self.lane.key, %error, "a batch failed");
        match error {
            StoreError::Refused { .. } | StoreError::NotReplicated { .. } => {
                if !matches!(self.weather, Weather::Paused(_)) {
                    self.weather = Weather::Clearing;
                }
            }
            _ if error.is_outage() => self.lose_way(now),
            // Dropping the batch answers its callers with the error.
            _ => {
                drop(self.flying.remove(place));
                if matches!(error, StoreError::Denied { .. }) {
                    self.way = None;
                }
            }
        }
    }
}

/// When the runtime drops the task, nobody may wait for it any more.
impl Drop for Coalescer {
    fn drop(&mut self) {
        self.lane.close();
        self.lane.take(&mut self.taken);
    }
}

fn way<'a>(
    way: &'a mut Option<Arc<dyn Producer>>,
    store: &dyn Store,
    lane: &Lane,
    id: &ProducerId,
) -> &'a dyn Producer {
    &**way.get_or_insert_with(|| store.producer(&lane.key, id))
}

/// The first answer that is there, of any flying batch. Cancel safe.
async fn next_answer(flying: &mut VecDeque<Batch>) -> (usize, Heard) {
    poll_fn(|cx| {
        for (place, batch) in flying.iter_mut().enumerate() {
            if let Poll::Ready(heard) = batch.poll(cx) {
                return Poll::Ready((place, heard));
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
