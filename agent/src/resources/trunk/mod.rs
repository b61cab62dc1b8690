//! The lower interface of VLAN interfaces: a master in the node's namespace, or the host end of the interface below.
//!
//! The agent only attaches one program there, as long as a VLAN interface needs it. If the master is deleted, its VLAN interfaces are
//! deleted too, as the kernel does with its own VLAN devices.

use crate::datapath::encode;
use crate::datapath::programs;
use std::net::IpAddr;

use shunt_agent_api::{BridgePort, Interface};
use shunt_dataplane::wire::address::Mac;

use crate::kernel::KernelError;
use crate::registry::{Attachment, Trunk};
use crate::resources::Finding;
use crate::resources::delete_in_background;
use crate::resources::{Failures, Node, Refusal};

impl Node {
    /// Attaches the program to an attachment's trunk, once.
    pub(crate) fn build_trunk(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        let Some(trunk) = Trunk::of(&attachment.port) else { return Ok(()) };
        if !trunk.within {
            self.kernel.add_filter_address(trunk.link.index, attachment.mac)?;
        }
        if !self.registry.insert_trunk(trunk.clone()) {
            return self.tell_parent(&trunk);
        }
        self.apply_trunk(&trunk)
    }

    /// Puts a trunk's program in force, whether it was or not.
    fn apply_trunk(&mut self, trunk: &Trunk) -> Result<(), KernelError> {
        self.datapath.ensure(&programs::of_trunk(trunk))?;
        self.tell_parent(trunk)
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
        self.datapath.write_station(&parent)?;
        self.datapath.write_addresses(&parent)?;
        let kept: Vec<_> = encode::address_keys(&parent).collect();
        encode::address_keys(&before)
            .filter(|key| !kept.contains(key))
            .try_for_each(|key| Ok(self.datapath.erase_address(key, parent.port.host.index)?))
    }

    /// Whether the interface with this host end has VLAN interfaces, and their addresses.
    pub(crate) fn parenthood(&self, host: &Interface) -> (bool, Vec<IpAddr>) {
        let trunk = Trunk { link: host.clone(), within: true };
        let ips = self.registry.of_trunk(&trunk).flat_map(|attachment| attachment.port.ips.clone());
        (self.registry.has_trunk(&trunk), ips.collect())
    }

    /// Marks an earlier agent's ports that are parents, before their entries are taken over.
    pub(crate) fn note_parents(&mut self) {
        for trunk in self.registry.trunks().filter(|trunk| trunk.within).cloned().collect::<Vec<_>>() {
            let (is_parent, lent) = self.parenthood(&trunk.link);
            if let Some(parent) = self.registry.by_host_mut(trunk.link.index) {
                (parent.is_parent, parent.lent) = (is_parent, lent);
            }
        }
    }

    /// Detaches the program from a trunk after its last attachment was removed.
    pub(crate) fn leave_trunk(&mut self, port: &BridgePort, mac: Mac) -> Failures {
        let mut failures = Failures::default();
        let Some(trunk) = Trunk::of(port) else { return failures };
        let others: Vec<Mac> = self.registry.of_trunk(&trunk).map(|other| other.mac).collect();
        if !trunk.within && !others.contains(&mac) {
            failures.note(self.kernel.remove_filter_address(trunk.link.index, mac));
        }
        if others.is_empty() && self.registry.remove_trunk(&trunk) {
            failures.note(self.datapath.detach(&programs::of_trunk(&trunk)));
        }
        failures.note(self.tell_parent(&trunk));
        failures
    }

    /// Takes over the programs of an earlier agent.
    pub(crate) fn adopt_trunks(&mut self) {
        for trunk in self.registry.trunks().cloned().collect::<Vec<_>>() {
            if let Err(error) = self.apply_trunk(&trunk) {
                self.warn(format!("VLANs of {}: cannot take over their program: {error}", trunk.link.name));
            }
        }
    }

    /// Reattaches programs that somebody else has detached.
    pub(crate) fn repair_trunks(&mut self) {
        for trunk in self.registry.trunks().cloned().collect::<Vec<_>>() {
            let name = format!("VLANs of {}", trunk.link.name);
            let findings = self.audit_trunk(&trunk);
            if self.repairs.is_off() || matches!(findings.as_deref(), Ok([Finding::Link(_)])) {
                continue;
            }
            self.repair_findings(&name, None, &trunk.link.name, findings, |node, _| {
                node.apply_trunk(&trunk)?;
                node.audit_trunk(&trunk)
            });
        }
    }

    /// Lists the faults of a trunk.
    pub(crate) fn audit_trunk(&mut self, trunk: &Trunk) -> Result<Vec<Finding>, Refusal> {
        let link = &trunk.link;
        if self.kernel.link(link.index)?.is_none_or(|found| found.name != link.name) {
            return Ok(vec![Finding::Link(link.name.clone())]);
        }
        Ok(self.audit_program(&programs::of_trunk(trunk))?)
    }

    /// A master was deleted: deletes its VLAN interfaces.
    pub(crate) fn trunks_deleted(&mut self, index: u32) {
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
    pub(crate) fn delete_orphaned_interface(&mut self, port: BridgePort) {
        tracing::info!(key = %port.key, "VLAN interface deleted: its master is gone");
        delete_in_background(port.host, Vec::new(), self.kernel.grace_periods().clone());
    }
}
