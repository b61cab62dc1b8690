//! The number by which one network namespace knows another.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use netlink_packet_core::parse_i32;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};

use crate::attribute::find;
use crate::request::{Reply, Request};

/// Bytes of `struct rtgenmsg`, padded.
const HEADER: usize = 4;

/// `NETNSA_NSID` (linux/net_namespace.h).
const NETNSA_NSID: u16 = 1;

/// The number of another namespace, if it has got one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceId(pub Option<i32>);

/// Asks for the number that the socket's namespace has for another one. The kernel gives it one when it first shows a link whose other
/// end is there.
pub fn namespace_id(namespace: BorrowedFd<'_>) -> Request<NamespaceId> {
    let mut message = NsidMessage::default();
    message.attributes.push(NsidAttribute::Fd(namespace.as_raw_fd() as u32));
    Request::new("look up a network namespace's number", RouteNetlinkMessage::GetNsId(message), 0)
}

impl Reply for NamespaceId {
    fn read(payload: &[u8]) -> Option<Self> {
        let id = parse_i32(find(payload.get(HEADER..)?, NETNSA_NSID)?).ok()?;
        Some(Self(Some(id).filter(|id| *id >= 0)))
    }
}
