//! What is done for a trace (W3C Trace Context): a span, whose log lines have the trace's id, and which a build with the feature `otlp` tells to an
//! OpenTelemetry collector.

#![forbid(unsafe_code)]

mod export;
mod span;

pub use export::{Export, ExportError, Layer, THREADS, layer};
pub use span::{DIRECTIVE, has_failed, of_call};
