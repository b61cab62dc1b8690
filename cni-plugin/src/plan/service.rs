//! What the configuration gives a port and takes from it, whatever its addresses.

use ipnet::IpNet;
use shunt_agent_api::{BridgeUplink, Restrictions, Service, VlanGateway, Vlans, interface_name};

use crate::config::{Bridge, big_tcp, filters, ingress_policy, membership, storm_control};

/// What the configuration takes from the port.
pub(crate) fn restrictions(bridge: &Bridge) -> Restrictions {
    Restrictions {
        isolated: bridge.port_isolation,
        mac_check: bridge.macspoofchk,
        ip_check: bridge.ipspoofchk,
        // An open port needs no exception.
        trusted: bridge.trusted && bridge.ipspoofchk,
        // The configuration was judged before; should that fail, the port is in no VLAN and shut.
        vlans: membership(bridge).unwrap_or_else(|_| Some(Vlans::default())),
        ingress: ingress_policy(bridge),
        // As above; a limit that cannot be read was refused.
        storm: storm_control(bridge).unwrap_or_default(),
    }
}

/// What the bridge is told for the port.
pub(crate) fn service(bridge: &Bridge, gateways: &[IpNet]) -> Service {
    let addresses = gateways.iter().map(ToString::to_string).collect();
    let uplink = bridge.uplink().map(|name| BridgeUplink {
        name: name.to_owned(),
        move_address: bridge.uplink_move_address,
        kept: false,
    });
    let (hairpin, filters) = (bridge.hairpin_mode, filters(bridge));
    // The configuration was judged before.
    let big_tcp = big_tcp(bridge).unwrap_or_default();
    if vlan_gateway(bridge).is_none() || gateways.is_empty() {
        return Service { hairpin, gateways: addresses, uplink, vlan_gateway: None, filters, big_tcp };
    }
    let gateway = VlanGateway { addresses, force_address: bridge.force_address, mac: String::new() };
    Service { hairpin, gateways: Vec::new(), uplink, vlan_gateway: Some(gateway), filters, big_tcp }
}

/// The name of the node's interface in the VLAN of a port's untagged frames, where the node is the gateway there.
pub(crate) fn vlan_gateway(bridge: &Bridge) -> Option<String> {
    // The configuration was judged before.
    let vid = membership(bridge).ok().flatten()?.untagged?;
    bridge.is_gateway.then(|| interface_name(&bridge.bridge, vid))
}

/// The uplink whose addresses the bridge gets.
pub(crate) fn inherits_from(bridge: &Bridge) -> Option<String> {
    bridge.uplink().filter(|_| bridge.uplink_move_address).map(str::to_owned)
}
