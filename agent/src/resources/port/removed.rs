//! Removes a port: programs, entries and file, and with its last port the bridge's. Every step runs, whether the one before failed or not.

use shunt_agent_api::{AttachmentKey, BridgePort, EventKind};

use crate::datapath::{encode, programs};
use crate::registry::Attachment;
use crate::resources::change::Change;
use crate::resources::{Failures, Node};

impl Node {
    /// Removes an attachment and sends the event.
    pub(crate) fn forget(&mut self, key: &AttachmentKey, why: &str) -> Option<BridgePort> {
        let change = Change::begin("detach");
        let port = self.take_out(key, why)?;
        change.made(key, why);
        self.events.tell(EventKind::Detach, Some(key), &port.host.name, why.to_owned());
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
        let bridge = attachment.port.bridge.index;
        if attachment.port.vlan.is_none()
            && self.registry.of_bridge(bridge).next().is_none()
            && let Some(bridge) = self.registry.remove_bridge(bridge)
        {
            failures.note(self.forget_foreign_ports_of(bridge.link.index));
            failures.note(self.datapath.detach(&programs::of_bridge(&bridge)));
            failures.extend(self.datapath.erase_bridge(&bridge));
            self.registry.slots.give_back(bridge.slot);
            self.update_nat_ingress();
        }
        for error in failures {
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

    fn take_away(&mut self, attachment: &Attachment) -> Failures {
        let mut failures = Failures::default();
        let hooks = programs::of_port(attachment);
        for hook in hooks.iter().rev().filter(|_| !attachment.abandoned) {
            failures.note(self.datapath.detach(hook));
        }
        if !attachment.abandoned {
            failures.extend(self.kernel.unlimit(&attachment.port, None));
        }
        failures.extend(self.datapath.erase_port(attachment));
        self.registry.slots.give_back(attachment.slot);
        failures
    }
}
