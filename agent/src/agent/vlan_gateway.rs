//! VLAN gateways: interfaces of the node in a VLAN, as long as an attachment's configuration asks for one.
//!
//! A gateway is a veth pair; its bridge end is a port of the VLAN like any container's, so that no VLAN device or VLAN filtering of the
//! kernel is needed. It is identified by the names of its two ends.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};

use ipnet::IpNet;
use shunt_agent_api::{BridgePort, IngressPolicy, Interface, VlanGatewayReport};
use shunt_dataplane::wire::address::Mac;

use super::report::both_ways;
use super::{Agent, Refusal};
use crate::kernel::KernelError;
use crate::mac;
use crate::vlan_gateway::{self, Place, VlanGateway};

const POLICY: &str = "ingress policies of ports in a VLAN with a gateway, by which everybody comes alike,";

impl Agent {
    /// Validates the gateway of a port's configuration, and records its MAC address.
    ///
    /// # Errors
    /// [`Refusal::Gateway`] where the name is somebody else's, or an address is in the way; [`Refusal::NotBuilt`].
    pub(super) fn admit_gateway(&mut self, port: &mut BridgePort) -> Result<(), Refusal> {
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
    pub(super) fn validate_gateways_name(
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
    pub(super) fn is_gateways_mac(&self, bridge: u32, mac: Mac) -> bool {
        self.registry.gateways.values().any(|it| it.place().0 == bridge && it.port.mac == mac)
    }

    /// The ports that want a gateway there.
    pub(super) fn wanting(&self, place: Place) -> impl Iterator<Item = &BridgePort> {
        let ports = self.registry.of_bridge(place.0).map(|attachment| &attachment.port);
        ports.filter(move |port| vlan_gateway::place(port) == Some(place))
    }

    /// Creates an attachment's gateway, or adds its addresses to the existing one.
    pub(super) fn build_gateway(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        let Some(place) = vlan_gateway::place(port) else { return Ok(()) };
        let gateway = match self.registry.gateways.get(&place) {
            Some(known) if known.port.port.mtu > port.mtu => self.narrow_gateway(place, port.mtu)?,
            Some(known) => known.clone(),
            None => self.make_gateway(port, place)?,
        };
        let force = port.service.vlan_gateway.as_ref().is_some_and(|wanted| wanted.force_address);
        let mut present = self.kernel.subnets(gateway.link.index)?;
        for wanted in vlan_gateway::addresses(port) {
            if present.contains(&wanted) {
                continue;
            }
            for found in present.extract_if(.., |found| force && in_the_way(*found, wanted)) {
                self.kernel.remove_address(gateway.link.index, found)?;
            }
            self.kernel.address_gateway(&gateway, wanted)?;
            present.push(wanted);
        }
        Ok(())
    }

    pub(super) fn make_gateway(&mut self, port: &BridgePort, place: Place) -> Result<VlanGateway, Refusal> {
        let (node, bridged) = vlan_gateway::names(&port.bridge, place.1);
        let own = vlan_gateway::mac(port).unwrap_or_else(random_mac);
        let ends = self.kernel.make_gateway((&node, &bridged), own, port.mtu)?;
        let slot = self.take_slot()?;
        let made = VlanGateway::of(port, (&ends.0, &ends.1), slot);
        let gateway =
            made.ok_or_else(|| Refusal::Gateway { name: node, why: "has no MAC address".into() })?;
        self.registry.gateways.insert(place, gateway.clone());
        self.foreign_ports.remove(&ends.1.index);
        self.kernel.serve_gateway(&gateway)?;
        tracing::info!(name = %gateway.link.name, bridge = %port.bridge.name, "VLAN gateway created");
        self.update_nat_ingress();
        Ok(gateway)
    }

    /// A gateway has the least MTU of its containers, as a bridge has that of its ports.
    pub(super) fn narrow_gateway(&mut self, place: Place, mtu: u32) -> Result<VlanGateway, Refusal> {
        let Some(gateway) = self.registry.gateways.get_mut(&place) else {
            return Err(KernelError::Vanished(format!("the gateway of VLAN {}", place.1)).into());
        };
        gateway.port.port.mtu = mtu;
        let gateway = gateway.clone();
        self.kernel.set_gateway_mtu(&gateway, mtu)?;
        self.kernel.write_station(&gateway.port)?;
        Ok(gateway)
    }

    /// Removes a removed attachment's gateway, or only its addresses while other attachments need the
    /// gateway.
    pub(super) fn leave_gateway(&mut self, port: &BridgePort) -> Vec<KernelError> {
        let Some(place) = vlan_gateway::place(port) else { return Vec::new() };
        let wanted: BTreeSet<IpNet> = self.wanting(place).flat_map(vlan_gateway::addresses).collect();
        if self.wanting(place).next().is_none() {
            return self.remove_gateway(place, &port.bridge);
        }
        let Some(index) = self.registry.gateways.get(&place).map(|it| it.link.index) else {
            return Vec::new();
        };
        let unwanted = vlan_gateway::addresses(port).filter(|address| !wanted.contains(address));
        unwanted.filter_map(|address| self.kernel.remove_address(index, address).err()).collect()
    }

    pub(super) fn remove_gateway(&mut self, place: Place, bridge: &Interface) -> Vec<KernelError> {
        self.repairs.resolve(&fault_name(&vlan_gateway::names(bridge, place.1).0));
        let Some(gateway) = self.registry.gateways.remove(&place) else {
            return self.remove_unfinished(place, bridge).err().into_iter().collect();
        };
        let errors = self.kernel.delete_gateway(&gateway);
        self.registry.slots.give_back(gateway.port.slot);
        self.repairs.unaddressed.remove(&gateway.link.index);
        self.update_nat_ingress();
        errors
    }

    /// Deletes a pair that was created but not registered.
    fn remove_unfinished(&mut self, place: Place, bridge: &Interface) -> Result<(), KernelError> {
        let (node, bridged) = vlan_gateway::names(bridge, place.1);
        match self.kernel.gateway_ends((&node, &bridged))? {
            Some((_, port)) => self.kernel.delete_link(&port),
            None => Ok(()),
        }
    }

    /// A report per gateway. Unreadable counters are zero.
    pub(super) fn gateway_reports(&self) -> Vec<VlanGatewayReport> {
        let report = |(place, it): (&Place, &VlanGateway)| {
            let (from, to) = both_ways(self.kernel.maps.counters(it.port.slot).unwrap_or_default());
            VlanGatewayReport {
                name: it.link.name.clone(),
                bridge: it.port.port.bridge.name.clone(),
                vlan: it.vid(),
                mac: it.port.port.mac.clone(),
                addresses: self.gateways_addresses(*place).iter().map(IpNet::to_string).collect(),
                from,
                to,
            }
        };
        self.registry.gateways.iter().map(report).collect()
    }
}

/// Whether a port accepts no packets from other bridges. Behind a gateway the origin of a routed packet is
/// unknown.
fn is_selective(port: &BridgePort) -> bool {
    port.restrictions.ingress == IngressPolicy::SameBridge
}

/// Whether two addresses conflict: a gateway has one IPv4 address, and IPv6 subnets must not overlap.
fn in_the_way(present: IpNet, wanted: IpNet) -> bool {
    present != wanted
        && match (present.addr().is_ipv4(), wanted.addr().is_ipv4()) {
            (true, true) => true,
            (false, false) => wanted.contains(&present.addr()) || present.contains(&wanted.addr()),
            _ => false,
        }
}

/// The name of a gateway in faults.
pub(super) fn fault_name(name: &str) -> String {
    format!("gateway {name}")
}

/// A random MAC address.
fn random_mac() -> Mac {
    let [a, b, c, d, e, f, ..] = RandomState::new().hash_one(0).to_be_bytes();
    // Locally administered, unicast (IEEE 802, clause 8.2).
    Mac::new([a & 0xfc | 2, b, c, d, e, f])
}
