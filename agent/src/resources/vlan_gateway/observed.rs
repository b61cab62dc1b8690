//! What of a gateway is missing or altered.

use std::collections::BTreeSet;

use ipnet::IpNet;
use shunt_agent_api::BridgePort;
use shunt_dataplane::abi::Port;

use crate::datapath::encode;
use crate::kernel::KernelError;
use crate::registry::VlanGateway;
use crate::registry::vlan_gateway::{self, Place};
use crate::resources::{Finding, Node, Refusal};

impl Node {
    /// Lists the faults of a port's gateway, if it has one.
    pub(crate) fn audit_gateway_of(&mut self, port: &BridgePort) -> Result<Vec<Finding>, Refusal> {
        let Some(place) = vlan_gateway::place(port) else { return Ok(Vec::new()) };
        self.audit_gateway(place, &vlan_gateway::names(&port.bridge, place.1).0)
    }

    /// Lists the faults of a gateway.
    pub(crate) fn audit_gateway(&mut self, place: Place, name: &str) -> Result<Vec<Finding>, Refusal> {
        let Some(gateway) = self.registry.gateways.get(&place).cloned() else {
            return Ok(vec![Finding::Link(name.to_owned())]);
        };
        let mut findings = self.audit_gateway_alone(&gateway)?;
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
    pub(super) fn audit_gateway_patiently(
        &mut self,
        place: Place,
        name: &str,
    ) -> Result<Vec<Finding>, Refusal> {
        let findings = self.audit_gateway(place, name)?;
        let Some(index) = self.registry.gateways.get(&place).map(|it| it.link.index) else {
            return Ok(findings);
        };
        Ok(self.repairs.lasting(index, findings))
    }

    /// The configured addresses. There is one IPv4 address; none if the attachments disagree.
    pub(crate) fn gateways_addresses(&self, place: Place) -> BTreeSet<IpNet> {
        let all: BTreeSet<IpNet> = self.wanting(place).flat_map(vlan_gateway::addresses).collect();
        let (v4, v6): (BTreeSet<_>, BTreeSet<_>) =
            all.into_iter().partition(|prefix| prefix.addr().is_ipv4());
        v6.into_iter().chain(v4.first().copied().filter(|_| v4.len() == 1)).collect()
    }

    /// The same, without its addresses. An end that is down was set down
    /// on purpose.
    ///
    /// # Errors
    /// The kernel cannot say.
    fn audit_gateway_alone(&mut self, gateway: &VlanGateway) -> Result<Vec<Finding>, KernelError> {
        let (name, host) = (&gateway.link.name, &gateway.port.port.host);
        let Some((node, port)) = self.kernel.gateway_ends((name, &host.name))? else {
            return Ok(vec![Finding::Link(name.clone())]);
        };
        if (node.index, port.index) != (gateway.link.index, host.index) {
            return Ok(vec![Finding::Link(name.clone())]);
        }
        let mut findings = Vec::new();
        let entry = self.datapath.port(node.index)?;
        if entry.map(|entry| Port { affinity: 0, ..entry })
            != Some(Port { affinity: 0, ..encode::gateway_node(gateway) })
        {
            findings.push(Finding::entry("PORTS", name, entry.as_ref()));
        }
        if node.mac != Some(gateway.port.mac.octets()) {
            findings.push(Finding::Mac(name.clone()));
        }
        findings.extend(self.audit_port(&gateway.port)?);
        Ok(findings)
    }
}

/// The name of a gateway in faults.
pub(crate) fn fault_name(name: &str) -> String {
    format!("gateway {name}")
}
