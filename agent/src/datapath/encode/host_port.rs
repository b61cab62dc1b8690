//! Host ports in `MAPPINGS`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use shunt_agent_api::{BridgePort, PortMapping, Protocol};
use shunt_dataplane::abi::translation::{
    MAPPING_HEEDED, MAPPING_MASQUERADED, MAPPING_SOURCE_KEPT, Mapping, MappingKey,
};
use shunt_dataplane::wire::address::Address;

use super::station_key;
use crate::registry::Attachment;

/// IP protocol number (IANA "Assigned Internet Protocol Numbers").
pub const fn protocol_number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    }
}

/// The key of a host port for `ip`, an address of its container. A host port of all addresses has an entry
/// per family.
pub fn mapping_key(mapping: &PortMapping, ip: IpAddr) -> MappingKey {
    let address = mapping.address().map_or_else(|| Address::from(ip).unspecified(), Address::from);
    MappingKey {
        address,
        port: mapping.host_port.into(),
        protocol: protocol_number(mapping.protocol),
        pad: 0,
    }
}

/// The entries of an attachment's host ports.
pub fn mappings(attachment: &Attachment) -> BTreeMap<MappingKey, Mapping> {
    let port = &attachment.port;
    let value = Mapping {
        bridge: port.bridge.index,
        vid: station_key(attachment).vid,
        mac: attachment.mac,
        bits: [subnet_bits(port, IpAddr::is_ipv4, 96), subnet_bits(port, IpAddr::is_ipv6, 0)],
        ..Mapping::default()
    };
    let mut entries = BTreeMap::new();
    for mapping in &port.mappings {
        let flags = match mapping {
            PortMapping { keeps_source: true, .. } => MAPPING_SOURCE_KEPT,
            PortMapping { masquerade: true, .. } => MAPPING_MASQUERADED,
            _ => 0,
        };
        let flags = if attachment.opened { flags | MAPPING_HEEDED } else { flags };
        let value = Mapping { port: mapping.container_port.into(), flags, ..value };
        for ip in attachment.mapped_ips(mapping) {
            let address = Address::from(ip);
            let (v4, v6) = if ip.is_ipv4() { (address, value.v6) } else { (value.v4, address) };
            entries.insert(mapping_key(mapping, ip), Mapping { v4, v6, ..value });
        }
    }
    entries
}

/// The prefix length of a port's subnet in a family plus `before`; 0 if the node is not its gateway.
fn subnet_bits(port: &BridgePort, is_of: fn(&IpAddr) -> bool, before: u8) -> u8 {
    let Some(ip) = port.ips.iter().copied().find(is_of) else { return 0 };
    let gateways = port.service.gateways.iter().filter_map(|text| text.parse::<IpNet>().ok());
    let of_it = gateways.filter(|subnet| subnet.contains(&ip)).map(|subnet| before + subnet.prefix_len());
    of_it.max().unwrap_or(0)
}
