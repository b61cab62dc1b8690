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
        self.done(key, detail).say();
    }

    /// It is made, and that can be said later.
    pub(super) fn done(self, key: &AttachmentKey, detail: impl Display) -> Made {
        Made { what: self.what, key: key.clone(), took_ms: self.took(), detail: detail.to_string() }
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

/// A change that was made, and not yet said.
#[derive(Debug)]
pub(super) struct Made {
    what: &'static str,
    key: AttachmentKey,
    took_ms: f64,
    detail: String,
}

impl Made {
    /// Says so.
    pub(super) fn say(self) {
        let Self { what, key, took_ms, detail } = self;
        tracing::info!(%key, result = "ok", took_ms, %detail, "{what}");
    }
}
