//! A topic behind its lock, with its subscribers.
//!
//! A step holds the lock from reading the clock to sending its last signal, so steps, times and signals have one order.

use std::sync::{Arc, Mutex, MutexGuard};

use super::now::Now;
use super::signals::Subscribers;
use super::topic::Topic;
use crate::environment::StoreClock;
use crate::store::{Interest, Signals, StoreError};

/// A topic that several links and producers share.
#[derive(Debug)]
pub(super) struct Cell {
    clock: Arc<dyn StoreClock>,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    topic: Topic,
    subscribers: Subscribers,
}

impl Cell {
    pub(super) fn new(clock: Arc<dyn StoreClock>) -> Self {
        Self { clock, inside: Mutex::default() }
    }

    /// Executes a step and sends its signals.
    pub(super) fn step<T>(
        &self,
        operation: &'static str,
        step: impl FnOnce(&mut Topic, Now) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut inside = self.lock(operation)?;
        let Inside { topic, subscribers } = &mut *inside;
        let answer = step(topic, Now::from_micros(self.clock.micros()));
        for (node, signal) in subscribers.send(topic.take_notices()) {
            topic.does_not_listen(&node, &signal);
        }
        answer
    }

    /// Reads the topic.
    pub(super) fn query<T>(
        &self,
        operation: &'static str,
        query: impl FnOnce(&Topic, Now) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let inside = self.lock(operation)?;
        query(&inside.topic, Now::from_micros(self.clock.micros()))
    }

    pub(super) fn subscribe(&self, interest: Interest) -> Result<Signals, StoreError> {
        Ok(self.lock("signals")?.subscribers.subscribe(interest))
    }

    /// Fails for good once a step has panicked: the topic may be half-changed. The other topics go on.
    fn lock(&self, operation: &'static str) -> Result<MutexGuard<'_, Inside>, StoreError> {
        self.inside.lock().map_err(|_| StoreError::Other {
            operation,
            source: "an earlier step of this topic panicked, which is a defect of dq; the topic is stopped".into(),
        })
    }
}
