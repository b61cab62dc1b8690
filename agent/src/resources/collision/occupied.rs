//! Refuses a MAC or IP address that the node or a neighbour on the bridge has: the container would take the other's place.

use std::net::IpAddr;

use shunt_agent_api::BridgePort;
use shunt_dataplane::abi::AddressKey;
use shunt_dataplane::wire::address::Mac;

use crate::registry::vlan_gateway;
use crate::resources::{Node, Refusal};

impl Node {
    /// # Errors
    /// [`Refusal::Occupied`] where the node or an interface of nobody's attachment has an address, [`Refusal::Taken`] where
    /// another attachment has it.
    pub(crate) fn refuse_what_is_occupied(&mut self, port: &BridgePort, mac: Mac) -> Result<(), Refusal> {
        // The interfaces of a VLAN are stations of its master's link, and may have its MAC address.
        if port.vlan.is_some() {
            return Ok(());
        }
        self.refuse_occupied_mac(port, mac)?;
        self.refuse_the_gateways_address(port)?;
        self.refuse_a_neighbours_address(port)
    }

    fn refuse_occupied_mac(&mut self, port: &BridgePort, mac: Mac) -> Result<(), Refusal> {
        let occupied =
            |owner| Refusal::Occupied { what: format!("{} on {}", port.mac, port.bridge.name), owner };
        let uplink = port.service.uplink.as_ref().map(|uplink| uplink.name.clone());
        for name in [Some(port.bridge.name.clone()), uplink].into_iter().flatten() {
            let link = self.kernel.link_named(&name)?;
            if link.and_then(|link| link.mac).is_some_and(|own| own == mac.octets()) {
                return Err(occupied(name));
            }
        }
        // Of the bridge's entries those that somebody has made, and the addresses of its ports themselves.
        match self.kernel.placement(port.bridge.index, mac)? {
            Some(placement) if placement.told && placement.port != port.host.index => {
                let link = self.kernel.link(placement.port)?;
                Err(occupied(link.map_or_else(|| placement.port.to_string(), |link| link.name)))
            }
            _ => Ok(()),
        }
    }

    /// The gateway's addresses are those of the bridge, or of the node's interface in the port's VLAN.
    fn refuse_the_gateways_address(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        if port.ips.is_empty() {
            return Ok(());
        }
        let (name, addresses) = match &port.restrictions.vlans {
            None => {
                let wanted = port.service.gateways.iter().filter_map(|text| text.parse().ok());
                let present = self.kernel.subnets(port.bridge.index)?;
                (port.bridge.name.clone(), present.into_iter().chain(wanted).collect::<Vec<_>>())
            }
            Some(vlans) => {
                let place = vlans.untagged.map(|vid| (port.bridge.index, vid));
                let known = place.and_then(|place| self.registry.gateways.get(&place));
                let name = known.map_or_else(|| port.bridge.name.clone(), |known| known.link.name.clone());
                let wanting = place.into_iter().flat_map(|place| self.wanting(place));
                let addresses = wanting.chain([port]).flat_map(vlan_gateway::addresses).collect();
                (name, addresses)
            }
        };
        let taken = port.ips.iter().find(|ip| addresses.iter().any(|address| address.addr() == **ip));
        match taken {
            Some(ip) => Err(Refusal::Occupied { what: ip.to_string(), owner: name }),
            None => Ok(()),
        }
    }

    /// Another container's on the same bridge and in the same VLAN.
    fn refuse_a_neighbours_address(&self, port: &BridgePort) -> Result<(), Refusal> {
        for ip in &port.ips {
            let Some(ifindex) = self.owner_of(port, *ip)? else { continue };
            // Whoever has it may be a station that the programs do not know.
            let given = || {
                let mut others = self.registry.of_bridge(port.bridge.index);
                others.find(|other| other.port.key != port.key && other.port.ips.contains(ip))
            };
            let owner = self.registry.by_host(ifindex).or_else(given);
            if let Some(owner) = owner.filter(|owner| owner.port.key != port.key) {
                let (what, owner) = (format!("{ip} on {}", port.bridge.name), owner.port.key.clone());
                return Err(Refusal::Taken { what, owner });
            }
        }
        Ok(())
    }

    /// The host end that has an address on a port's bridge and in its VLAN. None for a
    /// port that sends tagged frames only: the VLAN of its addresses is unknown.
    pub(crate) fn owner_of(&self, port: &BridgePort, ip: IpAddr) -> Result<Option<u32>, Refusal> {
        let vid = port.restrictions.vlans.as_ref().map_or(Some(0), |vlans| vlans.untagged);
        let Some(vid) = vid.filter(|_| port.vlan.is_none()) else { return Ok(None) };
        let owner = self.datapath.owner(&AddressKey::new(port.bridge.index, vid, ip.into()))?;
        Ok(owner.map(|owner| owner.ifindex))
    }
}
