//! A span.

use shunt_agent_api::TraceParent;
use tracing::Span;

/// The target of spans.
pub(crate) const SPAN: &str = "shunt::call";

/// What is done for a caller, as a child of the caller's span; nothing where the caller says of none.
pub fn of_call(parent: Option<&TraceParent>, verb: &str) -> Span {
    let Some(parent) = parent else { return Span::none() };
    // A span of lesser lines would not be there where somebody wants only these.
    let span = tracing::error_span!(target: SPAN, "call", trace = parent.trace_id(), verb);
    continue_from(&span, parent);
    span
}

#[cfg(feature = "otlp")]
fn continue_from(span: &Span, parent: &TraceParent) {
    use opentelemetry::Context;
    use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    let ids = (TraceId::from_hex(parent.trace_id()), SpanId::from_hex(parent.span_id()));
    let (Ok(trace), Ok(of_caller)) = ids else { return };
    let flags = if parent.is_sampled() { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
    let caller = SpanContext::new(trace, of_caller, flags, true, TraceState::default());
    // Nothing hears of it where spans are not exported.
    let _not_exported = span.set_parent(Context::new().with_remote_span_context(caller));
}

#[cfg(not(feature = "otlp"))]
fn continue_from(_: &Span, _: &TraceParent) {}
