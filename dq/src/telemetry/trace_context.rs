//! The W3C trace context of an add, kept in the headers of the job, and the links from its runs: the feature `otel`.
//!
//! <https://www.w3.org/TR/trace-context/> has the form of the two headers.

use opentelemetry::trace::{SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// The longest `tracestate` that is kept; W3C asks for 512 characters at least.
const MAX_STATE: usize = 512;

/// The most links of a span, one for each job of a batch. It is the usual limit of OpenTelemetry too.
const MAX_LINKS: usize = 128;

/// Adds the trace of the caller to the headers of a job, unless the caller set one, no trace is recorded, or no room is left within
/// `limit` bytes.
pub(crate) fn carry(headers: &mut Vec<(String, String)>, limit: usize) {
    if headers.iter().any(|(name, _)| name == TRACEPARENT) {
        return;
    }
    let Some(context) = of_caller() else { return };
    let parent = format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), context.trace_flags().to_u8() & 1);
    let used: usize = headers.iter().map(|(name, value)| size(name, value)).sum();
    let with_parent = used + size(TRACEPARENT, &parent);
    if with_parent > limit {
        return;
    }
    headers.push((TRACEPARENT.to_owned(), parent));
    let state = context.trace_state().header();
    let fits = state.len() <= MAX_STATE && with_parent + size(TRACESTATE, &state) <= limit;
    if !state.is_empty() && fits && headers.iter().all(|(name, _)| name != TRACESTATE) {
        headers.push((TRACESTATE.to_owned(), state));
    }
}

/// What a header counts against the limit.
const fn size(name: &str, value: &str) -> usize {
    4 + name.len() + value.len()
}

/// The span in which the caller is: that of `tracing`, otherwise that of OpenTelemetry itself.
fn of_caller() -> Option<SpanContext> {
    let of_tracing = Span::current().context().span().span_context().clone();
    let of_tracing = Some(of_tracing).filter(SpanContext::is_valid);
    of_tracing
        .or_else(|| Some(opentelemetry::Context::current().span().span_context().clone()).filter(SpanContext::is_valid))
}

/// Links a span to the traces of the adds of its jobs, up to [`MAX_LINKS`] of them.
pub(crate) fn link<'a>(span: &Span, jobs: impl Iterator<Item = &'a [(String, String)]>) {
    if span.is_none() {
        return;
    }
    for context in jobs.filter_map(read).take(MAX_LINKS) {
        span.add_link(context);
    }
}

/// Marks the current span as failed.
pub(crate) fn mark_failed(why: &'static str) {
    Span::current().set_status(Status::error(why));
}

/// The trace context in the headers of a job. Headers that have another form are no error: the run has no link then.
fn read(headers: &[(String, String)]) -> Option<SpanContext> {
    let value = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let mut parts = value(TRACEPARENT)?.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    // A later version may have more parts behind these four.
    let is_known = version.len() == 2 && version != "ff" && (version != "00" || parts.next().is_none());
    let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let has_form = trace.len() == 32 && span.len() == 16 && flags.len() == 2;
    if !(is_known && has_form && [version, trace, span, flags].into_iter().all(is_hex)) {
        return None;
    }
    let state = value(TRACESTATE).and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    Some(SpanContext::new(trace, span, flags, true, state)).filter(SpanContext::is_valid)
}

#[cfg(test)]
mod tests {
    use opentelemetry::Context;
    use opentelemetry::trace::TraceContextExt as _;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(parent: &str) -> Vec<(String, String)> {
        vec![(TRACEPARENT.into(), parent.into()), (TRACESTATE.into(), "vendor=1".into())]
    }

    #[test]
    fn a_context_survives_the_headers() {
        let context = read(&headers(PARENT)).unwrap();
        assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id().to_string(), "00f067aa0ba902b7");
        assert!(context.is_sampled() && context.is_remote());
        let _within = Context::new().with_remote_span_context(context).attach();
        let mut carried = Vec::new();
        carry(&mut carried, 1_000);
        assert_eq!(carried, headers(PARENT));
    }

    #[test]
    fn a_traceparent_of_the_caller_stays() {
        let _within = Context::new().with_remote_span_context(read(&headers(PARENT)).unwrap()).attach();
        let mut carried = vec![(TRACEPARENT.into(), "mine".into())];
        carry(&mut carried, 1_000);
        assert_eq!(carried, [(TRACEPARENT.into(), "mine".into())]);
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let _within = Context::new().with_remote_span_context(read(&headers(PARENT)).unwrap()).attach();
        let parent = size(TRACEPARENT, PARENT);
        for (limit, kept) in [(parent - 1, 0), (parent, 1), (parent + size(TRACESTATE, "vendor=1"), 2)] {
            let mut carried = Vec::new();
            carry(&mut carried, limit);
            assert_eq!(carried.len(), kept, "{limit}");
        }
    }

    #[test]
    fn nothing_is_carried_outside_of_a_trace() {
        let mut carried = Vec::new();
        carry(&mut carried, 1_000);
        assert_eq!(carried, []);
    }

    #[test]
    fn other_forms_are_no_link() {
        let of_later = format!("01{}-more", &PARENT[2..]);
        assert!(read(&headers(&of_later)).is_some());
        let zero = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        let upper = PARENT.to_uppercase();
        let more = format!("{PARENT}-more");
        let unknown = format!("ff{}", &PARENT[2..]);
        for bad in ["", "00", "00-1-2-01", "not a trace", zero, &upper, &more, &unknown, "00-é-00f067aa0ba902b7-01"] {
            assert!(read(&headers(bad)).is_none(), "{bad}");
        }
    }
}
