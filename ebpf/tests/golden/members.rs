//! A third bridge, all of whose ports are in VLANs.

use shunt_dataplane::abi::vlan::{DEFAULT_VID, Member, MemberKey, TaggedVlans};
use shunt_dataplane::abi::{
    AddressKey, Owner, PORT_DEFAULT_VLAN, PORT_ISOLATED, PORT_MAC_CHECK, PortKey, STATION_ISOLATED,
    STATION_PEER_UP, Station, StationKey,
};

use super::world::{Place, container};
use super::{interfaces, uplinks};

pub const BRIDGE: u32 = 4000;

/// In the order of their positions in `MEMBERS`.
pub const PLACES: [Place; 10] = [
    member("red1", 4001, 10),
    member("red2", 4002, 10),
    member("blue", 4003, 20),
    // Sends and receives 10, 20 and 30, all of them tagged.
    member("trunk", 4004, 0),
    // 20 untagged, 10 tagged.
    member("hybrid", 4005, 20),
    // 30 untagged, and what is in the bridge's default VLAN too.
    Place { restrictions: PORT_DEFAULT_VLAN, ..member("default", 4006, 30) },
    // The default VLAN untagged, 10 tagged.
    member("native", 4007, DEFAULT_VID),
    // Two of VLAN 10 that must not meet.
    isolated("red3", 4008),
    isolated("red4", 4009),
    // The node's own interface in VLAN 30.
    Place { station: 0, restrictions: PORT_MAC_CHECK, ..member("gateway", 4010, 30) },
];

const fn member(name: &'static str, ifindex: u32, vid: u16) -> Place {
    Place { bridge: BRIDGE, vid, ..container(name, ifindex) }
}

const fn isolated(name: &'static str, ifindex: u32) -> Place {
    Place {
        restrictions: PORT_ISOLATED,
        station: STATION_PEER_UP | STATION_ISOLATED,
        ..member(name, ifindex, 10)
    }
}

/// Red2's IPv4 address is used in VLAN 20 as well, by hybrid.
pub fn shared_address() -> [(AddressKey, Owner); 1] {
    let [red2, hybrid] = [&PLACES[1], &PLACES[4]];
    let address = red2.addresses()[0].into();
    [(AddressKey::new(BRIDGE, hybrid.vid, address), Owner { ifindex: hybrid.ifindex })]
}

/// Whether a place is in several VLANs, or in none untagged.
pub fn is_in_many(place: &Place) -> bool {
    place.bridge == BRIDGE
        && (place.vid == 0
            || place.restrictions & PORT_DEFAULT_VLAN != 0
            || tagged().iter().any(|(key, _)| key.ifindex == place.ifindex))
}

/// Red2's MAC address is used in VLAN 20 as well, behind blue.
pub fn shared_mac() -> [(StationKey, Station); 1] {
    let [red2, blue] = [&PLACES[1], &PLACES[2]];
    let key = StationKey { bridge: BRIDGE, vid: blue.vid, mac: red2.mac() };
    [(key, Station { ifindex: blue.ifindex, slot: blue.slot(), mtu: blue.mtu, flags: blue.station })]
}

/// Position 2 is a hole: somebody has left.
pub fn members() -> Vec<(MemberKey, Member)> {
    let ifindexes = PLACES.iter().map(|place| place.ifindex);
    let with_hole = ifindexes.clone().take(2).chain([0]).chain(ifindexes.skip(2));
    with_hole
        .enumerate()
        .map(|(position, ifindex)| {
            (MemberKey { bridge: BRIDGE, position: position as u32 }, Member { ifindex })
        })
        .chain(interfaces::members())
        .chain(uplinks::members())
        .collect()
}

pub fn tagged() -> Vec<(PortKey, TaggedVlans)> {
    [(4004, &[10, 20, 30][..]), (4005, &[10]), (4007, &[10])]
        .into_iter()
        .map(|(ifindex, vids)| (PortKey { ifindex }, TaggedVlans::of(vids)))
        .chain(uplinks::tagged())
        .collect()
}
