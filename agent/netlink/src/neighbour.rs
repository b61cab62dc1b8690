//! Neighbours of an interface, and stations of a bridge: one message tells of both.

use netlink_packet_core::ParseableParametrized as _;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourHeader, NeighbourMessage};

use crate::attribute::attributes;
use crate::request::{Reply, Request};

/// Bytes of `struct ndmsg`.
const HEADER: usize = 12;

/// The message itself, of `RTM_NEWNEIGH` or `RTM_DELNEIGH`.
impl Reply for NeighbourMessage {
    fn read(payload: &[u8]) -> Option<Self> {
        let mut message = Self::default();
        message.header = NeighbourHeader::parse(payload).ok()?;
        let family = message.header.family;
        let read = attributes(payload.get(HEADER..)?)
            .filter_map(|attribute| NeighbourAttribute::parse_with_param(&attribute, family).ok());
        message.attributes = read.collect();
        Some(message)
    }
}

/// Asks for every neighbour of every interface.
pub fn neighbours() -> Request<NeighbourMessage> {
    Request::dump("list the neighbours", RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()))
}
