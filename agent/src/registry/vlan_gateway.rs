//! A VLAN gateway in memory: a veth pair of the node. One end has the gateway's addresses, the other is a port of the bridge in that VLAN.

use ipnet::IpNet;
use shunt_agent_api::{
    AttachmentKey, BridgePort, Interface, Restrictions, VlanGateway as Wanted, Vlans, interface_name,
};
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::Link;

use super::{Attachment, PeerEnd};

/// Which gateway: a bridge's ifindex, and a VLAN of it.
pub type Place = (u32, u16);

/// The gateway of one VLAN of one bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanGateway {
    /// The end with the addresses. It has an entry in `PORTS` and no program.
    pub link: Interface,
    /// The bridge's end, as an attachment whose container is the first end. It has no state file and is in no
    /// registry of attachments.
    pub port: Attachment,
}

impl VlanGateway {
    /// The gateway of a port from the two ends of its pair, with counters in `slot`; none if the port has no
    /// gateway.
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
            // The node's stack answers ARP and ND for the addresses.
            ips: Vec::new(),
            mtu: node.mtu,
            netns: None,
            peer_up: false,
            masquerade: Vec::new(),
            unmasqueraded: Vec::new(),
            restrictions: Restrictions { mac_check: true, vlans: Some(vlans), ..Restrictions::default() },
            mappings: Vec::new(),
            bandwidth: Default::default(),
            service: Default::default(),
            lease_dir: None,
            vlan: None,
            pod: None,
        };
        // `bpf_redirect_peer` drops packets within one namespace: the station is never up, so that frames are redirected to the port.
        let port = Attachment::new(port, mac, slot, PeerEnd::Down);
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
}

/// The place of a port's gateway; none without a gateway.
pub fn place(port: &BridgePort) -> Option<Place> {
    let vid = port.restrictions.vlans.as_ref()?.untagged?;
    port.service.vlan_gateway.as_ref().map(|_| (port.bridge.index, vid))
}

/// The names of a gateway's two ends. The second identifies the pair as the agent's.
pub fn names(bridge: &Interface, vid: u16) -> (String, String) {
    (interface_name(&bridge.name, vid), port_name(bridge.index, vid))
}

/// The name of the end that is the bridge's port: at most 15 letters, whatever the ifindex is.
pub fn port_name(bridge: u32, vid: u16) -> String {
    format!("gw{bridge:x}.{vid}")
}

/// Whether an interface has the name of a gateway's end on any bridge.
pub fn is_port_name(name: &str) -> bool {
    let parts = name.strip_prefix("gw").and_then(|rest| rest.split_once('.'));
    parts.is_some_and(|(bridge, vid)| u32::from_str_radix(bridge, 16).is_ok() && vid.parse::<u16>().is_ok())
}

/// The recorded MAC address of a port's gateway.
pub fn mac(port: &BridgePort) -> Option<Mac> {
    port.service.vlan_gateway.as_ref().and_then(|wanted| crate::mac::parse(&wanted.mac))
}

/// The addresses of a port's gateway.
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
