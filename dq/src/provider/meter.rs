//! The metrics of the adds of one topic.

use std::time::Duration;

use crate::telemetry::{Counter, Histogram, counter, histogram, label, table};

/// What a provider measures of the adds of one topic.
#[derive(Debug)]
pub(super) struct AddMeter {
    pub(super) added: Counter,
    time: Histogram,
}

impl AddMeter {
    pub(super) fn new(topic: &str) -> Self {
        let topic = label(topic);
        Self { added: counter(&table::ADDED, &[topic]), time: histogram(&table::ADD, &[topic]) }
    }

    /// The store has answered an add after this time.
    pub(super) fn answered(&self, time: Duration) {
        self.time.record(time.as_secs_f64());
    }
}
