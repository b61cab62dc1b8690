//! What the agent remembers of a container whose bridge was deleted.

use shunt_agent_api::{BridgePort, Restrictions};
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::link::Link;

/// A container whose bridge was deleted.
#[derive(Clone, Debug)]
pub(crate) struct Orphan {
    pub(super) port: BridgePort,
    pub(super) flags: PortFlags,
    /// The last known state of the bridge.
    pub(super) bridge: Link,
}

impl Orphan {
    /// Whether it has restrictions, which its programs keep without its bridge, too.
    pub(super) fn is_restricted(&self) -> bool {
        self.port.restrictions != Restrictions::default()
    }

    /// The ifindex of its host end.
    pub(crate) fn host(&self) -> u32 {
        self.port.host.index
    }
}
