//! A span.

use shunt_agent_api::TraceParent;
use tracing::Span;

/// The target of spans.
pub(crate) const SPAN: &str = "shunt::call";

/// The directive by which a filter of log lines has spans, whatever it says of lines.
pub const DIRECTIVE: &str = "shunt::call=error";

/// What is done for a caller, as a child of the caller's span; nothing where the caller names none.
pub fn of_call(parent: Option<&TraceParent>, verb: &str) -> Span {
    let Some(parent) = parent else { return Span::none() };
    // A span of lesser lines would not be there where somebody wants only lines of this level.
    let span = tracing::error_span!(target: SPAN, "call", trace = parent.trace_id(), otel.name = verb);
    exported::continue_from(&span, parent);
    span
}

/// Says of a span that its call has failed. The log line about it is the caller's to write.
pub fn has_failed(span: &Span, why: &str) {
    exported::fail(span, why);
}

#[cfg(feature = "otlp")]
mod exported {
    use opentelemetry::Context;
    use opentelemetry::trace::{
        SpanContext, SpanId, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    };
    use shunt_agent_api::TraceParent;
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    pub(super) fn continue_from(span: &Span, parent: &TraceParent) {
        let ids = (TraceId::from_hex(parent.trace_id()), SpanId::from_hex(parent.span_id()));
        let (Ok(trace), Ok(of_caller)) = ids else { return };
        let flags = if parent.is_sampled() { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
        let caller = SpanContext::new(trace, of_caller, flags, true, TraceState::default());
        // Nothing hears of it where spans are not exported.
        let _not_exported = span.set_parent(Context::new().with_remote_span_context(caller));
    }

    pub(super) fn fail(span: &Span, why: &str) {
        span.set_status(Status::error(why.to_owned()));
    }
}

#[cfg(not(feature = "otlp"))]
mod exported {
    use shunt_agent_api::TraceParent;
    use tracing::Span;

    pub(super) fn continue_from(_: &Span, _: &TraceParent) {}

    pub(super) fn fail(_: &Span, _: &str) {}
}
