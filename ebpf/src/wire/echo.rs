//! An ICMP echo (RFC 792; RFC 4443 section 4), whose identifier stands for ports.
//!
//! A request has its identifier as source port and 0 as destination port, a reply the reverse: the tuple of the one reversed is that
//! of the other. An echo with identifier 0 would be ambiguous and is not read.

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::Unreadable;
use super::ip::{Ip, Protocol};
use crate::wire::address::L4Port;
use crate::wire::packet::Packet;

/// Where the checksum is in an ICMP header.
pub const ICMP_CHECKSUM: u32 = 2;

/// Where the identifier is in an echo's.
pub const IDENTIFIER: u32 = 4;

/// Type and code, as they stand in a packet: of a request and of a reply, by version.
const V4: [u16; 2] = [0x0800_u16.to_be(), 0];
const V6: [u16; 2] = [0x8000_u16.to_be(), 0x8100_u16.to_be()];

/// The header as it stands in the frame.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct Header {
    type_code: u16,
    checksum: u16,
    identifier: L4Port,
    sequence: u16,
}

/// An echo's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The source port.
    pub source: L4Port,
    /// The destination port.
    pub destination: L4Port,
    /// Whether it is a request.
    pub is_request: bool,
}

/// Reads the header behind `ip`, which is no later fragment's. None for any other message, for the other version's, and for a
/// code that is not 0.
///
/// # Errors
/// [`Unreadable::Truncated`] when it ends too soon.
#[inline(always)]
pub fn echo<P: Packet>(packet: &P, ip: &Ip) -> Result<Option<Echo>, Unreadable> {
    let [request, reply] = match (ip.protocol, ip.source.is_v4()) {
        (Protocol::ICMP, true) => V4,
        (Protocol::ICMPV6, false) => V6,
        _ => return Ok(None),
    };
    let Header { type_code, identifier, .. } = packet.load(ip.payload).ok_or(Unreadable::Truncated)?;
    let is_request = type_code == request;
    if identifier.half() == 0 || !(is_request || type_code == reply) {
        return Ok(None);
    }
    let none = L4Port::default();
    let (source, destination) = if is_request { (identifier, none) } else { (none, identifier) };
    Ok(Some(Echo { source, destination, is_request }))
}
