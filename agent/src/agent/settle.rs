//! What is done when nothing else is: programs move from filters to links, one at a time.

use std::time::{Duration, Instant};

use super::Agent;
use crate::bpf::hook::Hook;
use crate::registry::{Attachment, Bridge};

/// How long nothing must have been attached or detached. Moving a program holds up everybody who configures network
/// interfaces for some milliseconds, and a node that starts containers does little else.
const QUIET: Duration = Duration::from_secs(1);

/// How long to wait after a program could not be moved.
const RETRY: Duration = Duration::from_secs(60);

/// When there is something to be done.
#[derive(Debug, Default)]
pub(super) struct Settling {
    due: Option<Instant>,
}

impl Settling {
    /// Something was attached or detached.
    pub(super) fn put_off(&mut self) {
        self.due = Some(Instant::now() + QUIET);
    }
}

impl Agent {
    /// When [`Self::settle`] should be called; none while there is nothing to be done.
    pub fn settles_at(&self) -> Option<Instant> {
        self.settling.due
    }

    /// Moves one program to a link.
    pub fn settle(&mut self) {
        let hooks = self.registry.bridges().map(Bridge::hook);
        let mut hooks = hooks.chain(self.registry.attachments().flat_map(Attachment::hooks));
        let hook: Option<Hook> = hooks.find(|hook| self.kernel.is_to_be_promoted(hook));
        let Some(hook) = hook else {
            self.settling.due = None;
            return;
        };
        let begun = Instant::now();
        match self.kernel.promote(&hook) {
            Ok(()) => tracing::debug!(%hook, took = ?begun.elapsed(), "moved to a link"),
            Err(error) => {
                tracing::warn!(%hook, %error, "could not be moved to a link; its filter goes on serving");
                self.settling.due = Some(Instant::now() + RETRY);
            }
        }
    }
}
