//! Logs one line per change of an attachment: verb, key, result and duration.

use std::fmt::Display;
use std::time::Instant;

use shunt_agent_api::AttachmentKey;

use super::Refusal;

/// A change in progress.
#[derive(Debug)]
pub(crate) struct Change {
    what: &'static str,
    begun: Instant,
}

impl Change {
    /// Starts the clock.
    pub(crate) fn begin(what: &'static str) -> Self {
        Self { what, begun: Instant::now() }
    }

    /// Logs success.
    pub(crate) fn made(self, key: &AttachmentKey, detail: impl Display) {
        tracing::info!(%key, result = "ok", took_ms = self.took(), %detail, "{}", self.what);
    }

    /// Logs a refusal.
    pub(crate) fn refused(self, key: &AttachmentKey, why: &Refusal) {
        tracing::warn!(%key, result = "refused", took_ms = self.took(), detail = %why, "{}", self.what);
    }

    /// Milliseconds, to the microsecond.
    fn took(&self) -> f64 {
        (self.begun.elapsed().as_secs_f64() * 1e6).round() / 1e3
    }
}
