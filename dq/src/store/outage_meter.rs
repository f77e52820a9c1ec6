//! The metrics of the outages of a store.

use std::time::Duration;

use crate::telemetry::{Counter, Gauge, counter, describe, gauge, table};

/// What a process measures of the outages of its store.
#[derive(Debug)]
pub(super) struct OutageMeter {
    outages: Counter,
    seconds: Counter,
    goes_on: Gauge,
}

impl OutageMeter {
    pub(super) fn new() -> Self {
        describe();
        let goes_on = gauge(&table::OUT_OF_REACH, &[]);
        goes_on.set(0.0);
        Self { outages: counter(&table::OUTAGES, &[]), seconds: counter(&table::OUTAGE_SECONDS, &[]), goes_on }
    }

    pub(super) fn began(&self) {
        self.outages.increment(1);
        self.goes_on.set(1.0);
    }

    pub(super) fn ended(&self, after: Duration) {
        self.seconds.increment(after.as_secs_f64().round() as u64);
        self.goes_on.set(0.0);
    }
}
