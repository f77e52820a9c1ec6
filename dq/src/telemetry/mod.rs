//! What dq measures, for the exporter of your choice: the feature `metrics`.
//!
//! dq reports through the facade of the crate `metrics`. Install a recorder, for example that of `metrics-exporter-prometheus`,
//! **before** you start a node or make a provider: each of them looks for it once. Without the feature nothing is measured, and
//! nothing is paid.
//!
//! [`METRICS`] lists every name with its unit and labels. The values of labels are bounded: the topics beyond the first 1,000 of a
//! process share the label `other`.

mod handles;
pub(crate) mod table;
#[cfg(feature = "otel")]
mod trace_context;

pub(crate) use handles::{Counter, Gauge, Histogram, counter, describe, gauge, histogram, label};
pub use table::{METRICS, Metric, MetricKind, SPANS, Span};
pub(crate) use trace_context::{carry, link, mark_failed};

/// What stands for the trace context without the feature `otel`: nothing.
#[cfg(not(feature = "otel"))]
mod trace_context {
    use tracing::Span;

    pub(crate) const fn carry(_: &mut Vec<(String, String)>, _: usize) {}

    pub(crate) const fn mark_failed(_: &'static str) {}

    pub(crate) fn link<'a>(_: &Span, _: impl Iterator<Item = &'a [(String, String)]>) {}
}
