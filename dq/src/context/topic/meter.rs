//! The metrics of one topic on this node.

use std::time::Duration;

use crate::job::Cause;
use crate::store::RequestKind;
use crate::store::step::Change;
use crate::telemetry::{Counter, Gauge, Histogram, counter, gauge, histogram, label, table};

/// What a node measures of one topic.
#[derive(Debug)]
pub(super) struct TopicMeter {
    pub(super) claimed: Counter,
    pub(super) reclaimed: Counter,
    pub(super) place_lost: Counter,
    pub(super) starved: Counter,
    pub(super) late_outcomes: Counter,
    pub(super) stale_outcomes: Counter,
    pub(super) lease_lost: Counter,
    pub(super) restarts: Counter,
    pub(super) held: Gauge,
    pub(super) running: Gauge,
    pub(super) waiting: Gauge,
    pub(super) settling: Gauge,
    pub(super) run: Histogram,
    lateness: Histogram,
    settled: [Counter; 8],
    failed: [Counter; 7],
    stopped: Counter,
    calls: [Histogram; RequestKind::COUNT],
}

impl TopicMeter {
    pub(super) fn new(topic: &str) -> Self {
        let topic = label(topic);
        let counted = |metric| counter(metric, &[topic]);
        let current = |metric| gauge(metric, &[topic]);
        Self {
            claimed: counted(&table::CLAIMED),
            reclaimed: counted(&table::RECLAIMED),
            place_lost: counted(&table::PLACE_LOST),
            starved: counted(&table::STARVED),
            late_outcomes: counted(&table::LATE_OUTCOMES),
            stale_outcomes: counted(&table::STALE_OUTCOMES),
            lease_lost: counted(&table::LEASE_LOST),
            restarts: counted(&table::RESTARTS),
            held: current(&table::HELD),
            running: current(&table::RUNNING),
            waiting: current(&table::WAITING),
            settling: current(&table::SETTLING),
            run: histogram(&table::RUN, &[topic]),
            lateness: histogram(&table::LATENESS, &[topic]),
            settled: OUTCOMES.map(|outcome| counter(&table::SETTLED, &[topic, outcome])),
            failed: Cause::ALL.map(|cause| counter(&table::FAILED, &[topic, cause.word()])),
            stopped: counter(&table::FAILED, &[topic, "stopped"]),
            calls: RequestKind::ALL.map(|kind| histogram(&table::CALL, &[kind.name()])),
        }
    }

    pub(super) fn late(&self, late: Duration) {
        self.lateness.record(late.as_secs_f64());
    }

    pub(super) fn settled(&self, change: &Change) {
        self.settled[outcome(change)].increment(1);
    }

    /// A handler failed; `None`: the node or the runtime ended before it.
    pub(super) fn failed(&self, cause: Option<Cause>) {
        cause.map_or(&self.stopped, |cause| &self.failed[cause as usize]).increment(1);
    }

    /// The store has answered a request of this kind after this time.
    pub(super) fn called(&self, kind: RequestKind, time: Duration) {
        self.calls[kind as usize].record(time.as_secs_f64());
    }
}

const OUTCOMES: [&str; 8] = ["ack", "rejoin", "retry", "rollback", "park", "dead", "drop", "tick"];

const fn outcome(change: &Change) -> usize {
    match change {
        Change::Ack => 0,
        Change::Rejoin(_) => 1,
        Change::Retry(_) => 2,
        Change::Rollback => 3,
        Change::Park => 4,
        Change::Dead => 5,
        Change::Drop => 6,
        Change::Tick(_) => 7,
    }
}
