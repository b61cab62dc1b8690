//! Entries of the kernel bridge's own forwarding database.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::request::Request;
use crate::mac::Mac;

/// Tells the bridge that the station `mac` is behind its port `index` for good. It neither ages out, though the bridge may
/// never hear it, nor moves to whoever else sends from the same address (`NTF_STICKY`).
pub(crate) fn add_station(index: u32, mac: Mac) -> Request {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Bridge;
    message.header.ifindex = index;
    message.header.state = NeighbourState::Noarp;
    message.header.flags = NeighbourFlags::Controller | NeighbourFlags::Sticky;
    message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.bytes().to_vec()));
    Request::new(
        "tell the bridge where the container is".to_owned(),
        RouteNetlinkMessage::NewNeighbour(message),
        NLM_F_CREATE | NLM_F_REPLACE,
    )
}
