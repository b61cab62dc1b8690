//! Repairs gateways, and takes over those of an earlier agent.

use std::collections::BTreeMap;

use shunt_agent_api::BridgePort;
use shunt_dataplane::abi::NO_SLOT;

use super::observed::fault_name;
use crate::registry::VlanGateway;
use crate::registry::vlan_gateway::{self, Place};
use crate::resources::node::{Links, PreviousSlots};
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

/// A gateway that attachments ask for, whether it is there or not.
pub(crate) struct DesiredGateway {
    place: Place,
    name: String,
}

impl DesiredGateway {
    /// Every one.
    pub(crate) fn all(node: &Node) -> Vec<Self> {
        if !node.registry.has_any_in_vlans() {
            return Vec::new();
        }
        let ports = node.registry.attachments().map(|attachment| &attachment.port);
        let wanted: BTreeMap<Place, String> = ports
            .filter_map(|port| {
                let place = vlan_gateway::place(port)?;
                Some((place, vlan_gateway::names(&port.bridge, place.1).0))
            })
            .collect();
        wanted.into_iter().map(|(place, name)| Self { place, name }).collect()
    }
}

impl Resource for DesiredGateway {
    fn name(&self) -> String {
        fault_name(&self.name)
    }

    fn ifname(&self) -> &str {
        &self.name
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        node.audit_gateway(self.place, &self.name)
    }

    fn observe_patiently(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        node.audit_gateway_patiently(self.place, &self.name)
    }

    fn apply(&self, node: &mut Node, cause: Cause<'_>) -> Result<(), Refusal> {
        let gateway = node.registry.gateways.get(&self.place).cloned();
        match (gateway, cause) {
            (Some(gateway), Cause::New | Cause::Start(_)) => Ok(node.serve_gateway(&gateway)?),
            // The next look makes it.
            (None, Cause::New | Cause::Start(_)) => Ok(()),
            (gateway, Cause::Repair(findings)) => node.repair_gateway(self.place, gateway, findings),
        }
    }

    /// A gateway without its bridge is recreated with its attachments.
    fn is_beyond_repair(&self, node: &mut Node, _: &[Finding]) -> bool {
        node.kernel.link(self.place.0).is_ok_and(|bridge| bridge.is_none())
    }
}

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

    fn repair_gateway(
        &mut self,
        place: Place,
        gateway: Option<VlanGateway>,
        findings: &[Finding],
    ) -> Result<(), Refusal> {
        let is_gone = findings.iter().any(|finding| matches!(finding, Finding::Link(_)));
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
            DesiredGateway::all(self).iter().for_each(|gateway| self.reconcile(gateway));
        }
    }
}
