//! The ids of spans, and contexts as the W3C header `traceparent`.

use std::cell::Cell;
use std::collections::HashMap;

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};

thread_local! {
    /// The context of the span that this thread starts next.
    static NEXT: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

/// Generates random ids, unless the thread has chosen the next span's.
#[derive(Debug, Default)]
pub(crate) struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        let chosen = NEXT.get().map(|(trace, _)| trace);
        chosen.unwrap_or_else(|| self.0.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        let chosen = NEXT.get().map(|(_, span)| span);
        chosen.unwrap_or_else(|| self.0.new_span_id())
    }
}

/// Starts a span by `start` with these ids.
pub(crate) fn with_ids<S>(trace: TraceId, span: SpanId, start: impl FnOnce() -> S) -> S {
    NEXT.set(Some((trace, span)));
    let started = start();
    NEXT.set(None);
    started
}

/// Returns the span of a partitioned step. It follows from the job's, so that a worker process knows the parent of a partition without having
/// seen the step.
///
/// It must never change: processes of several versions take part in a job.
pub(crate) fn span_of_step(job: &SpanContext, step: &str) -> SpanId {
    // FNV-1a.
    let bytes = job.span_id().to_bytes().into_iter().chain(step.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    SpanId::from_bytes(hash.max(1).to_be_bytes())
}

/// Returns the context of a partitioned step that another process runs.
pub(crate) fn remote_step(job: &SpanContext, step: &str) -> SpanContext {
    let id = span_of_step(job, step);
    SpanContext::new(
        job.trace_id(),
        id,
        job.trace_flags(),
        true,
        job.trace_state().clone(),
    )
}

/// Returns the header `traceparent`.
pub(crate) fn traceparent(trace: TraceId, span: SpanId, flags: TraceFlags) -> String {
    format!("00-{trace}-{span}-{:02x}", flags.to_u8())
}

/// Parses the headers `traceparent` and `tracestate`. Returns `None` if `traceparent` is malformed; a malformed `tracestate` is ignored.
pub(crate) fn parsed(traceparent: &str, tracestate: Option<&str>) -> Option<SpanContext> {
    if !has_form(traceparent) {
        return None;
    }
    let mut headers = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
    headers.extend(tracestate.map(|state| ("tracestate".to_owned(), state.to_owned())));
    let context = TraceContextPropagator::new().extract(&headers);
    let context = context.span().span_context().clone();
    context.is_valid().then_some(context)
}

/// Returns whether the fields of `traceparent` have their lengths and digits, which the propagator does not check. A later version may
/// append fields.
fn has_form(traceparent: &str) -> bool {
    let mut fields = traceparent.split('-');
    let is_hex = |length: usize, field: Option<&str>| {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        field.is_some_and(|field| field.len() == length && field.bytes().all(is_digit))
    };
    let is_current = traceparent.starts_with("00-");
    [2, 32, 16, 2]
        .into_iter()
        .all(|length| is_hex(length, fields.next()))
        && (fields.next().is_none() || !is_current)
}

/// Parses a stored context, or a ticket's.
pub(crate) fn parsed_stored(traceparent: Option<&str>) -> Option<SpanContext> {
    let context = parsed(traceparent?, None)?;
    let (trace, span) = (context.trace_id(), context.span_id());
    Some(SpanContext::new(
        trace,
        span,
        context.trace_flags(),
        true,
        TraceState::NONE,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: OTEL-05
    #[test]
    fn malformed_headers_have_no_context() {
        let valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context = parsed(valid, Some("vendor=1")).unwrap();
        assert_eq!(
            traceparent(context.trace_id(), context.span_id(), context.trace_flags()),
            valid
        );
        assert_eq!(context.trace_state().get("vendor"), Some("1"));
        assert!(parsed(valid, Some("=,;")).is_some());
        assert!(parsed(&format!("{}-later", valid.replace("00-", "01-")), None).is_some());
        for malformed in [
            "",
            "00",
            "garbage",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-00",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c8031zz-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-é",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(parsed(malformed, None), None, "{malformed}");
            assert_eq!(parsed_stored(Some(malformed)), None, "{malformed}");
        }
    }

    /// Coordinators and workers of several versions compute it.
    // Spec: OTEL-04
    #[test]
    fn the_span_of_a_step_never_changes() {
        let job = parsed("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None).unwrap();
        assert_eq!(span_of_step(&job, "load").to_string(), "babf174595fb4340");
        assert_ne!(span_of_step(&job, "load"), span_of_step(&job, "lood"));
    }
}
