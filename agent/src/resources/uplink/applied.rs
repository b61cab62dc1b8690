//! Makes an interface a bridge's uplink, whatever of that it is.
//!
//! An interface is a bridge's uplink as long as an attachment's configuration names it. Programs are attached before it becomes a port and
//! detached after it was released: without them the kernel's bridge would forward the uplink's VLANs.

use shunt_agent_api::{BridgePort, BridgeUplink, Interface};
use shunt_dataplane::abi::NO_SLOT;
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::Link;

use super::admission::{names, unusable};
use crate::datapath::programs;
use crate::registry::Uplink;
use crate::resources::node::{Links, PreviousSlots};
use crate::resources::{Finding, Node, Refusal};

impl Node {
    /// Makes the uplink of an attachment a port of its bridge, once.
    pub(crate) fn build_uplink(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        let Some(wanted) = &port.service.uplink else { return Ok(()) };
        let link = self.uplink_named(&wanted.name)?;
        if self.registry.uplinks.contains_key(&link.index) {
            return Ok(());
        }
        let uplink = uplink_of(port, wanted, &link, self.take_slot()?);
        self.foreign_ports.remove(&link.index);
        self.registry.uplinks.insert(link.index, uplink.clone());
        if wanted.move_address {
            self.begin_relocation(&uplink)?;
        }
        self.serve_uplink(&uplink)
    }

    /// Creates whatever the uplink lacks.
    fn serve_uplink(&mut self, uplink: &Uplink) -> Result<(), Refusal> {
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

    /// Takes over the programs of an earlier agent.
    pub(crate) fn adopt_uplinks(&mut self) {
        for uplink in self.registry.uplinks.values().cloned().collect::<Vec<_>>() {
            if let Err(error) = self.serve_uplink(&uplink) {
                self.warn(format!("uplink {}: cannot take over its programs: {error}", uplink.link.name));
            }
        }
    }

    /// Repairs uplinks, and enslaves uplinks that came back.
    pub(crate) fn repair_uplinks(&mut self) {
        if self.repairs.is_off() {
            return;
        }
        for uplink in self.registry.uplinks.values().cloned().collect::<Vec<_>>() {
            let name = format!("uplink {}", uplink.link.name);
            let findings = self.audit_uplink(&uplink);
            if matches!(findings.as_deref(), Ok([Finding::Link(_)])) {
                self.uplink_deleted(uplink.link.index);
                continue;
            }
            self.repair_findings(&name, None, &uplink.link.name, findings, |node, _| {
                node.serve_uplink(&uplink)?;
                node.audit_uplink(&uplink)
            });
        }
        for mut port in self.ports_without_uplink() {
            let Some(name) = port.service.uplink.as_ref().map(|wanted| wanted.name.clone()) else { continue };
            let findings = Ok(vec![Finding::Link(name.clone())]);
            self.repair_findings(&format!("uplink {name}"), None, &name, findings, |node, _| {
                node.admit_uplink(&mut port)?;
                node.build_uplink(&port)?;
                Ok(Vec::new())
            });
        }
    }

    /// One port per uplink that is configured and missing.
    fn ports_without_uplink(&self) -> Vec<BridgePort> {
        let mut lacking: Vec<BridgePort> = Vec::new();
        for port in self.registry.attachments().map(|attachment| &attachment.port) {
            let Some(wanted) = &port.service.uplink else { continue };
            let serves = self.registry.uplinks.values().any(|uplink| uplink.link.name == wanted.name);
            if !serves && !lacking.iter().any(|other| names(other, &wanted.name)) {
                lacking.push(port.clone());
            }
        }
        lacking
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
        slot,
    }
}
