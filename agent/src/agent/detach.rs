//! Removes attachments. Every step runs, whether the one before failed or not.

use std::collections::BTreeSet;
use std::path::PathBuf;

use shunt_agent_api::{AttachmentKey, BridgePort, Collected, Detached, EventKind, Interface};

use super::Agent;
use super::change::Change;
use super::link_deletion::delete_in_background;
use crate::kernel::KernelError;
use crate::registry::Attachment;

impl Agent {
    /// Removes an attachment; there may be none. The `link` is deleted in the background, unless another
    /// attachment uses it.
    pub fn detach(&mut self, key: &AttachmentKey, link: Option<Interface>) -> Detached {
        let change = Change::begin("detach");
        let goes_with_link =
            link.is_some() && self.registry.get(key).map(|known| &known.port.host) == link.as_ref();
        let pins = if goes_with_link { self.abandon_hooks(key) } else { Vec::new() };
        let port = self.forget(key, "asked to").or_else(|| self.forget_orphan(key));
        match link {
            Some(link) if self.is_known(link.index) => {
                tracing::warn!(%key, link = %link.name, "link not deleted: another attachment uses it");
            }
            Some(link) => delete_in_background(link, pins, self.kernel.grace_periods().clone()),
            None => {}
        }
        if port.is_none() {
            change.made(key, "it was not attached");
        }
        Detached { port: port.map(Box::new) }
    }

    /// Leaves an attachment's programs to the deletion of their link. Returns their pins.
    fn abandon_hooks(&mut self, key: &AttachmentKey) -> Vec<PathBuf> {
        let Some(attachment) = self.registry.get_mut(key) else { return Vec::new() };
        attachment.abandoned = true;
        attachment.hooks().iter().map(|hook| self.kernel.abandon(hook)).collect()
    }

    /// Removes the attachments of `network` that are not in `valid` and do not belong to one of these.
    pub fn collect(&mut self, network: &str, valid: &[AttachmentKey]) -> Collected {
        let valid: BTreeSet<_> = valid.iter().collect();
        let stale: Vec<_> = self
            .registry
            .attachments()
            .map(|attachment| &attachment.port.key)
            .chain(self.orphaned())
            .filter(|key| key.network == network && !valid.contains(key))
            .filter(|key| !valid.iter().any(|parent| key.belongs_to(parent)))
            .cloned()
            .collect();
        let removed =
            stale.iter().filter_map(|key| self.forget(key, "collected").or_else(|| self.forget_orphan(key)));
        let removed: Vec<_> = removed.collect();
        tracing::info!(network, removed = removed.len(), "garbage collected");
        Collected { removed }
    }

    /// Removes an attachment and sends the event.
    pub(super) fn forget(&mut self, key: &AttachmentKey, why: &str) -> Option<BridgePort> {
        let change = Change::begin("detach");
        let port = self.take_out(key, why)?;
        change.made(key, why);
        self.events.tell(EventKind::Detach, Some(key), &port.host.name, why.to_owned());
        Some(port)
    }

    /// Removes programs, entries and file of an attachment, and those of its bridge with the last attachment.
    /// Failures are logged; the agent's next start tries again.
    pub(super) fn take_out(&mut self, key: &AttachmentKey, why: &str) -> Option<BridgePort> {
        let attachment = self.registry.remove(key)?;
        self.ledger.release(key);
        self.leases.forget(&attachment.port);
        self.repairs.forget(&attachment);
        let mut errors = self.kernel.erase_mappings(&attachment);
        errors.extend(self.take_away(&attachment));
        if !attachment.port.mappings.is_empty() {
            self.update_nat_ingress();
            self.follow_mappings(&attachment.port.mappings, &[]);
        }
        if attachment.is_masqueraded() {
            self.sweep_flows_soon();
            if !self.is_masqueraded() {
                self.update_nat_ingress();
            }
        }
        errors.extend(self.leave_trunk(&attachment.port, attachment.mac));
        errors.extend(self.leave_uplink(&attachment.port));
        errors.extend(self.leave_gateway(&attachment.port));
        let bridge = attachment.port.bridge.index;
        if attachment.port.vlan.is_none()
            && self.registry.of_bridge(bridge).next().is_none()
            && let Some(bridge) = self.registry.remove_bridge(bridge)
        {
            errors.extend(self.forget_foreign_ports_of(bridge.link.index).err());
            errors.extend(self.kernel.detach(&bridge.hook()).err());
            errors.extend(self.kernel.erase_bridge(&bridge));
            self.registry.slots.give_back(bridge.slot);
            self.update_nat_ingress();
        }
        for error in errors {
            tracing::warn!(%key, %error, "cannot remove all of the attachment");
        }
        if let Err(error) = self.set_rules() {
            tracing::warn!(%key, %error, "cannot remove the nf_tables rules");
        }
        if let Err(error) = self.store.remove(key) {
            tracing::warn!(%key, %error, "cannot remove the state file");
        }
        tracing::debug!(%key, why, "attachment removed");
        Some(attachment.port)
    }

    fn take_away(&mut self, attachment: &Attachment) -> Vec<KernelError> {
        let hooks = attachment.hooks();
        let hooks = hooks.iter().rev().filter(|_| !attachment.abandoned);
        let mut errors: Vec<_> = hooks.filter_map(|hook| self.kernel.detach(hook).err()).collect();
        if !attachment.abandoned {
            errors.extend(self.kernel.unlimit(&attachment.port, None));
        }
        errors.extend(self.kernel.erase_port(attachment));
        self.registry.slots.give_back(attachment.slot);
        errors
    }
}
