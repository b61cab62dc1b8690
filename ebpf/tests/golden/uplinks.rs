//! A fifth bridge with an uplink, and on it ports in VLANs and ports in none.

use shunt_dataplane::abi::learning::{Learned, Learning, MAX_HELD};
use shunt_dataplane::abi::vlan::{Member, MemberKey, TaggedVlans};
use shunt_dataplane::abi::{
    AFFINITY_LOOKUP, PORT_ALONE, PORT_AWAY, PORT_BLOCKED, PORT_HEEDED, PORT_ISOLATED, PORT_MAC_CHECK,
    PORT_MAPPED, PORT_MASQUERADED, PORT_OPENED, PORT_SAME_BRIDGE, PORT_WIRE, PortKey, STATION_ALONE,
    STATION_HOST, STATION_MOVED, STATION_OPENED, STATION_PEER_UP, STATION_SAME_BRIDGE, STATION_WIRE, Station,
    StationKey,
};
use shunt_dataplane::wire::address::Mac;

use super::world::{self, Place, container};

pub const BRIDGE: u32 = 6000;

/// A bridge with a port whose host ports the kernel opens.
pub const COURT: u32 = 6100;

pub const PLACES: [Place; 15] = [
    Place { station: STATION_HOST, ..port("yard", BRIDGE, 0) },
    Place { restrictions: PORT_WIRE | PORT_MAPPED, ..port("gate", 6001, 0) },
    port("shed", 6002, 0),
    // Has had flows of the kernel's.
    Place { affinity: AFFINITY_LOOKUP, ..port("barn", 6003, 0) },
    port("stall", 6004, 10),
    // In VLAN 10, and takes nothing from a container.
    Place {
        station: STATION_PEER_UP | STATION_SAME_BRIDGE | STATION_ALONE,
        restrictions: PORT_SAME_BRIDGE | PORT_ALONE,
        ..port("loft", 6005, 10)
    },
    // Another uplink, from which no more is learned.
    Place { restrictions: PORT_WIRE, ..port("rear", 6006, 0) },
    // One that a spanning tree keeps from forwarding.
    Place { restrictions: PORT_WIRE | PORT_BLOCKED, ..port("hatch", 6007, 0) },
    // May not pretend to be another, and nobody takes its place.
    Place { restrictions: PORT_MAC_CHECK, ..port("vault", 6008, 0) },
    // Its station was heard elsewhere since.
    Place { station: STATION_PEER_UP | STATION_MOVED, restrictions: PORT_AWAY, ..port("loan", 6009, 0) },
    // Reaches no other isolated port, whoever sends its frames back.
    Place { restrictions: PORT_ISOLATED, ..port("cell", 6010, 0) },
    // Others have rules for it.
    Place { affinity: AFFINITY_LOOKUP, restrictions: PORT_HEEDED, ..port("ward", 6011, 0) },
    Place { station: STATION_HOST, bridge: COURT, ..port("court", COURT, 0) },
    // Its host ports are opened by the kernel, which masquerades it as well.
    Place {
        station: STATION_PEER_UP | STATION_OPENED,
        restrictions: PORT_OPENED | PORT_MASQUERADED,
        bridge: COURT,
        ..port("stable", 6101, 0)
    },
    Place { bridge: COURT, ..port("mews", 6102, 0) },
];

const fn port(name: &'static str, ifindex: u32, vid: u16) -> Place {
    Place { bridge: BRIDGE, vid, ..container(name, ifindex) }
}

pub fn members() -> impl Iterator<Item = (MemberKey, Member)> {
    [6001, 6004, 6005].into_iter().enumerate().map(|(position, ifindex)| {
        (MemberKey { bridge: BRIDGE, position: position as u32 }, Member { ifindex })
    })
}

pub fn tagged() -> [(PortKey, TaggedVlans); 3] {
    NICS.map(|ifindex| (PortKey { ifindex }, TaggedVlans::of(&(1..=4094).collect::<Vec<_>>())))
}

/// The uplinks, whose drivers run programs.
pub const NICS: [u32; 3] = [6001, 6006, 6007];

/// Stations beyond the uplinks: one heard a while ago, one just now, one long ago, one by the other uplink, one in a VLAN; and one
/// beyond an uplink of the first bridge.
pub fn learned(now: u64) -> Vec<(StationKey, Learned)> {
    const SECOND: u64 = 1_000_000_000;
    [
        (BRIDGE, 1, 0, 6001, now.saturating_sub(10 * SECOND)),
        (BRIDGE, 2, 0, 6001, now + 1_000 * SECOND),
        (BRIDGE, 3, 0, 6001, now.saturating_sub(400 * SECOND)),
        (BRIDGE, 4, 0, 6006, now.saturating_sub(10 * SECOND)),
        (BRIDGE, 5, 10, 6001, now.saturating_sub(10 * SECOND)),
        (world::BRIDGE, 6, 0, 6001, now.saturating_sub(10 * SECOND)),
    ]
    .map(|(bridge, number, vid, ifindex, seen)| {
        let key = StationKey { bridge, vid, mac: Mac::new([2, 0xfa, 0, 0, 0, number]) };
        (
            key,
            Learned {
                station: Station { ifindex, slot: slot(ifindex), mtu: 1500, flags: STATION_WIRE },
                seen,
                ..Learned::default()
            },
        )
    })
    .to_vec()
}

pub fn learning() -> Vec<(PortKey, Learning)> {
    [(6001, 4), (6006, MAX_HELD), (6007, 0)]
        .map(|(ifindex, held)| {
            (PortKey { ifindex }, Learning { mtu: 1500, slot: slot(ifindex), held, ..Learning::default() })
        })
        .to_vec()
}

fn slot(ifindex: u32) -> u32 {
    PLACES.iter().find(|place| place.ifindex == ifindex).expect("a place").slot()
}
