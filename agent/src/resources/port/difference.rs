//! What makes one attachment another.

use shunt_agent_api::BridgePort;

/// Compares what identifies an attachment. The namespace's path, the peer's state, what the bridge was told,
/// the lease directory and the pod do not count.
pub(crate) fn difference(one: &BridgePort, other: &BridgePort) -> Option<&'static str> {
    let BridgePort {
        key: _,
        bridge,
        host,
        mac,
        ips,
        mtu,
        netns: _,
        peer_up: _,
        masquerade,
        unmasqueraded,
        restrictions,
        mappings,
        bandwidth,
        service,
        lease_dir: _,
        vlan,
        pod: _,
    } = one;
    [
        (*host != other.host, "host interface"),
        (*bridge != other.bridge, "bridge"),
        (!mac.eq_ignore_ascii_case(&other.mac), "MAC address"),
        (*ips != other.ips, "list of addresses"),
        (*mtu != other.mtu, "MTU"),
        (*vlan != other.vlan, "VLAN"),
        (*masquerade != other.masquerade, "masquerade"),
        (*unmasqueraded != other.unmasqueraded, "list of unmasqueraded destinations"),
        (*restrictions != other.restrictions, "set of restrictions"),
        (service.filters != other.service.filters, "key `filters`"),
        (*mappings != other.mappings, "list of port mappings"),
        (*bandwidth != other.bandwidth, "bandwidth limit"),
    ]
    .into_iter()
    .find_map(|(differs, what)| differs.then_some(what))
}
