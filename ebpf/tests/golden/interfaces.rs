//! VLAN interfaces: three on a master, and one on the interface behind a parent's host end.

use shunt_dataplane::abi::PORT_WITHIN;
use shunt_dataplane::abi::vlan::{Member, MemberKey};

use super::world::{Place, container};

/// The master, which no map knows.
pub const MASTER: u32 = 5000;
/// The parent's host end, which no map knows here.
pub const PARENT: u32 = 5500;

pub const PLACES: [Place; 4] = [
    interface("ten1", 5001, 10),
    interface("ten2", 5002, 10),
    // Takes small packets only.
    Place { mtu: 576, ..interface("twenty", 5003, 20) },
    Place { bridge: PARENT, restrictions: PORT_WITHIN, ..interface("within", 5501, 10) },
];

const fn interface(name: &'static str, ifindex: u32, vid: u16) -> Place {
    Place { bridge: MASTER, vid, ..container(name, ifindex) }
}

/// Position 1 is a hole: somebody has left.
pub fn members() -> impl Iterator<Item = (MemberKey, Member)> {
    [5001, 0, 5002, 5003].into_iter().enumerate().map(|(position, ifindex)| {
        (MemberKey { bridge: MASTER, position: position as u32 }, Member { ifindex })
    })
}
