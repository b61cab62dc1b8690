//! Removes a port: programs, entries and file, and with its last port the bridge's. Every step runs, whether the one before failed or not.

use shunt_agent_api::{AttachmentKey, BridgePort, EventKind};

use crate::datapath::{encode, programs};
use crate::registry::Attachment;
use crate::resources::change::Change;
use crate::resources::port::Unfinished;
use crate::resources::{Failures, Node};

impl Node {
    /// Removes an attachment and sends the event.
    pub(crate) fn forget(&mut self, key: &AttachmentKey, why: &str) -> Option<BridgePort> {
        let change = Change::begin("detach");
        let port = self.take_out(key, why)?;
        change.made(key, why);
        self.events.tell_of(EventKind::Detach, &port, why.to_owned());
        Some(port)
    }

    /// Removes programs, entries and file of an attachment, and those of its bridge with the last attachment.
    /// Failures are logged; the agent's next start tries again.
    pub(crate) fn take_out(&mut self, key: &AttachmentKey, why: &str) -> Option<BridgePort> {
        let attachment = self.registry.remove(key)?;
        self.ledger.release(key);
        self.leases.forget(&attachment.port);
        self.repairs.forget(&attachment);
        let mut failures = Failures::default();
        failures.extend(self.datapath.erase_mappings(&attachment));
        self.note_former(&attachment);
        failures.extend(self.take_away(&attachment));
        failures.extend(self.forget_moved_addresses(&attachment));
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
        failures.extend(self.leave_trunk(&attachment.port, attachment.mac));
        failures.extend(self.leave_uplink(&attachment.port));
        failures.extend(self.leave_gateway(&attachment.port));
        for error in failures {
            tracing::warn!(%key, %error, "cannot remove all of the attachment");
        }
        if attachment.port.vlan.is_none() {
            self.leave_bridge(attachment.port.bridge.index);
        }
        if let Err(error) = self.set_rules() {
            tracing::warn!(%key, %error, "cannot remove the nf_tables rules");
        }
        self.forget_connections(Some(&attachment), None);
        self.return_unneeded_sizes();
        self.remove_record(key);
        tracing::debug!(%key, why, "attachment removed");
        Some(attachment.port)
    }

    /// Removes the entries of addresses that have moved to other ports and are no attachment's own.
    fn forget_moved_addresses(&mut self, attachment: &Attachment) -> Failures {
        let mut failures = Failures::default();
        let own = |other: &Attachment| encode::address_keys(other).collect::<Vec<_>>();
        for key in encode::address_keys(attachment) {
            let Ok(Some(owner)) = self.datapath.owner(&key) else { continue };
            if !self.registry.of_bridge(key.bridge).any(|other| own(other).contains(&key)) {
                failures.extend(self.datapath.erase_address(key, owner.ifindex).err());
            }
        }
        failures
    }

    /// Removes a bridge's program and entries with its last port.
    pub(crate) fn leave_bridge(&mut self, bridge: u32) {
        if self.registry.has_ports_on(bridge) || self.has_unattached_on(bridge) {
            return;
        }
        let Some(bridge) = self.registry.remove_bridge(bridge) else { return };
        let mut failures = Failures::default();
        failures.note(self.forget_foreign_ports_of(bridge.link.index));
        failures.note(self.datapath.detach(&programs::of_bridge(&bridge)));
        failures.extend(self.datapath.erase_bridge(&bridge));
        self.registry.slots.give_back(bridge.slot);
        self.update_nat_ingress();
        for error in failures {
            tracing::warn!(bridge = bridge.link.name, %error, "cannot remove all of the bridge");
        }
    }

    fn take_away(&mut self, attachment: &Attachment) -> Failures {
        let mut failures = Failures::default();
        let hooks = programs::of_port(attachment);
        for hook in hooks.into_iter().rev().filter(|_| !attachment.abandoned) {
            let detached = self.datapath.detach(&hook);
            if detached.is_err() {
                self.unfinished.push(Unfinished { key: attachment.port.key.clone(), hook });
            }
            failures.note(detached);
        }
        if !attachment.abandoned {
            failures.extend(self.kernel.unlimit(&attachment.port, None));
        }
        self.keep_carried(&attachment.port, attachment.slot);
        failures.extend(self.datapath.erase_port(attachment));
        self.registry.slots.give_back(attachment.slot);
        failures
    }

    /// Removes a record, now or once the last program is detached.
    pub(crate) fn remove_record(&mut self, key: &AttachmentKey) {
        if self.is_unfinished(key) {
            return;
        }
        if let Err(error) = self.store.remove(key) {
            tracing::warn!(%key, %error, "cannot remove the state file");
        }
    }

    /// Whether a removed attachment has programs that could not be detached.
    pub(crate) fn is_unfinished(&self, key: &AttachmentKey) -> bool {
        self.unfinished.iter().any(|left| left.key == *key)
    }

    /// Tries again to detach what could not be detached. The record goes with the last program, unless the key is attached again.
    pub(crate) fn finish_removals(&mut self) {
        let tried = std::mem::take(&mut self.unfinished);
        for left in &tried {
            let is_needed = self.is_known(left.hook.ifindex);
            if !is_needed && let Err(error) = self.datapath.detach(&left.hook) {
                tracing::debug!(key = %left.key, %error, "cannot detach a program");
                self.unfinished.push(left.clone());
            }
        }
        for key in tried.into_iter().map(|left| left.key) {
            if self.registry.get(&key).is_none() && !self.orphaned().any(|orphan| *orphan == key) {
                self.remove_record(&key);
            }
        }
    }
}
