//! A topic behind its lock, with its subscribers.
//!
//! A step holds the lock from reading the clock to sending its last signal, so steps, times, signals and changes have one order.

use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use super::durable::{After, Position, TopicSink, Waits};
use super::now::Now;
use super::signals::Subscribers;
use super::topic::Topic;
use crate::environment::StoreClock;
use crate::store::{Interest, Pending, Signals, StoreError};

/// The buffer for the changes of a step keeps at most this much memory between steps: enough for a thousand small jobs, because
/// growing and shrinking it in each such step takes a twentieth of a life's CPU time.
const KEPT_BYTES: usize = 256 << 10;

/// A topic that several links and producers share.
#[derive(Debug)]
pub(super) struct Cell {
    clock: Arc<dyn StoreClock>,
    sink: Option<TopicSink>,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    topic: Topic,
    subscribers: Subscribers,
    /// The changes of the current step.
    changes: Vec<u8>,
    /// The end of the last changes.
    position: Position,
}

impl Inside {
    /// Hands over what the step has changed.
    fn append(&mut self, to: &TopicSink) {
        let cuts = self.topic.take_changes(&mut self.changes);
        if self.changes.is_empty() {
            return;
        }
        to.sink.note_memory(self.topic.memory.of_store());
        let mut from = 0;
        for end in cuts.into_iter().chain([self.changes.len()]) {
            // Whoever waits for the last part waits for all of them.
            self.position = to.sink.append(&to.topic, &self.changes[from..end], self.topic.fence);
            from = end;
        }
        self.changes.clear();
        self.changes.shrink_to(KEPT_BYTES);
    }
}

impl Cell {
    /// A topic; `sink` gets what its steps change.
    pub(super) fn new(clock: Arc<dyn StoreClock>, mut topic: Topic, sink: Option<TopicSink>) -> Self {
        if sink.is_some() {
            topic.log_changes();
        }
        Self { clock, sink, inside: Mutex::new(Inside { topic, ..Inside::default() }) }
    }

    /// Executes a step and sends its signals. A step that panics does so for the caller; what it has done stays, and the topic
    /// goes on (rule 34). The answer comes once what it `waits` for is confirmed.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        operation: &'static str,
        waits: Waits,
        step: impl FnOnce(&mut Topic, Now) -> Result<T, StoreError>,
    ) -> Pending<T> {
        match self.ask_in_parts(operation, waits, step) {
            (answer, None) => Box::pin(ready(answer)),
            (answer, Some(confirm)) => Box::pin(async move {
                confirm.await?;
                answer
            }),
        }
    }

    /// Executes a step and sends its signals. Returns its answer, and what the caller waits for before it may see it.
    pub(super) fn ask_in_parts<T>(
        &self,
        operation: &'static str,
        waits: Waits,
        step: impl FnOnce(&mut Topic, Now) -> Result<T, StoreError>,
    ) -> (Result<T, StoreError>, Option<Pending<()>>) {
        let Some(sink) = &self.sink else { return (self.step(operation, step).map(|(answer, _)| answer), None) };
        if waits.is_any()
            && let Err(refused) = sink.sink.admit(operation)
        {
            return (Err(refused), None);
        }
        match self.step(operation, step) {
            Ok((answer, after)) => (Ok(answer), sink.confirm(operation, waits, after)),
            Err(error) => (Err(error), None),
        }
    }

    fn step<T>(
        &self,
        operation: &'static str,
        step: impl FnOnce(&mut Topic, Now) -> Result<T, StoreError>,
    ) -> Result<(T, After), StoreError> {
        let mut inside = self.lock(operation)?;
        let now = Now::from_micros(self.clock.micros());
        let is_listened = inside.subscribers.wants_moves();
        inside.topic.begin_step(now, is_listened);
        let answer = catch_unwind(AssertUnwindSafe(|| step(&mut inside.topic, now)));
        if answer.is_err() {
            inside.topic.restore();
        }
        let told = inside.topic.end_step(now);
        inside.topic.count_memory();
        if let Some(sink) = &self.sink {
            inside.append(sink);
        }
        let Inside { topic, subscribers, .. } = &mut *inside;
        for (node, signal) in subscribers.send(topic.take_notices()) {
            topic.does_not_listen(&node, &signal);
        }
        if let Some(moves) = told {
            subscribers.tell(&moves);
        }
        let after = After { position: inside.position, fence: inside.topic.fence };
        drop(inside);
        answer.unwrap_or_else(|panic| resume_unwind(panic)).map(|answer| (answer, after))
    }

    /// Changes the topic as a replay or a dump does: it is no step, so it sends no signals and hands nothing over.
    pub(super) fn with<T>(&self, operation: &'static str, act: impl FnOnce(&mut Topic) -> T) -> Result<T, StoreError> {
        let topic = &mut self.lock(operation)?.topic;
        let done = act(topic);
        topic.count_memory();
        Ok(done)
    }

    /// Reads the topic.
    pub(super) fn query<T>(
        &self,
        operation: &'static str,
        query: impl FnOnce(&Topic, Now) -> T,
    ) -> Result<T, StoreError> {
        let inside = self.lock(operation)?;
        let now = Now::from_micros(self.clock.micros());
        let answer = catch_unwind(AssertUnwindSafe(|| query(&inside.topic, now)));
        drop(inside); // a query that panics has changed nothing
        Ok(answer.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    pub(super) fn subscribe(&self, interest: Interest) -> Result<Signals, StoreError> {
        Ok(self.lock("signals")?.subscribers.subscribe(interest))
    }

    /// Fails for good once a replay or a dump has panicked, or what restores the topic after a panic of a step: it may be half-changed.
    /// The other topics go on.
    fn lock(&self, operation: &'static str) -> Result<MutexGuard<'_, Inside>, StoreError> {
        self.inside.lock().map_err(|_| StoreError::Other {
            operation,
            source: "dq panicked in this topic, which is a defect; the topic is stopped".into(),
        })
    }
}
