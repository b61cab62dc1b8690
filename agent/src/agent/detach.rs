//! Forgetting attachments. Every step is tried, whatever became of the one before.

use std::collections::BTreeSet;
use std::time::Instant;

use shunt_agent_api::{AttachmentKey, BridgePort, Collected, Detached};

use super::Agent;
use crate::kernel::KernelError;
use crate::registry::Attachment;

impl Agent {
    /// Forgets an attachment. There need not be one.
    pub fn detach(&mut self, key: &AttachmentKey) -> Detached {
        let begun = Instant::now();
        let port = self.forget(key, "asked to");
        tracing::info!(%key, known = port.is_some(), took = ?begun.elapsed(), "detached");
        Detached { port }
    }

    /// Forgets what is in `network` and not in `valid`.
    pub fn collect(&mut self, network: &str, valid: &[AttachmentKey]) -> Collected {
        let valid: BTreeSet<_> = valid.iter().collect();
        let stale: Vec<_> = self
            .registry
            .attachments()
            .map(|attachment| attachment.port.key.clone())
            .filter(|key| key.network == network && !valid.contains(key))
            .collect();
        let removed: Vec<_> = stale.iter().filter_map(|key| self.forget(key, "collected")).collect();
        tracing::info!(network, removed = removed.len(), "collected");
        Collected { removed }
    }

    /// Takes everything of an attachment away: programs, entries, file; and its bridge's, if it was the last there.
    /// What cannot be taken away is logged; the next start of the agent tries again.
    pub(super) fn forget(&mut self, key: &AttachmentKey, why: &str) -> Option<BridgePort> {
        let attachment = self.registry.remove(key)?;
        self.settling.put_off();
        let mut errors = self.take_away(&attachment);
        let bridge = attachment.port.bridge.index;
        if self.registry.of_bridge(bridge).next().is_none()
            && let Some(bridge) = self.registry.remove_bridge(bridge)
        {
            errors.extend(self.kernel.detach(&bridge.hook()).err());
            errors.extend(self.kernel.erase_bridge(&bridge));
            self.registry.slots.give_back(bridge.slot);
        }
        for error in errors {
            tracing::warn!(%key, %error, "could not be taken away");
        }
        if let Err(error) = self.store.remove(key) {
            tracing::warn!(%key, %error, "the state file stays behind");
        }
        tracing::debug!(%key, why, "forgotten");
        Some(attachment.port)
    }

    fn take_away(&mut self, attachment: &Attachment) -> Vec<KernelError> {
        let mut errors: Vec<_> =
            attachment.hooks().iter().rev().filter_map(|hook| self.kernel.detach(hook).err()).collect();
        errors.extend(self.kernel.erase_port(attachment));
        self.registry.slots.give_back(attachment.slot);
        errors
    }
}
