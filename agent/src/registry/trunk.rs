//! The lower interface of VLAN interfaces.

use shunt_agent_api::{BridgePort, Interface};

/// The lower interface of VLAN interfaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trunk {
    /// The master, or the host end of the container's interface below.
    pub link: Interface,
    /// Whether it is the latter.
    pub within: bool,
}

impl Trunk {
    /// That of a VLAN interface; none for a port of a bridge.
    pub fn of(port: &BridgePort) -> Option<Self> {
        port.vlan.map(|vlan| Self { link: port.bridge.clone(), within: vlan.within })
    }
}
