//! The trace of which a call is a part (W3C Trace Context and Baggage): from gRPC's metadata to the plugins' environment.

use std::ffi::OsString;

use shunt_agent_api::TraceParent;
use tonic::metadata::MetadataMap;
use tracing::Span;

use crate::failure::Failure;

/// Bytes of a value; the recommendations have 512 for `tracestate` and 8,192 for `baggage`.
const LONGEST: usize = 8192;

/// The three values, where the client sends them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace([Option<String>; 3]);

impl Trace {
    /// The variables of plugins.
    pub(crate) const NAMES: [&str; 3] = ["TRACEPARENT", "TRACESTATE", "BAGGAGE"];

    /// Those of a call. A value that is no text, or too long, is passed over; a `traceparent` that is none as well, and `tracestate` with it (W3C Trace
    /// Context: where the parent cannot be parsed the state is not looked at).
    pub(crate) fn of(metadata: &MetadataMap) -> Self {
        let of = |name| {
            let value = metadata.get(name)?.to_str().ok()?;
            (value.len() <= LONGEST).then(|| value.to_owned())
        };
        let [parent, state, baggage] = ["traceparent", "tracestate", "baggage"].map(of);
        let parent = parent.filter(|parent| parent.parse::<TraceParent>().is_ok());
        let state = state.filter(|_| parent.is_some());
        Self([parent, state, baggage])
    }

    /// What is done of it.
    pub(crate) fn span(&self, verb: &str) -> Span {
        shunt_trace::of_call(self.parent().as_ref(), verb)
    }

    /// The first value, if it is one.
    fn parent(&self) -> Option<TraceParent> {
        self.0[0].as_deref()?.parse().ok()
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, OsString)> + '_ {
        Self::NAMES.into_iter().zip(&self.0).filter_map(|(name, value)| Some((name, value.as_ref()?.into())))
    }
}

/// Does something as part of a call's span, which says so if it fails.
pub(crate) fn within<T>(span: &Span, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let _entered = span.enter();
    work().inspect_err(|Failure { msg, .. }| shunt_trace::has_failed(span, msg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_become_variables() {
        let mut metadata = MetadataMap::new();
        metadata.insert(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap(),
        );
        metadata.insert("baggage", "x".repeat(LONGEST + 1).parse().unwrap());
        let trace = Trace::of(&metadata);
        assert_eq!(trace.parent().unwrap().span_id(), "b7ad6b7169203331");
        let variables: Vec<_> = trace.variables().map(|(name, _)| name).collect();
        assert_eq!(variables, ["TRACEPARENT"]);
        metadata.insert("traceparent", format!("00-{}-1-01", "a".repeat(8000)).parse().unwrap());
        assert_eq!(Trace::of(&metadata).parent(), None);
    }

    #[test]
    fn a_parent_that_is_none_is_not_passed_on_nor_is_its_state() {
        for parent in [Some("00-0-0-01"), Some("x; rm"), None] {
            let mut metadata = MetadataMap::new();
            metadata.insert("tracestate", "vendor=1".parse().unwrap());
            metadata.insert("baggage", "a=b".parse().unwrap());
            parent.map(|parent| metadata.insert("traceparent", parent.parse().unwrap()));
            let variables: Vec<_> = Trace::of(&metadata).variables().map(|(name, _)| name).collect();
            assert_eq!(variables, ["BAGGAGE"], "{parent:?}");
        }
    }
}
