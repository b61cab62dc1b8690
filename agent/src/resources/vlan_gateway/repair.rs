//! Repairs gateways, and takes over those of an earlier agent.

use std::collections::BTreeSet;

use shunt_agent_api::BridgePort;
use shunt_dataplane::abi::NO_SLOT;

use super::observed::fault_name;
use crate::registry::VlanGateway;
use crate::registry::vlan_gateway::{self, Place};
use crate::resources::node::{Links, PreviousSlots};
use crate::resources::{Finding, Node, Refusal};

impl Node {
    /// Registers the gateway of an earlier agent's attachment. A missing one is created by the next check.
    pub(crate) fn place_gateway(
        &mut self,
        port: &BridgePort,
        links: &Links,
        previous_slots: &mut PreviousSlots,
    ) {
        let Some(place) = vlan_gateway::place(port) else { return };
        if self.registry.gateways.contains_key(&place) {
            return;
        }
        let (node, bridged) = vlan_gateway::names(&port.bridge, place.1);
        let Some(node) = links.values().find(|link| link.name == node) else { return };
        let Some(bridged) = node.peer.and_then(|peer| links.get(&peer)).filter(|it| it.name == bridged)
        else {
            return;
        };
        let slot = previous_slots.remove(&bridged.index).or_else(|| self.take_slot_uncleared().ok());
        if let Some(gateway) = VlanGateway::of(port, (node, bridged), slot.unwrap_or(NO_SLOT)) {
            self.registry.gateways.insert(place, gateway);
        }
    }

    /// Takes over the programs of an earlier agent.
    pub(crate) fn adopt_gateways(&mut self) {
        for gateway in self.registry.gateways.values().cloned().collect::<Vec<_>>() {
            if let Err(error) = self.serve_gateway(&gateway) {
                self.warn(format!(
                    "VLAN gateway {}: cannot take over its programs: {error}",
                    gateway.link.name
                ));
            }
        }
    }

    /// Repairs gateways and creates missing ones.
    pub(crate) fn repair_gateways(&mut self) {
        if self.repairs.is_off() {
            return;
        }
        let ports = self.registry.attachments().map(|attachment| &attachment.port);
        let wanted: BTreeSet<Place> = ports.filter_map(vlan_gateway::place).collect();
        for place in wanted {
            let Some(bridge) = self.wanting(place).next().map(|port| port.bridge.clone()) else { continue };
            // A gateway without its bridge is recreated with its attachments.
            if self.kernel.link(bridge.index).is_ok_and(|link| link.is_none()) {
                continue;
            }
            let name = vlan_gateway::names(&bridge, place.1).0;
            let findings = self.audit_gateway_patiently(place, &name);
            self.repair_findings(&fault_name(&name), None, &name, findings, |node, findings| {
                node.repair_gateway(place, findings)?;
                node.audit_gateway(place, &name)
            });
        }
    }

    fn repair_gateway(&mut self, place: Place, findings: &[Finding]) -> Result<(), Refusal> {
        let is_gone = findings.iter().any(|finding| matches!(finding, Finding::Link(_)));
        let gateway = self.registry.gateways.get(&place).cloned();
        let Some(gateway) = gateway.filter(|_| !is_gone) else { return self.make_gateway_anew(place) };
        if findings.iter().any(|finding| !matches!(finding, Finding::Address { .. })) {
            self.serve_gateway(&gateway)?;
        }
        for finding in findings {
            if let Finding::Address { address, .. } = finding {
                self.address_gateway(&gateway, *address)?;
            }
        }
        Ok(())
    }

    /// Recreates a gateway. Nothing of the old one is reused: its indexes may belong to others.
    fn make_gateway_anew(&mut self, place: Place) -> Result<(), Refusal> {
        let ports: Vec<BridgePort> = self.wanting(place).cloned().collect();
        let Some(first) = ports.first() else { return Ok(()) };
        for error in self.remove_gateway(place, &first.bridge) {
            tracing::debug!(%error, "cannot remove what is left of a VLAN gateway");
        }
        self.validate_gateways_name(&vlan_gateway::names(&first.bridge, place.1))?;
        let gateway = self.make_gateway(first, place)?;
        let mtu = ports.iter().map(|port| port.mtu).min().unwrap_or(first.mtu);
        if mtu < gateway.port.port.mtu {
            self.narrow_gateway(place, mtu)?;
        }
        for address in self.gateways_addresses(place) {
            self.address_gateway(&gateway, address)?;
        }
        Ok(())
    }

    /// A link was deleted: recreates its gateway.
    pub(crate) fn gateway_deleted(&mut self, index: u32) {
        if self.registry.gateway_by_end(index).is_some() {
            self.repair_gateways();
        }
    }
}
