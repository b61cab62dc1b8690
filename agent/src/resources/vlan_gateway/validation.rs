//! Whether a port may have the gateway that it asks for. Changes nothing.

use std::hash::{BuildHasher as _, RandomState};

use ipnet::IpNet;
use shunt_agent_api::{BridgePort, IngressPolicy};
use shunt_dataplane::wire::address::Mac;

use crate::mac;
use crate::registry::vlan_gateway::{self, Place};
use crate::resources::{Node, Refusal};

const POLICY: &str = "ingress policies of ports in a VLAN with a gateway, by which everybody comes alike,";

impl Node {
    /// Validates the gateway of a port's configuration, and records its MAC address.
    ///
    /// # Errors
    /// [`Refusal::Gateway`] where the name is somebody else's, or an address is in the way; [`Refusal::NotBuilt`].
    pub(crate) fn validate_gateway(&mut self, port: &mut BridgePort) -> Result<(), Refusal> {
        let mut gateways = self.registry.gateways.keys();
        if is_selective(port)
            && gateways.any(|(bridge, vid)| *bridge == port.bridge.index && vlan_gateway::is_in(port, *vid))
        {
            return Err(Refusal::NotBuilt(POLICY));
        }
        let Some(place) = vlan_gateway::place(port) else { return Ok(()) };
        // `isolated` would exclude the gateway, too.
        let is_open = port.restrictions.ingress == IngressPolicy::Open;
        if !is_open || self.has_selective_port(place) {
            return Err(Refusal::NotBuilt(POLICY));
        }
        let known = self.registry.gateways.get(&place).cloned();
        let names = vlan_gateway::names(&port.bridge, place.1);
        let own = match &known {
            Some(known) => known.port.mac,
            None => {
                self.validate_gateways_name(&names)?;
                let noted = vlan_gateway::mac(port).or_else(|| self.noted_mac(place));
                noted.unwrap_or_else(random_mac)
            }
        };
        let force = port.service.vlan_gateway.as_mut().is_some_and(|wanted| {
            wanted.mac = mac::format(own);
            wanted.force_address
        });
        if let Some(known) = known.filter(|_| !force) {
            let present = self.kernel.subnets(known.link.index)?;
            for wanted in vlan_gateway::addresses(port) {
                if let Some(found) = present.iter().find(|found| in_the_way(**found, wanted)) {
                    return Err(Refusal::Gateway {
                        name: known.link.name,
                        why: format!(
                            "already has an IP address different from {wanted}: {found} (`forceAddress` would replace it)"
                        ),
                    });
                }
            }
        }
        Ok(())
    }

    /// Whether a port accepts no packets from other bridges.
    fn has_selective_port(&self, (bridge, vid): Place) -> bool {
        let mut ports = self.registry.of_bridge(bridge).map(|attachment| &attachment.port);
        ports.any(|port| is_selective(port) && vlan_gateway::is_in(port, vid))
    }

    /// A killed agent may have left its pair.
    pub(crate) fn validate_gateways_name(
        &mut self,
        (node, bridged): &(String, String),
    ) -> Result<(), Refusal> {
        if self.kernel.gateway_ends((node, bridged))?.is_some() {
            return Ok(());
        }
        for name in [node, bridged] {
            if self.kernel.link_named(name)?.is_some() {
                let why =
                    format!("cannot be made: an interface {name} is there already, and somebody else's");
                return Err(Refusal::Gateway { name: node.clone(), why });
            }
        }
        Ok(())
    }

    /// The MAC address that attachments have noted for a gateway: containers know it.
    fn noted_mac(&self, place: Place) -> Option<Mac> {
        self.wanting(place).find_map(vlan_gateway::mac)
    }

    /// Whether a MAC address is a gateway's of this bridge.
    pub(crate) fn is_gateways_mac(&self, bridge: u32, mac: Mac) -> bool {
        self.registry.gateways.values().any(|it| it.place().0 == bridge && it.port.mac == mac)
    }

    /// The ports that want a gateway there.
    pub(crate) fn wanting(&self, place: Place) -> impl Iterator<Item = &BridgePort> {
        let ports = self.registry.of_bridge(place.0).map(|attachment| &attachment.port);
        ports.filter(move |port| vlan_gateway::place(port) == Some(place))
    }
}

/// Whether a port accepts no packets from other bridges. Behind a gateway the origin of a routed packet is
/// unknown.
fn is_selective(port: &BridgePort) -> bool {
    port.restrictions.ingress == IngressPolicy::SameBridge
}

/// Whether two addresses conflict: a gateway has one IPv4 address, and IPv6 subnets must not overlap.
pub(crate) fn in_the_way(present: IpNet, wanted: IpNet) -> bool {
    present != wanted
        && match (present.addr().is_ipv4(), wanted.addr().is_ipv4()) {
            (true, true) => true,
            (false, false) => wanted.contains(&present.addr()) || present.contains(&wanted.addr()),
            _ => false,
        }
}

/// A random MAC address.
pub(crate) fn random_mac() -> Mac {
    let [a, b, c, d, e, f, ..] = RandomState::new().hash_one(0).to_be_bytes();
    // Locally administered, unicast (IEEE 802, clause 8.2).
    Mac::new([a & 0xfc | 2, b, c, d, e, f])
}
