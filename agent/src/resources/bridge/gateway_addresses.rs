//! Gateway addresses on the bridges themselves.

use std::collections::BTreeSet;

use ipnet::IpNet;
use shunt_agent_api::BridgePort;
use shunt_netlink::link::Link;

use crate::resources::{Node, Refusal};

impl Node {
    /// The addresses that a bridge lacks. With another address of the family in its place nothing is missing:
    /// it may belong to the next network configuration.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn missing_gateways(&mut self, bridge: &Link) -> Result<Vec<IpNet>, Refusal> {
        let wanted = self.gateways(bridge.index);
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let mut present = self.kernel.subnets(bridge.index)?;
        // Relocated addresses do not count.
        let moved: Vec<_> = self.relocated_to(bridge.index).collect();
        present.retain(|address| wanted.contains(address) || !moved.contains(address));
        let is_free = |one: &IpNet| {
            let others = present.iter().filter(|other| other.addr().is_ipv4() == one.addr().is_ipv4());
            let mut others = others.filter(|other| one.addr().is_ipv4() || !wanted.contains(other));
            others.next().is_none()
        };
        Ok(wanted.iter().copied().filter(|one| !present.contains(one) && is_free(one)).collect())
    }

    /// The addresses that the attachments expect. A bridge has one IPv4 address; none if they disagree.
    fn gateways(&mut self, bridge: u32) -> BTreeSet<IpNet> {
        let registry = &self.registry;
        self.gateways.of(bridge, registry.edition(), || {
            let ports = registry.of_bridge(bridge).map(|attachment| &attachment.port);
            let all: BTreeSet<_> = ports.flat_map(gateways_of).collect();
            let (v4, v6): (BTreeSet<_>, BTreeSet<_>) =
                all.into_iter().partition(|prefix| prefix.addr().is_ipv4());
            v6.into_iter().chain(v4.first().copied().filter(|_| v4.len() == 1)).collect()
        })
    }
}

fn gateways_of(port: &BridgePort) -> impl Iterator<Item = IpNet> {
    port.service.gateways.iter().filter_map(|text| text.parse().ok())
}
