//! The lower interface of VLAN interfaces: a master in the node's namespace, or the host end of the interface below.
//!
//! The agent only attaches one program there, as long as a VLAN interface needs it. If the master is deleted, its VLAN interfaces are
//! deleted too, as the kernel does with its own VLAN devices.

use std::net::IpAddr;

use shunt_agent_api::{BridgePort, Interface};
use shunt_dataplane::wire::address::Mac;

use super::link_deletion::delete_in_background;
use super::{Agent, Refusal};
use crate::kernel::{Finding, KernelError};
use crate::registry::{Attachment, Trunk};

impl Agent {
    /// Attaches the program to an attachment's trunk, once.
    pub(super) fn build_trunk(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        let Some(trunk) = Trunk::of(&attachment.port) else { return Ok(()) };
        if !trunk.within {
            self.kernel.add_filter_address(trunk.link.index, attachment.mac)?;
        }
        if self.registry.insert_trunk(trunk.clone()) {
            self.kernel.attach(&trunk.hook())?;
        }
        self.tell_parent(&trunk)
    }

    /// Updates the parent of VLAN interfaces: frames to it must pass its host end, and its source guard
    /// allows their addresses.
    fn tell_parent(&mut self, trunk: &Trunk) -> Result<(), KernelError> {
        let (is_parent, lent) = self.parenthood(&trunk.link);
        let Some(parent) = self.registry.by_host_mut(trunk.link.index).filter(|_| trunk.within) else {
            return Ok(());
        };
        if (parent.is_parent, &parent.lent) == (is_parent, &lent) {
            return Ok(());
        }
        let before = parent.clone();
        (parent.is_parent, parent.lent) = (is_parent, lent);
        let parent = parent.clone();
        self.kernel.write_station(&parent)?;
        self.kernel.write_addresses(&parent)?;
        let kept: Vec<_> = parent.address_keys().collect();
        before
            .address_keys()
            .filter(|key| !kept.contains(key))
            .try_for_each(|key| self.kernel.erase_address(key, parent.port.host.index))
    }

    /// Whether the interface with this host end has VLAN interfaces, and their addresses.
    pub(super) fn parenthood(&self, host: &Interface) -> (bool, Vec<IpAddr>) {
        let trunk = Trunk { link: host.clone(), within: true };
        let ips = self.registry.of_trunk(&trunk).flat_map(|attachment| attachment.port.ips.clone());
        (self.registry.has_trunk(&trunk), ips.collect())
    }

    /// Marks an earlier agent's ports that are parents, before their entries are taken over.
    pub(super) fn note_parents(&mut self) {
        for trunk in self.registry.trunks().filter(|trunk| trunk.within).cloned().collect::<Vec<_>>() {
            let (is_parent, lent) = self.parenthood(&trunk.link);
            if let Some(parent) = self.registry.by_host_mut(trunk.link.index) {
                (parent.is_parent, parent.lent) = (is_parent, lent);
            }
        }
    }

    /// Detaches the program from a trunk after its last attachment was removed.
    pub(super) fn leave_trunk(&mut self, port: &BridgePort, mac: Mac) -> Vec<KernelError> {
        let Some(trunk) = Trunk::of(port) else { return Vec::new() };
        let mut errors = Vec::new();
        let others: Vec<Mac> = self.registry.of_trunk(&trunk).map(|other| other.mac).collect();
        if !trunk.within && !others.contains(&mac) {
            errors.extend(self.kernel.remove_filter_address(trunk.link.index, mac).err());
        }
        if others.is_empty() && self.registry.remove_trunk(&trunk) {
            errors.extend(self.kernel.detach(&trunk.hook()).err());
        }
        errors.extend(self.tell_parent(&trunk).err());
        errors
    }

    /// Takes over the programs of an earlier agent.
    pub(super) fn adopt_trunks(&mut self) {
        for trunk in self.registry.trunks().cloned().collect::<Vec<_>>() {
            let hook = trunk.hook();
            let adopted = self.kernel.adopt(&hook).and_then(|is_there| match is_there {
                true => Ok(()),
                false => self.kernel.attach(&hook),
            });
            if let Err(error) = adopted.and_then(|()| self.tell_parent(&trunk)) {
                self.warn(format!("VLANs of {}: cannot take over their program: {error}", trunk.link.name));
            }
        }
    }

    /// Reattaches programs that somebody else has detached.
    pub(super) fn repair_trunks(&mut self) {
        for trunk in self.registry.trunks().cloned().collect::<Vec<_>>() {
            let name = format!("VLANs of {}", trunk.link.name);
            let findings = self.audit_trunk(&trunk);
            if self.repairs.is_off() || matches!(findings.as_deref(), Ok([Finding::Link(_)])) {
                continue;
            }
            self.repair_findings(&name, None, &trunk.link.name, findings, |agent, _| {
                agent.kernel.attach(&trunk.hook())?;
                agent.audit_trunk(&trunk)
            });
        }
    }

    /// Lists the faults of a trunk.
    pub(super) fn audit_trunk(&mut self, trunk: &Trunk) -> Result<Vec<Finding>, Refusal> {
        let link = &trunk.link;
        if self.kernel.link(link.index)?.is_none_or(|found| found.name != link.name) {
            return Ok(vec![Finding::Link(link.name.clone())]);
        }
        Ok(self.kernel.audit_program(&trunk.hook())?)
    }

    /// A master was deleted: deletes its VLAN interfaces.
    pub(super) fn trunks_deleted(&mut self, index: u32) {
        let lost: Vec<_> =
            self.registry.trunks().filter(|trunk| trunk.link.index == index).cloned().collect();
        for trunk in lost {
            let ports: Vec<_> = self.registry.of_trunk(&trunk).map(|lost| lost.port.clone()).collect();
            for port in ports {
                self.forget(&port.key, "its master is gone");
                self.delete_orphaned_interface(port);
            }
        }
    }

    /// Deletes a VLAN interface whose master is gone.
    pub(super) fn delete_orphaned_interface(&mut self, port: BridgePort) {
        tracing::info!(key = %port.key, "VLAN interface deleted: its master is gone");
        delete_in_background(port.host, Vec::new(), self.kernel.grace_periods().clone());
    }
}
