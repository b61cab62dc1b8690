//! Puts a trunk's program in force, and tells the parent of VLAN interfaces.

use std::net::IpAddr;

use shunt_agent_api::Interface;

use crate::datapath::encode;
use crate::datapath::programs;
use crate::kernel::KernelError;
use crate::registry::{Attachment, Trunk};
use crate::resources::Finding;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Node, Refusal};

impl Resource for Trunk {
    fn name(&self) -> String {
        format!("VLANs of {}", self.link.name)
    }

    fn ifname(&self) -> &str {
        &self.link.name
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        node.audit_trunk(self)
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        node.datapath.ensure(&programs::of_trunk(self))?;
        Ok(node.tell_parent(self)?)
    }
}

impl Node {
    /// Attaches the program to an attachment's trunk, once.
    pub(crate) fn build_trunk(&mut self, attachment: &Attachment) -> Result<(), Refusal> {
        let Some(trunk) = Trunk::of(&attachment.port) else { return Ok(()) };
        if !trunk.within {
            self.kernel.add_filter_address(trunk.link.index, attachment.mac)?;
        }
        if !self.registry.insert_trunk(trunk.clone()) {
            return Ok(self.tell_parent(&trunk)?);
        }
        trunk.apply(self, Cause::New)
    }

    /// Updates the parent of VLAN interfaces: frames to it must pass its host end, and its source guard
    /// allows their addresses.
    pub(crate) fn tell_parent(&mut self, trunk: &Trunk) -> Result<(), KernelError> {
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
        self.datapath.complete_addresses(&parent)?;
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
}
