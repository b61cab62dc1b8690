//! VLAN gateways: their veth pairs, map entries and bridge ports.

use std::fs;
use std::net::Ipv6Addr;

use shunt_dataplane::abi::Port;
use shunt_dataplane::wire::address::Mac;

use super::{Asks, Finding, Kernel, KernelError, delete_if_named, in_map};
use crate::bpf::maps::{insert, remove};
use crate::failpoints::{self, Failpoint};
use crate::registry::port_flags;
use crate::vlan_gateway::VlanGateway;
use ipnet::{IpNet, Ipv6Net};
use shunt_netlink::address::delete_address;
use shunt_netlink::link::{
    Link, Selector, Veth, VethEnd, add_veth, set_link_up, set_mac, set_mtu, set_no_link_local,
};
use shunt_netlink::unless;

impl Kernel {
    /// Creates a veth pair with these names; an earlier agent may have created it. Returns both ends.
    ///
    /// # Errors
    /// Netlink's, with `EEXIST` if somebody else has one of the names.
    pub fn make_gateway(
        &mut self,
        (node, port): (&str, &str),
        mac: Mac,
        mtu: u32,
    ) -> Result<(Link, Link), KernelError> {
        let end = VethEnd { name: node, mac: Some(mac.octets()), ..VethEnd::default() };
        let peer = VethEnd { name: port, ..VethEnd::default() };
        let made = self.route.run(add_veth(&Veth { end, peer, mtu: Some(mtu) }).any());
        match (self.gateway_ends((node, port))?, made) {
            (Some(ends), _) => Ok(ends),
            (None, Err(error)) => Err(error.into()),
            (None, Ok(())) => Err(KernelError::Vanished(node.to_owned())),
        }
    }

    /// Both ends of the pair with these names, if it exists.
    ///
    /// # Errors
    /// Netlink's.
    pub fn gateway_ends(&mut self, (node, port): (&str, &str)) -> Result<Option<(Link, Link)>, KernelError> {
        let (Some(node), Some(port)) = (self.link_named(node)?, self.link_named(port)?) else {
            return Ok(None);
        };
        Ok((node.peer == Some(port.index) && port.peer == Some(node.index)).then_some((node, port)))
    }

    /// Sets up a gateway, in whatever state it is: sysctls, map entries and programs, and then enslaves it.
    ///
    /// # Errors
    /// The kernel's; what was done stays.
    pub fn serve_gateway(&mut self, gateway: &VlanGateway) -> Result<(), KernelError> {
        let (node, port) = (&gateway.link, &gateway.port.port);
        if self.link(node.index)?.is_some_and(|link| link.mac != Some(gateway.port.mac.octets())) {
            self.route.run(set_mac(node.index, gateway.port.mac.octets()))?;
        }
        for index in [node.index, port.host.index] {
            // Fails on a kernel without IPv6, which needs no setting.
            let _ = self.route.run(set_no_link_local(index));
        }
        // The node ignores router advertisements of containers. If the sysctl cannot be written, a forwarding
        // node ignores them anyway (`accept_ra` in ip-sysctl.rst).
        let setting = format!("/proc/sys/net/ipv6/conf/{}/accept_ra", node.name);
        let _ = failpoints::pass(Failpoint::Files).and_then(|()| fs::write(setting, "0"));
        // A pair without map entries has never been up. Later, a link that is down was set down on purpose.
        if self.port(node.index)?.is_none() || self.port(port.host.index)?.is_none() {
            self.route.run(set_link_up(Selector::Index(port.host.index)))?;
            self.route.run(set_link_up(Selector::Index(node.index)))?;
        }
        self.write_gateway(gateway)?;
        for hook in gateway.port.hooks() {
            if !self.adopt(&hook)? {
                self.attach(&hook)?;
            }
        }
        self.enslave(port.host.index, port.bridge.index, port_flags(port), None)
    }

    /// Writes the map entries of a gateway.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_gateway(&mut self, gateway: &VlanGateway) -> Result<(), KernelError> {
        insert(&mut self.maps.ports, gateway.node_key(), gateway.node_entry()).map_err(in_map("PORTS"))?;
        self.write_port(&gateway.port, Asks::Fast)
    }

    /// Adds an address to a gateway. The first IPv6 address also adds a link-local one, the source of
    /// neighbour solicitations.
    ///
    /// # Errors
    /// Netlink's.
    pub fn address_gateway(&mut self, gateway: &VlanGateway, address: IpNet) -> Result<(), KernelError> {
        if address.addr().is_ipv6() {
            let own = Ipv6Net::new_assert(link_local(gateway.port.mac), 64).into();
            self.add_address(gateway.link.index, own)?;
        }
        self.add_address(gateway.link.index, address)
    }

    /// Removes an address from an interface; it may be gone already.
    ///
    /// # Errors
    /// Netlink's.
    pub fn remove_address(&mut self, index: u32, address: IpNet) -> Result<(), KernelError> {
        let removed = self.route.run(delete_address(index, address));
        Ok(unless(removed, |error| error.is_missing() || error.is_no_address())?)
    }

    /// Deletes a link, if it is still the one of this name.
    ///
    /// # Errors
    /// Netlink's.
    pub fn delete_link(&mut self, link: &Link) -> Result<(), KernelError> {
        let _expedited = self.grace_periods.expedite();
        Ok(delete_if_named(&mut self.route, link.index, &link.name)?)
    }

    /// Gives both ends of a gateway another MTU.
    ///
    /// # Errors
    /// Netlink's.
    pub fn set_gateway_mtu(&mut self, gateway: &VlanGateway, mtu: u32) -> Result<(), KernelError> {
        for index in [gateway.port.port.host.index, gateway.link.index] {
            self.route.run(set_mtu(index, mtu))?;
        }
        Ok(())
    }

    /// Deletes a gateway's pair, programs and entries. Continues after errors. If the pair cannot be deleted,
    /// its entries stay: the port fails closed, and the next agent finds it.
    pub fn delete_gateway(&mut self, gateway: &VlanGateway) -> Vec<KernelError> {
        let host = &gateway.port.port.host;
        let ends = [host, &gateway.link];
        let mut errors: Vec<KernelError> = Vec::new();
        let expedited = self.grace_periods.expedite();
        for end in ends {
            errors
                .extend(delete_if_named(&mut self.route, end.index, &end.name).err().map(KernelError::from));
        }
        drop(expedited);
        // Deleting one end deletes the other.
        let is_gone = errors.len() < ends.len();
        // Removing a pin after its device needs no grace period.
        for hook in gateway.port.hooks() {
            errors.extend(self.detach(&hook).err());
        }
        if is_gone {
            let erased = remove(&mut self.maps.ports, &gateway.node_key()).map_err(in_map("PORTS"));
            errors.extend(erased.err());
            errors.extend(self.erase_port(&gateway.port));
        }
        errors
    }

    /// Lists what of a gateway is missing or altered, except its addresses. An end that is down was set down
    /// on purpose.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn audit_gateway(&mut self, gateway: &VlanGateway) -> Result<Vec<Finding>, KernelError> {
        let (name, host) = (&gateway.link.name, &gateway.port.port.host);
        let Some((node, port)) = self.gateway_ends((name, &host.name))? else {
            return Ok(vec![Finding::Link(name.clone())]);
        };
        if (node.index, port.index) != (gateway.link.index, host.index) {
            return Ok(vec![Finding::Link(name.clone())]);
        }
        let mut findings = Vec::new();
        let entry = self.port(node.index)?;
        if entry.map(|entry| Port { asks: 0, ..entry }) != Some(Port { asks: 0, ..gateway.node_entry() }) {
            findings.push(Finding::entry("PORTS", name, entry.as_ref()));
        }
        if node.mac != Some(gateway.port.mac.octets()) {
            findings.push(Finding::Mac(name.clone()));
        }
        findings.extend(self.audit_port(&gateway.port)?);
        Ok(findings)
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
