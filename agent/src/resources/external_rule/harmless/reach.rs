//! Whom bridged packets reach.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use shunt_agent_api::BridgePort;

/// Lengths of prefixes that a subnet may have where none is known.
const PREFIXES: std::ops::RangeInclusive<u8> = 8..=30;

/// Those on bridges.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// The containers' addresses, as far as they are known, and those by which all of a subnet are reached.
    pub(super) addresses: Vec<IpAddr>,
    /// Whether there is anybody whose addresses are not known: a container without any, or hosts beyond a bridge's uplink.
    pub(super) is_open: bool,
    /// Whether packets may be for the node, too, and marked.
    pub(super) is_anywhere: bool,
}

impl Reach {
    /// Anybody.
    pub(crate) fn anywhere() -> Self {
        Self { addresses: Vec::new(), is_open: true, is_anywhere: true }
    }

    /// These.
    #[cfg(test)]
    pub(crate) fn to(addresses: &[IpAddr]) -> Self {
        Self { addresses: addresses.to_vec(), ..Self::default() }
    }

    /// Those of these ports.
    pub(crate) fn of<'a>(ports: impl Iterator<Item = &'a BridgePort>) -> Self {
        let mut reach = Self::default();
        for port in ports.filter(|port| port.is_bridged()) {
            reach.is_open |= port.ips.is_empty() || port.service.uplink.is_some();
            reach.add(&port.ips, &port.service.gateways);
        }
        reach.addresses.sort_unstable();
        reach.addresses.dedup();
        reach
    }

    /// Adds a container's addresses, and the broadcast addresses of their subnets, as far as gateways tell these.
    pub(super) fn add(&mut self, ips: &[IpAddr], gateways: &[String]) {
        self.addresses.extend(ips);
        let subnets: Vec<IpNet> = gateways.iter().filter_map(|text| text.parse().ok()).collect();
        for ip in ips {
            let IpAddr::V4(ip) = ip else { continue };
            let known = subnets.iter().filter(|subnet| subnet.contains(&IpAddr::V4(*ip)));
            let mut lengths: Vec<u8> = known.map(IpNet::prefix_len).collect();
            if lengths.is_empty() {
                lengths.extend(PREFIXES);
            }
            self.addresses.extend(lengths.into_iter().filter_map(|length| broadcast(*ip, length)));
        }
    }
}

fn broadcast(ip: Ipv4Addr, length: u8) -> Option<IpAddr> {
    Some(Ipv4Net::new(ip, length).ok()?.broadcast().into())
}
