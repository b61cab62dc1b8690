//! Recovers VLAN gateways at the start, repairs them, and removes those that no attachment needs.

use std::collections::BTreeSet;

use ipnet::IpNet;
use shunt_agent_api::BridgePort;
use shunt_dataplane::abi::{NO_SLOT, PORT_STRANGER};

use super::recover::{Entries, Links, PreviousSlots};
use super::vlan_gateway::fault_name;
use super::{Agent, Refusal};
use crate::kernel::Finding;
use crate::vlan_gateway::{self, Place, VlanGateway};

impl Agent {
    /// Registers the gateway of an earlier agent's attachment. A missing one is created by the next check.
    pub(super) fn place_gateway(
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

    /// Removes an earlier agent's gateways that no attachment needs: those with an entry in `PORTS`, and
    /// those of the attachments in `lost`.
    pub(super) fn sweep_gateways(&mut self, entries: &Entries, links: &Links, lost: &[BridgePort]) {
        let ours = entries.iter().filter(|(_, entry)| entry.flags & PORT_STRANGER == 0);
        let left = ours.filter_map(|(index, entry)| {
            let name = vlan_gateway::port_name(entry.bridge, entry.vid);
            links.get(index).filter(|link| !self.is_known(link.index) && link.name == name).cloned()
        });
        for link in left.collect::<Vec<_>>() {
            tracing::info!(name = %link.name, "removed a VLAN gateway without an attachment");
            if let Err(error) = self.kernel.delete_link(&link) {
                tracing::warn!(name = %link.name, %error, "cannot remove the VLAN gateway");
            }
        }
        for port in lost {
            for error in self.leave_gateway(port) {
                tracing::warn!(key = %port.key, %error, "cannot remove the VLAN gateway");
            }
        }
    }

    /// Takes over the programs of an earlier agent.
    pub(super) fn adopt_gateways(&mut self) {
        for gateway in self.registry.gateways.values().cloned().collect::<Vec<_>>() {
            if let Err(error) = self.kernel.serve_gateway(&gateway) {
                self.warn(format!(
                    "VLAN gateway {}: cannot take over its programs: {error}",
                    gateway.link.name
                ));
            }
        }
    }

    /// Repairs gateways and creates missing ones.
    pub(super) fn repair_gateways(&mut self) {
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
            self.repair_findings(&fault_name(&name), None, &name, findings, |agent, findings| {
                agent.repair_gateway(place, findings)?;
                agent.audit_gateway(place, &name)
            });
        }
    }

    fn repair_gateway(&mut self, place: Place, findings: &[Finding]) -> Result<(), Refusal> {
        let is_gone = findings.iter().any(|finding| matches!(finding, Finding::Link(_)));
        let gateway = self.registry.gateways.get(&place).cloned();
        let Some(gateway) = gateway.filter(|_| !is_gone) else { return self.make_gateway_anew(place) };
        if findings.iter().any(|finding| !matches!(finding, Finding::Address { .. })) {
            self.kernel.serve_gateway(&gateway)?;
        }
        for finding in findings {
            if let Finding::Address { address, .. } = finding {
                self.kernel.address_gateway(&gateway, *address)?;
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
            self.kernel.address_gateway(&gateway, address)?;
        }
        Ok(())
    }

    /// Lists the faults of a port's gateway, if it has one.
    pub(super) fn audit_gateway_of(&mut self, port: &BridgePort) -> Result<Vec<Finding>, Refusal> {
        let Some(place) = vlan_gateway::place(port) else { return Ok(Vec::new()) };
        self.audit_gateway(place, &vlan_gateway::names(&port.bridge, place.1).0)
    }

    /// Lists the faults of a gateway.
    pub(super) fn audit_gateway(&mut self, place: Place, name: &str) -> Result<Vec<Finding>, Refusal> {
        let Some(gateway) = self.registry.gateways.get(&place).cloned() else {
            return Ok(vec![Finding::Link(name.to_owned())]);
        };
        let mut findings = self.kernel.audit_gateway(&gateway)?;
        if matches!(findings[..], [Finding::Link(_)]) {
            return Ok(findings);
        }
        let present = self.kernel.subnets(gateway.link.index)?;
        let wanted = self.gateways_addresses(place);
        // Another IPv4 address in its place is the operator's choice, as on a bridge.
        let replaced = present.iter().any(|found| found.addr().is_ipv4() && !wanted.contains(found));
        let missing =
            wanted.into_iter().filter(|it| !(present.contains(it) || it.addr().is_ipv4() && replaced));
        findings.extend(missing.map(|address| Finding::Address { bridge: name.to_owned(), address }));
        Ok(findings)
    }

    /// The same, without addresses that are missing only for a moment.
    fn audit_gateway_patiently(&mut self, place: Place, name: &str) -> Result<Vec<Finding>, Refusal> {
        let mut findings = self.audit_gateway(place, name)?;
        let Some(index) = self.registry.gateways.get(&place).map(|it| it.link.index) else {
            return Ok(findings);
        };
        let is_address = |finding: &Finding| matches!(finding, Finding::Address { .. });
        if !findings.iter().any(is_address) {
            self.repairs.unaddressed.remove(&index);
        } else if !self.repairs.miss(index) {
            findings.retain(|finding| !is_address(finding));
        }
        Ok(findings)
    }

    /// The configured addresses. There is one IPv4 address; none if the attachments disagree.
    pub(super) fn gateways_addresses(&self, place: Place) -> BTreeSet<IpNet> {
        let all: BTreeSet<IpNet> = self.wanting(place).flat_map(vlan_gateway::addresses).collect();
        let (v4, v6): (BTreeSet<_>, BTreeSet<_>) =
            all.into_iter().partition(|prefix| prefix.addr().is_ipv4());
        v6.into_iter().chain(v4.first().copied().filter(|_| v4.len() == 1)).collect()
    }

    /// A link was deleted: recreates its gateway.
    pub(super) fn gateway_deleted(&mut self, index: u32) {
        if self.registry.gateway_by_end(index).is_some() {
            self.repair_gateways();
        }
    }
}
