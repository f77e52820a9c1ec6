//! What stands for the trace context without the feature `otel`: nothing.

use tracing::Span;

pub(crate) const fn carry(_: &mut Vec<(String, String)>, _: usize) {}

pub(crate) const fn mark_failed(_: &'static str) {}

pub(crate) fn link<'a>(_: &Span, _: impl Iterator<Item = &'a [(String, String)]>) {}
