//! A bridge's uplink in memory: an interface of the node that is a trunk port of the bridge.

use shunt_agent_api::Interface;
use shunt_dataplane::abi::vlan::TaggedVlans;
use shunt_dataplane::abi::{PATH_FAST, PORT_BLOCKED, PORT_WIRE, Port, PortKey};
use shunt_dataplane::wire::address::Mac;

use crate::bpf::hook::{Hook, Program, ProgramSet};

/// The VLANs that there are (IEEE 802.1Q).
const VIDS: std::ops::RangeInclusive<u16> = 1..=4094;

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
    /// Its counters.
    pub slot: u32,
}

impl Uplink {
    /// Its programs.
    pub fn hooks(&self) -> [Hook; 2] {
        Program::OF_UPLINKS.map(|program| Hook {
            program,
            set: ProgramSet::Uplinks,
            ifindex: self.link.index,
            ifname: self.link.name.clone(),
        })
    }

    /// Its key in `PORTS` and `TAGGED`.
    pub fn port_key(&self) -> PortKey {
        PortKey { ifindex: self.link.index }
    }

    /// Its entry in `PORTS`. Untagged frames belong to no VLAN and take the kernel's bridge.
    pub fn port_entry(&self) -> Port {
        let bridge = self.bridge.index;
        let flags = if self.blocked { PORT_WIRE | PORT_BLOCKED } else { PORT_WIRE };
        Port { bridge, slot: self.slot, asks: PATH_FAST, flags, vid: 0, mac: self.mac }
    }

    /// It carries every VLAN, with its tag.
    pub fn tagged() -> TaggedVlans {
        TaggedVlans::of(&VIDS.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uplink_carries_every_vlan_that_there_is() {
        let tagged = Uplink::tagged();
        assert!(VIDS.into_iter().all(|vid| tagged.has(vid)));
        assert!(!tagged.has(0) && !tagged.has(4095));
    }
}
