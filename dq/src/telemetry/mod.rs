//! What dq measures, for the exporter of your choice: the feature `metrics`.
//!
//! dq reports through the facade of the crate `metrics`. Install a recorder, for example that of `metrics-exporter-prometheus`,
//! **before** you start a node or make a provider: each of them looks for it once. Without the feature nothing is measured, and
//! nothing is paid.
//!
//! [`METRICS`] lists every name with its unit and labels. The values of labels are bounded: the topics beyond the first 1,000 of a
//! process share the label `other`.

mod handles;
mod label;
mod spans;
pub(crate) mod table;
#[cfg_attr(not(feature = "otel"), path = "no_trace_context.rs")]
mod trace_context;

pub(crate) use handles::{Counter, Gauge, Histogram, counter, describe, gauge, histogram};
pub(crate) use label::label;
pub use spans::{SPANS, Span};
pub use table::{METRICS, Metric, MetricKind};
pub(crate) use trace_context::{carry, link, mark_failed};
