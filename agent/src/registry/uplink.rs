//! A bridge's uplink in memory: an interface of the node that is a trunk port of the bridge.

use shunt_agent_api::Interface;
use shunt_dataplane::wire::address::Mac;

/// A bridge's way out of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// The interface.
    pub link: Interface,
    /// Its Ethernet address.
    pub mac: Mac,
    /// The bridge.
    pub bridge: Interface,
    /// Whether it was a port of the bridge before, and stays one.
    pub kept: bool,
    /// Whether the node's addresses are moved to the bridge while it is a port.
    pub moves: bool,
    /// Whether its bridge keeps it from forwarding, as a spanning tree does.
    pub blocked: bool,
    /// Whether its bridge learns nothing from it.
    pub deaf: bool,
    /// Whether its bridge runs `from_wire`, which wants to know what comes by it.
    pub mapped: bool,
    /// Its counters.
    pub slot: u32,
}
