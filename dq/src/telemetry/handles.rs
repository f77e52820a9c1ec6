//! Handles of the facade, and the label of a topic. Without the feature `metrics` the handles have no size and do nothing.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "metrics")]
pub(crate) use with_facade::{Counter, Gauge, Histogram, counter, describe, gauge, histogram};
#[cfg(not(feature = "metrics"))]
pub(crate) use without::{Counter, Gauge, Histogram, counter, describe, gauge, histogram};

#[cfg(feature = "metrics")]
mod with_facade {
    pub(crate) use metrics::{Counter, Gauge, Histogram};
    use metrics::{Label, Unit};

    use super::super::table::{METRICS, Metric, MetricKind};

    fn labels(metric: &Metric, values: &[&str]) -> Vec<Label> {
        debug_assert_eq!(metric.labels.len(), values.len(), "{} has a value for each label", metric.name);
        metric.labels.iter().zip(values).map(|(name, value)| Label::new(*name, (*value).to_owned())).collect()
    }

    pub(crate) fn counter(metric: &Metric, values: &[&str]) -> Counter {
        metrics::counter!(metric.name, labels(metric, values))
    }

    pub(crate) fn gauge(metric: &Metric, values: &[&str]) -> Gauge {
        metrics::gauge!(metric.name, labels(metric, values))
    }

    pub(crate) fn histogram(metric: &Metric, values: &[&str]) -> Histogram {
        metrics::histogram!(metric.name, labels(metric, values))
    }

    /// Tells the recorder what the metrics mean.
    pub(crate) fn describe() {
        for metric in METRICS {
            match metric.kind {
                MetricKind::Counter => metrics::describe_counter!(metric.name, metric.help),
                MetricKind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
                MetricKind::Histogram => metrics::describe_histogram!(metric.name, Unit::Seconds, metric.help),
            }
        }
    }
}

#[cfg(not(feature = "metrics"))]
mod without {
    use super::super::table::Metric;

    #[derive(Debug, Clone)]
    pub(crate) struct Counter;
    #[derive(Debug, Clone)]
    pub(crate) struct Gauge;
    #[derive(Debug, Clone)]
    pub(crate) struct Histogram;

    impl Counter {
        pub(crate) const fn increment(&self, _: u64) {}
    }

    impl Gauge {
        pub(crate) const fn set(&self, _: f64) {}
    }

    impl Histogram {
        pub(crate) const fn record(&self, _: f64) {}
    }

    pub(crate) const fn counter(_: &Metric, _: &[&str]) -> Counter {
        Counter
    }

    pub(crate) const fn gauge(_: &Metric, _: &[&str]) -> Gauge {
        Gauge
    }

    pub(crate) const fn histogram(_: &Metric, _: &[&str]) -> Histogram {
        Histogram
    }

    pub(crate) const fn describe() {}
}

/// How many topics of a process have a label of their own.
const MAX_TOPICS: usize = 1_000;

/// The label of a topic: its name, or `other` once too many have one.
pub(crate) fn label(topic: &str) -> &str {
    static TOPICS: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut known = TOPICS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if known.len() < MAX_TOPICS && !known.contains(topic) {
        known.insert(topic.to_owned());
    }
    if known.contains(topic) { topic } else { "other" }
}
