//! Bridges on which what nobody needs of frames to groups is suppressed.

use shunt_dataplane::abi::{
    AFFINITY_LOOKUP, AddressKey, PORT_FRESH, PORT_HEEDED, PORT_QUERIED, PORT_ROUTED, PORT_SPARING,
    STATION_HOST,
};

use shunt_dataplane::wire::address::Address;

use super::world::{Place, container};

const COMMON: u32 = 7000;
const QUERIED: u32 = 7100;

pub const PLACES: [Place; 6] = [
    Place {
        bridge: COMMON,
        station: STATION_HOST,
        restrictions: PORT_SPARING,
        ..container("common", COMMON)
    },
    // Nobody had its addresses before.
    Place { bridge: COMMON, restrictions: PORT_FRESH, ..container("anew", 7001) },
    // Somebody had.
    Place { bridge: COMMON, ..container("again", 7002) },
    // Nobody had, but others have rules for what it sends.
    Place {
        bridge: COMMON,
        affinity: AFFINITY_LOOKUP,
        restrictions: PORT_FRESH | PORT_HEEDED,
        ..container("warded", 7003)
    },
    // Somebody has asked for listeners, and there is a router.
    Place {
        bridge: QUERIED,
        station: STATION_HOST,
        restrictions: PORT_SPARING | PORT_QUERIED | PORT_ROUTED,
        ..container("queried", QUERIED)
    },
    Place { bridge: QUERIED, restrictions: PORT_FRESH, ..container("asked", 7101) },
];

/// The link-local addresses that the places' MAC addresses make: all that the programs look for in `MENTIONS`. Nobody knows any.
pub fn link_locals() -> impl Iterator<Item = AddressKey> {
    PLACES.iter().map(|place| AddressKey::new(place.bridge, 0, Address::link_local_of(place.mac())))
}
