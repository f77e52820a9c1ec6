//! What a node measures of one topic: for `health()`, and as metrics.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use serde::Serialize;

use crate::telemetry::{Counter, Gauge, Metric, counter, gauge, label, table};

/// A number that only grows.
#[derive(Debug)]
pub(super) struct Count {
    number: AtomicU64,
    /// What shows it, if it is a metric.
    metric: Option<Counter>,
}

impl Count {
    pub(super) fn of(metric: Option<Counter>) -> Self {
        Self { number: AtomicU64::new(0), metric }
    }

    pub(super) fn add(&self, more: usize) {
        self.number.fetch_add(more as u64, Relaxed);
        if let Some(metric) = &self.metric {
            metric.increment(more as u64);
        }
    }

    /// Raises it to `at_least`.
    pub(super) fn raise(&self, at_least: u64) {
        self.number.fetch_max(at_least, Relaxed);
    }
}

macro_rules! counts {
    (@metric $topic:ident) => { None };
    (@metric $topic:ident $metric:ident $($outcome:literal)?) => { Some(counter(&table::$metric, &[$topic $(, $outcome)?])) };
    ($($(#[$doc:meta])+ $field:ident $(=> $metric:ident $(, $outcome:literal)?)?;)+) => {
        /// What happened since the start of the node.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
        #[non_exhaustive]
        pub struct Counters { $($(#[$doc])+ pub $field: u64),+ }

        /// The live [`Counters`], each with its metric.
        #[derive(Debug)]
        pub(super) struct Counts { $(pub(super) $field: Count),+ }

        impl Counts {
            pub(super) fn new(topic: &str) -> Self {
                let topic = label(topic);
                Self { $($field: Count::of(counts!(@metric topic $($metric $($outcome)?)?))),+ }
            }

            pub(super) fn read(&self) -> Counters {
                Counters { $($field: self.$field.number.load(Relaxed)),+ }
            }
        }
    };
}

counts! {
    /// Jobs claimed.
    claimed => CLAIMED;
    /// Jobs acked.
    acked => SETTLED, "ack";
    /// Jobs rejoined.
    rejoined => SETTLED, "rejoin";
    /// Jobs put back for a retry.
    retried => SETTLED, "retry";
    /// Jobs given back as they were.
    rolled_back => SETTLED, "rollback";
    /// Jobs parked, or kept UNACKED.
    parked => SETTLED, "park";
    /// Jobs that became DEAD.
    dead => SETTLED, "dead";
    /// Jobs dropped: by `on_park_timeout`, or because another program removed or damaged their records.
    dropped;
    /// Ticks of schedules, which added the jobs that were due then.
    ticked => SETTLED, "tick";
    /// Entries of the outbox that this node has brought to their topics.
    relayed => RELAYED;
    /// Follow-ups that their topics have refused for good.
    refused_follow_ups => REFUSED_FOLLOW_UPS;
    /// Jobs that the audit put back because another program had removed them from their place.
    place_lost => PLACE_LOST;
    /// Handlers that failed: errors, panics, timeouts, payloads that do not decode.
    failed;
    /// Handlers that timed out.
    timed_out;
    /// Runs that the runtime of the handlers did not begin within two seconds. Their jobs went back without an attempt; those
    /// acked on claim went on waiting.
    starved => STARVED;
    /// Handlers that returned after dq had given their runs up; this node refused their outcomes.
    late_outcomes => LATE_OUTCOMES;
    /// Outcomes that the store refused because another run had the job. Not a refused repeat of one that had no answer: the
    /// store may have taken it the first time.
    stale_outcomes => STALE_OUTCOMES;
    /// Handlers that were cancelled because the lease, or the job, was lost.
    lease_lost => LEASE_LOST;
    /// Jobs reclaimed from dead nodes.
    reclaimed => RECLAIMED;
    /// How often the node compared what it holds with what the store says it holds.
    reconciled;
    /// How often the task of the topic was restarted after a panic of dq itself.
    restarts => RESTARTS;
    /// The longest time from due to claim, in milliseconds; of a job that was claimed before (`lookahead`), from due to the time
    /// at which its handler could start.
    most_late_ms;
}

/// A number that rises and falls.
#[derive(Debug)]
pub(super) struct Level {
    number: AtomicUsize,
    metric: Gauge,
}

impl Level {
    pub(super) fn of(metric: &Metric, topic: &str) -> Self {
        Self { number: AtomicUsize::new(0), metric: gauge(metric, &[topic]) }
    }

    pub(super) fn set(&self, number: usize) {
        self.number.store(number, Relaxed);
        self.metric.set(number as f64);
    }

    pub(super) fn read(&self) -> usize {
        self.number.load(Relaxed)
    }
}
