//! What the agent knows of a VLAN's gateway: a veth pair of the node's, one end of which has the gateway's addresses, while the
//! other is a port of the bridge in that VLAN, like any container's.

use ipnet::IpNet;
use shunt_agent_api::{
    AttachmentKey, BridgePort, Interface, Restrictions, VlanGateway as Wanted, Vlans, interface_name,
};
use shunt_dataplane::abi::{NO_SLOT, PATH_FAST, Port, PortKey};
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::Link;

use crate::registry::{Attachment, Others, PeerEnd};

/// Which gateway: a bridge's ifindex, and a VLAN of it.
pub type Place = (u32, u16);

/// The gateway of one VLAN of one bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanGateway {
    /// The end that has the addresses, and nothing of the agent's but its entry in `PORTS`.
    pub link: Interface,
    /// The other end, with what the programs know of the first as if it were a container's. It is written down nowhere, and no
    /// attachment of anybody's.
    pub port: Attachment,
}

impl VlanGateway {
    /// Of the two ends of the pair that a port's gateway is, with counters in `slot`; none if the port wants no gateway.
    pub fn of(port: &BridgePort, (node, bridged): (&Link, &Link), slot: u32) -> Option<Self> {
        let (_, vid) = place(port)?;
        let mac = mac(port)?;
        let vlans = Vlans { untagged: Some(vid), ..Vlans::default() };
        let nobody =
            AttachmentKey { network: String::new(), container: String::new(), ifname: node.name.clone() };
        let port = BridgePort {
            key: nobody,
            bridge: port.bridge.clone(),
            host: Interface { name: bridged.name.clone(), index: bridged.index },
            mac: crate::mac::format(mac),
            // The node's own stack says who has the addresses.
            ips: Vec::new(),
            mtu: node.mtu,
            netns: None,
            peer_up: false,
            masquerade: Vec::new(),
            restrictions: Restrictions { mac_check: true, vlans: Some(vlans), ..Restrictions::default() },
            mappings: Vec::new(),
            bandwidth: Default::default(),
            service: Default::default(),
            lease_dir: None,
            vlan: None,
        };
        let port = Attachment {
            port,
            mac,
            slot,
            // `bpf_redirect_peer` drops what is for the namespace that it comes from: the station is never said to be up, so that
            // frames go through the port.
            peer: PeerEnd::Down,
            others: Others::default(),
            abandoned: false,
            is_parent: false,
            lent: Vec::new(),
        };
        Some(Self { link: Interface { name: node.name.clone(), index: node.index }, port })
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        (self.port.port.bridge.index, self.vid())
    }

    /// Its VLAN.
    pub fn vid(&self) -> u16 {
        self.port.port.restrictions.vlans.as_ref().and_then(|vlans| vlans.untagged).unwrap_or_default()
    }

    /// The key in `PORTS` of the end that has the addresses.
    pub fn node_key(&self) -> PortKey {
        PortKey { ifindex: self.link.index }
    }

    /// What the programs know of that end: what comes in by it comes from containers, as what comes in by a bridge does.
    pub fn node_entry(&self) -> Port {
        let (bridge, mac) = (self.link.index, self.port.mac);
        Port { bridge, slot: NO_SLOT, asks: PATH_FAST, flags: 0, vid: 0, mac }
    }
}

/// Where the gateway is that a port wants; none if it wants none.
pub fn place(port: &BridgePort) -> Option<Place> {
    let vid = port.restrictions.vlans.as_ref()?.untagged?;
    port.service.vlan_gateway.as_ref().map(|_| (port.bridge.index, vid))
}

/// The names of a gateway's two ends. Nobody else has the second one by chance, and it tells whose the first one is.
pub fn names(bridge: &Interface, vid: u16) -> (String, String) {
    (interface_name(&bridge.name, vid), port_name(bridge.index, vid))
}

/// The name of the end that is the bridge's port: at most 15 letters, whatever the ifindex is.
pub fn port_name(bridge: u32, vid: u16) -> String {
    format!("gw{bridge:x}.{vid}")
}

/// The MAC address that was noted for a port's gateway.
pub fn mac(port: &BridgePort) -> Option<Mac> {
    port.service.vlan_gateway.as_ref().and_then(|wanted| crate::mac::parse(&wanted.mac))
}

/// The addresses that a port wants its gateway to have.
pub fn addresses(port: &BridgePort) -> impl Iterator<Item = IpNet> {
    let wanted = port.service.vlan_gateway.iter();
    wanted.flat_map(|Wanted { addresses, .. }| addresses).filter_map(|text| text.parse().ok())
}

/// Whether a port is in a VLAN, tagged or not.
pub fn is_in(port: &BridgePort, vid: u16) -> bool {
    port.restrictions.vlans.as_ref().is_some_and(|vlans| {
        vlans.untagged == Some(vid) || vlans.tagged.contains(&vid) || (vlans.default && vid == 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_names_are_names_of_links() {
        let bridge = Interface { name: "fifteen-letters".to_owned(), index: u32::MAX };
        let (node, port) = names(&bridge, 4094);
        assert!(node.len() <= 15 && port.len() <= 15, "{node} {port}");
        let bridge = Interface { name: "cni0".to_owned(), index: 26 };
        assert_eq!(names(&bridge, 10), ("cni0.10".to_owned(), "gw1a.10".to_owned()));
    }
}
