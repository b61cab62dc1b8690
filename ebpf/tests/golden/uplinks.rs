//! A fifth bridge with an uplink, and on it ports in VLANs and ports in none.

use dataplane::abi::vlan::{Member, MemberKey, TaggedVlans};
use dataplane::abi::{
    PATH_ASK, PORT_ALONE, PORT_SAME_BRIDGE, PORT_WIRE, PortKey, STATION_ALONE, STATION_HOST, STATION_PEER_UP,
    STATION_SAME_BRIDGE,
};

use super::world::{Place, container};

pub const BRIDGE: u32 = 6000;

pub const PLACES: [Place; 6] = [
    Place { station: STATION_HOST, ..port("yard", BRIDGE, 0) },
    Place { restrictions: PORT_WIRE, ..port("gate", 6001, 0) },
    port("shed", 6002, 0),
    // Has had flows of the kernel's.
    Place { asks: PATH_ASK, ..port("barn", 6003, 0) },
    port("stall", 6004, 10),
    // In VLAN 10, and takes nothing from a container.
    Place {
        station: STATION_PEER_UP | STATION_SAME_BRIDGE | STATION_ALONE,
        restrictions: PORT_SAME_BRIDGE | PORT_ALONE,
        ..port("loft", 6005, 10)
    },
];

const fn port(name: &'static str, ifindex: u32, vid: u16) -> Place {
    Place { bridge: BRIDGE, vid, ..container(name, ifindex) }
}

pub fn members() -> impl Iterator<Item = (MemberKey, Member)> {
    [6001, 6004, 6005].into_iter().enumerate().map(|(position, ifindex)| {
        (MemberKey { bridge: BRIDGE, position: position as u32 }, Member { ifindex })
    })
}

pub fn tagged() -> (PortKey, TaggedVlans) {
    (PortKey { ifindex: 6001 }, TaggedVlans::of(&(1..=4094).collect::<Vec<_>>()))
}
