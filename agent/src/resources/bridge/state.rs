//! What the agent remembers of a container whose bridge was deleted.

use shunt_agent_api::BridgePort;
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
    /// The ifindex of its host end.
    pub(crate) fn host(&self) -> u32 {
        self.port.host.index
    }
}
