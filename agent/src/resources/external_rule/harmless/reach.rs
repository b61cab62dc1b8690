//! Whom bridged packets reach.

use std::net::IpAddr;

use shunt_agent_api::BridgePort;

/// Those on bridges.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// The containers' addresses, as far as they are known.
    pub(super) addresses: Vec<IpAddr>,
    /// Whether there is anybody whose addresses are not known: a container without any, or hosts beyond a bridge's uplink.
    pub(super) is_open: bool,
}

impl Reach {
    /// Anybody.
    pub(crate) fn anywhere() -> Self {
        Self { addresses: Vec::new(), is_open: true }
    }

    /// Those of these ports.
    pub(crate) fn of<'a>(ports: impl Iterator<Item = &'a BridgePort>) -> Self {
        let mut reach = Self::default();
        for port in ports.filter(|port| port.is_bridged()) {
            reach.is_open |= port.ips.is_empty() || port.service.uplink.is_some();
            reach.addresses.extend(&port.ips);
        }
        reach
    }
}
