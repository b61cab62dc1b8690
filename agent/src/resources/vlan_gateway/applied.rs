//! Makes a gateway's pair and gives it what it lacks.

use std::fs;
use std::net::Ipv6Addr;

use ipnet::{IpNet, Ipv6Net};
use shunt_agent_api::BridgePort;
use shunt_dataplane::wire::address::Mac;

use super::validation::{in_the_way, random_mac};
use crate::datapath::maps::insert;
use crate::datapath::{FlowAffinity, encode, in_map, programs};
use crate::failpoints::{self, Failpoint};
use crate::kernel::KernelError;
use crate::registry::vlan_gateway::{self, Place};
use crate::registry::{VlanGateway, port_flags};
use crate::resources::{Node, Refusal};

impl Node {
    /// Creates an attachment's gateway, or adds its addresses to the existing one.
    pub(crate) fn build_gateway(&mut self, port: &BridgePort) -> Result<(), Refusal> {
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
            self.address_gateway(&gateway, wanted)?;
            present.push(wanted);
        }
        Ok(())
    }

    pub(crate) fn make_gateway(&mut self, port: &BridgePort, place: Place) -> Result<VlanGateway, Refusal> {
        let (node, bridged) = vlan_gateway::names(&port.bridge, place.1);
        let own = vlan_gateway::mac(port).unwrap_or_else(random_mac);
        let ends = self.kernel.make_gateway((&node, &bridged), own, port.mtu)?;
        let slot = self.take_slot()?;
        let made = VlanGateway::of(port, (&ends.0, &ends.1), slot);
        let gateway =
            made.ok_or_else(|| Refusal::Gateway { name: node, why: "has no MAC address".into() })?;
        self.registry.gateways.insert(place, gateway.clone());
        self.foreign_ports.remove(&ends.1.index);
        self.serve_gateway(&gateway)?;
        tracing::info!(name = %gateway.link.name, bridge = %port.bridge.name, "VLAN gateway created");
        self.update_nat_ingress();
        Ok(gateway)
    }

    /// A gateway has the least MTU of its containers, as a bridge has that of its ports.
    pub(crate) fn narrow_gateway(&mut self, place: Place, mtu: u32) -> Result<VlanGateway, Refusal> {
        let Some(gateway) = self.registry.gateways.get_mut(&place) else {
            return Err(KernelError::Vanished(format!("the gateway of VLAN {}", place.1)).into());
        };
        gateway.port.port.mtu = mtu;
        let gateway = gateway.clone();
        self.kernel.set_gateway_mtu(&gateway, mtu)?;
        self.datapath.write_station(&gateway.port)?;
        Ok(gateway)
    }

    /// Sets up a gateway, in whatever state it is: sysctls, map entries and programs, and then enslaves it.
    ///
    /// # Errors
    /// The kernel's; what was done stays.
    pub(crate) fn serve_gateway(&mut self, gateway: &VlanGateway) -> Result<(), KernelError> {
        let (node, port) = (&gateway.link, &gateway.port.port);
        let (ends, mac) = ([node.index, port.host.index], gateway.port.mac);
        self.kernel.prepare_pair(ends, mac)?;
        // The node ignores router advertisements of containers. If the sysctl cannot be written, a forwarding
        // node ignores them anyway (`accept_ra` in ip-sysctl.rst).
        let setting = format!("/proc/sys/net/ipv6/conf/{}/accept_ra", node.name);
        let _ = failpoints::pass(Failpoint::Files).and_then(|()| fs::write(setting, "0"));
        // A pair without map entries has never been up. Later, a link that is down was set down on purpose.
        if self.datapath.port(node.index)?.is_none() || self.datapath.port(port.host.index)?.is_none() {
            self.kernel.set_pair_up([port.host.index, node.index])?;
        }
        self.write_gateway(gateway)?;
        for hook in programs::of_port(&gateway.port) {
            self.datapath.ensure(&hook)?;
        }
        self.kernel.enslave(port.host.index, port.bridge.index, port_flags(port), None)
    }

    /// Writes the map entries of a gateway.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub(crate) fn write_gateway(&mut self, gateway: &VlanGateway) -> Result<(), KernelError> {
        let (key, entry) = (encode::port_key(gateway.link.index), encode::gateway_node(gateway));
        insert(&mut self.datapath.maps.ports, key, entry).map_err(in_map("PORTS"))?;
        Ok(self.datapath.write_port(&gateway.port, FlowAffinity::Fast)?)
    }

    /// Adds an address to a gateway. The first IPv6 address also adds a link-local one, the source of
    /// neighbour solicitations.
    ///
    /// # Errors
    /// Netlink's.
    pub(crate) fn address_gateway(
        &mut self,
        gateway: &VlanGateway,
        address: IpNet,
    ) -> Result<(), KernelError> {
        if address.addr().is_ipv6() {
            let own = Ipv6Net::new_assert(link_local(gateway.port.mac), 64).into();
            self.kernel.add_address(gateway.link.index, own)?;
        }
        self.kernel.add_address(gateway.link.index, address)
    }
}

/// The link-local address of a MAC address (RFC 4291, appendix A).
fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.octets();
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_own_address_is_that_which_the_kernel_would_make() {
        let mac = Mac::new([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]);
        assert_eq!(link_local(mac), "fe80::11:22ff:fe33:4455".parse::<Ipv6Addr>().unwrap());
    }
}
