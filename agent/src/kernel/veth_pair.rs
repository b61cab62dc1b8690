//! Veth pairs of the node, for VLAN gateways.

use shunt_agent_api::Interface;
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::{
    Link, Selector, Veth, VethEnd, add_veth, set_link_up, set_mac, set_mtu, set_no_link_local,
};

use super::{Kernel, KernelError, delete_if_named};
use crate::registry::VlanGateway;

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

    /// Deletes a link, if it is still the one of this name.
    ///
    /// # Errors
    /// Netlink's.
    pub fn delete_link(&mut self, link: &Link) -> Result<(), KernelError> {
        let _expedited = self.grace_periods.expedite();
        Ok(delete_if_named(&mut self.route, link.index, &link.name)?)
    }

    /// Deletes both ends of a pair, each if it is still the one of its name. Continues after errors.
    pub fn delete_ends(&mut self, ends: [&Interface; 2]) -> Vec<KernelError> {
        let _expedited = self.grace_periods.expedite();
        let deleted = ends.map(|end| delete_if_named(&mut self.route, end.index, &end.name));
        deleted.into_iter().filter_map(Result::err).map(KernelError::from).collect()
    }

    /// Gives the first end its MAC address, and neither a link-local address of the kernel's.
    ///
    /// # Errors
    /// Netlink's.
    pub fn prepare_pair(&mut self, ends: [u32; 2], mac: Mac) -> Result<(), KernelError> {
        if self.link(ends[0])?.is_some_and(|link| link.mac != Some(mac.octets())) {
            self.route.run(set_mac(ends[0], mac.octets()))?;
        }
        for index in ends {
            // Fails on a kernel without IPv6, which needs no setting.
            let _ = self.route.run(set_no_link_local(index));
        }
        Ok(())
    }

    /// Sets both ends up.
    ///
    /// # Errors
    /// Netlink's.
    pub fn set_pair_up(&mut self, ends: [u32; 2]) -> Result<(), KernelError> {
        ends.into_iter().try_for_each(|index| Ok(self.route.run(set_link_up(Selector::Index(index)))?))
    }

    /// Gives both ends another MTU, the bridge's end first.
    ///
    /// # Errors
    /// Netlink's.
    pub fn set_gateway_mtu(&mut self, gateway: &VlanGateway, mtu: u32) -> Result<(), KernelError> {
        let ends = [gateway.port.port.host.index, gateway.link.index];
        ends.into_iter().try_for_each(|index| Ok(self.route.run(set_mtu(index, mtu))?))
    }
}
