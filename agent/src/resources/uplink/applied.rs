//! Makes an interface a bridge's uplink, whatever of that it is.
//!
//! An interface is a bridge's uplink as long as an attachment's configuration names it. Programs are attached before it becomes a port and
//! detached after it was released: without them the kernel's bridge would forward the uplink's VLANs.

use shunt_agent_api::{BridgePort, BridgeUplink, Interface};
use shunt_dataplane::abi::NO_SLOT;
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::Link;

use super::observed::fault_name;
use super::validation::unusable;
use crate::datapath::programs;
use crate::registry::Uplink;
use crate::resources::node::{Links, PreviousSlots};
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

impl Resource for Uplink {
    fn name(&self) -> String {
        fault_name(&self.link.name)
    }

    fn ifname(&self) -> &str {
        &self.link.name
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        node.audit_uplink(self)
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        node.complete_uplink(self)
    }

    fn is_beyond_repair(&self, node: &mut Node, findings: &[Finding]) -> bool {
        let is_gone = matches!(findings, [Finding::Link(_)]);
        if is_gone {
            node.uplink_deleted(self.link.index);
        }
        is_gone
    }
}

impl Node {
    /// Makes the uplink of an attachment a port of its bridge, once.
    pub(crate) fn build_uplink(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        let Some(wanted) = &port.service.uplink else { return Ok(()) };
        let link = self.uplink_named(&wanted.name)?;
        if self.registry.uplinks.contains_key(&link.index) {
            return Ok(());
        }
        let slot = self.take_slot()?;
        let uplink = Uplink { mapped: self.is_mapped(), ..uplink_of(port, wanted, &link, slot) };
        self.foreign_ports.remove(&link.index);
        self.datapath.end_sparing(uplink.bridge.index)?;
        self.registry.uplinks.insert(link.index, uplink.clone());
        if wanted.move_address {
            self.begin_relocation(&uplink)?;
        }
        uplink.apply(self, Cause::New)
    }

    /// Registers the uplink of an earlier agent's attachment.
    pub(crate) fn place_uplink(
        &mut self,
        port: &BridgePort,
        links: &Links,
        previous_slots: &mut PreviousSlots,
    ) {
        let Some(wanted) = &port.service.uplink else { return };
        let Some(link) = links.values().find(|link| link.name == wanted.name) else { return };
        if self.registry.uplinks.contains_key(&link.index) {
            return;
        }
        // An uplink works without a counter slot.
        let slot =
            previous_slots.remove(&link.index).or_else(|| self.take_slot_uncleared().ok()).unwrap_or(NO_SLOT);
        self.registry.uplinks.insert(link.index, uplink_of(port, wanted, link, slot));
    }

    /// Gives an uplink what it lacks.
    fn complete_uplink(&mut self, uplink: &Uplink) -> Result<(), Refusal> {
        let uplink = &self.apply_port_state(uplink)?;
        let link = self.kernel.link(uplink.link.index)?;
        let (master, mtu) = link.map_or((None, 0), |link| (link.master, link.mtu));
        if master.is_some_and(|master| master != uplink.bridge.index) {
            return Err(unusable(&uplink.link.name, "is in another bridge by now"));
        }
        self.datapath.write_uplink(uplink, mtu)?;
        for hook in programs::of_uplink(uplink) {
            self.datapath.ensure(&hook)?;
        }
        // An earlier agent was killed before it wrote the relocation file: enslaving the uplink now would cut
        // the node off.
        if uplink.moves && master.is_none() && !self.relocations.contains_key(&uplink.link.name) {
            self.begin_relocation(uplink)?;
        }
        if self.is_relocating(uplink) {
            self.relocate(uplink)?;
            return self.serve_natives(uplink.bridge.index);
        }
        self.kernel.enslave_uplink(uplink)?;
        self.serve_natives(uplink.bridge.index)
    }
}

fn uplink_of(port: &BridgePort, wanted: &BridgeUplink, link: &Link, slot: u32) -> Uplink {
    Uplink {
        link: Interface { name: link.name.clone(), index: link.index },
        mac: link.mac.map(Mac::new).unwrap_or_default(),
        bridge: port.bridge.clone(),
        kept: wanted.kept,
        moves: wanted.move_address,
        blocked: false,
        deaf: false,
        mapped: false,
        slot,
    }
}
