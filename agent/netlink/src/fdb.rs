//! Entries of a forwarding database: the kernel bridge's own, and the addresses that an interface listens to.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::request::{MAKE, Reply, Request};

/// Where a bridge takes a station to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdbEntry {
    /// The bridge.
    pub bridge: u32,
    /// The port by which it reaches the station; the bridge itself where the address is its own.
    pub port: u32,
    /// The station's Ethernet address.
    pub mac: [u8; 6],
    /// Whether the bridge has not heard the station: somebody has told it so, or the address is its own.
    pub told: bool,
    /// Whether the address is a port's or the bridge's own.
    pub own: bool,
    /// Whether the station stays there, as a container does: told, and never to move.
    pub sticky: bool,
}

/// None for what is no bridge's entry, and for one in a VLAN.
impl Reply for FdbEntry {
    fn read(payload: &[u8]) -> Option<Self> {
        let NeighbourMessage { header, attributes, .. } = NeighbourMessage::read(payload)?;
        if header.family != AddressFamily::Bridge {
            return None;
        }
        let (mut mac, mut bridge) = (None, None);
        for attribute in attributes {
            match attribute {
                NeighbourAttribute::LinkLayerAddress(address) => mac = address.try_into().ok(),
                NeighbourAttribute::Controller(index) => bridge = Some(index),
                NeighbourAttribute::Vlan(_) => return None,
                _ => {}
            }
        }
        let is = |state: NeighbourState| u16::from(header.state) & u16::from(state) != 0;
        let (told, own) = (is(NeighbourState::Noarp), is(NeighbourState::Permanent));
        let told = told || header.flags.contains(NeighbourFlags::ExtLearned);
        let sticky = is(NeighbourState::Noarp) && header.flags.contains(NeighbourFlags::Sticky);
        Some(Self { bridge: bridge?, port: header.ifindex, mac: mac?, told: told || own, own, sticky })
    }
}

fn entry(index: u32, state: NeighbourState, flags: NeighbourFlags, mac: [u8; 6]) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Bridge;
    message.header.ifindex = index;
    message.header.state = state;
    message.header.flags = flags;
    message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
    message
}

/// Tells the bridge that the station `mac` is behind its port `index`. The entry does not age out, though the bridge may never hear the
/// station. A fixed one never moves to whoever else sends from the same address (`NTF_STICKY`); another moves as if it were learned
/// (`NTF_EXT_LEARNED`), and the kernel says as little of that as of what it learns.
///
/// `known` is what the bridge says of the station ([`station`]). None where the address is a port's or the bridge's own: an entry in
/// its place would go with the port, and leave none.
pub fn place_station(index: u32, mac: [u8; 6], is_fixed: bool, known: Option<&FdbEntry>) -> Option<Request> {
    let flags = match known {
        None => MAKE,
        Some(known) if known.own => return None,
        Some(_) => NLM_F_CREATE | NLM_F_REPLACE,
    };
    let (state, flag) = match is_fixed {
        true => (NeighbourState::Noarp, NeighbourFlags::Sticky),
        false => (NeighbourState::Reachable, NeighbourFlags::ExtLearned),
    };
    let message = entry(index, state, NeighbourFlags::Controller | flag, mac);
    let message = RouteNetlinkMessage::NewNeighbour(message);
    Some(Request::new("tell the bridge where the container is", message, flags))
}

/// Has a bridge believe that it has just heard `mac` by its port `index`, as if a frame had come in there.
pub fn refresh_station(index: u32, mac: [u8; 6]) -> Request {
    let message =
        entry(index, NeighbourState::Reachable, NeighbourFlags::Use | NeighbourFlags::Controller, mac);
    Request::new("refresh a station of the bridge", RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE)
}

/// Asks where a bridge takes a station to be.
pub fn station(bridge: u32, mac: [u8; 6]) -> Request<FdbEntry> {
    let mut message = entry(0, NeighbourState::None, NeighbourFlags::empty(), mac);
    message.attributes.push(NeighbourAttribute::Controller(bridge));
    Request::new("look up a station of the bridge", RouteNetlinkMessage::GetNeighbour(message), 0)
}

/// Makes an interface take frames for `mac` too (`EEXIST` where it does).
pub fn listen_to(index: u32, mac: [u8; 6]) -> Request {
    let message = entry(index, NeighbourState::Permanent, NeighbourFlags::Own, mac);
    Request::new(
        "have the interface listen to a station",
        RouteNetlinkMessage::NewNeighbour(message),
        NLM_F_CREATE,
    )
}

/// Takes that back.
pub fn stop_listening_to(index: u32, mac: [u8; 6]) -> Request {
    let message = entry(index, NeighbourState::Permanent, NeighbourFlags::Own, mac);
    Request::new(
        "keep the interface from listening to a station",
        RouteNetlinkMessage::DelNeighbour(message),
        0,
    )
}
