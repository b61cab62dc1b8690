//! What a port's bridge is to be told of it.

use shunt_agent_api::BridgePort;
use shunt_netlink::bridge::PortFlags;

/// What a port's bridge is to be told of it.
pub fn port_flags(port: &BridgePort) -> PortFlags {
    PortFlags {
        hairpin: port.service.hairpin,
        isolated: port.restrictions.isolated,
        locked: port.restrictions.mac_check || port.restrictions.vlans.is_some(),
        aside: port.restrictions.vlans.is_some(),
    }
}
