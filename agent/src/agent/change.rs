//! The log's one line for each change of an attachment: what was done to which, what became of it, how long it took.

use std::fmt::Display;
use std::time::Instant;

use shunt_agent_api::AttachmentKey;

use super::Refusal;

/// A change that is under way.
#[derive(Debug)]
pub(super) struct Change {
    what: &'static str,
    begun: Instant,
}

impl Change {
    /// From now on its time runs.
    pub(super) fn begin(what: &'static str) -> Self {
        Self { what, begun: Instant::now() }
    }

    /// It is made.
    pub(super) fn made(self, key: &AttachmentKey, detail: impl Display) {
        tracing::info!(%key, result = "ok", took_ms = self.took(), %detail, "{}", self.what);
    }

    /// It is not made, and everything is as before.
    pub(super) fn refused(self, key: &AttachmentKey, why: &Refusal) {
        tracing::warn!(%key, result = "refused", took_ms = self.took(), detail = %why, "{}", self.what);
    }

    /// Milliseconds, to the microsecond.
    fn took(&self) -> f64 {
        (self.begun.elapsed().as_secs_f64() * 1e6).round() / 1e3
    }
}
