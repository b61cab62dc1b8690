//! ARP for IPv4 over Ethernet (RFC 826).

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::Unreadable;
use crate::wire::address::{Address, Mac};
use crate::wire::packet::Packet;

const ETHERNET: u16 = 1;
const IPV4: u16 = 0x0800;

/// The packet as it stands in the frame; half words in network order.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct Body {
    hardware: u16,
    protocol: u16,
    mac_bytes: u8,
    address_bytes: u8,
    operation: u16,
    sender_mac: Mac,
    sender: [u16; 2],
    target_mac: Mac,
    target: [u16; 2],
}

/// The operation of an ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArpOperation {
    /// Asks for the target's hardware address.
    Request,
    /// Announces the sender's.
    Reply,
    /// Anything else (RARP, InARP), by number.
    Other(u16),
}

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// The operation.
    pub operation: ArpOperation,
    /// The sender's hardware address.
    pub sender_mac: Mac,
    /// The sender's address; all zeros in a probe (RFC 5227).
    pub sender: Address,
    /// The target's hardware address; meaningless in a request.
    pub target_mac: Mac,
    /// The target's address; the sender's own in a gratuitous announcement.
    pub target: Address,
}

/// Reads the packet at `offset`.
///
/// # Errors
/// [`Unreadable::Truncated`] when it ends too soon, [`Unreadable::Malformed`] for other hardware or another protocol.
#[inline(always)]
pub fn arp<P: Packet>(packet: &P, offset: u32) -> Result<Arp, Unreadable> {
    let body: Body = packet.load(offset).ok_or(Unreadable::Truncated)?;
    let kind = (u16::from_be(body.hardware), u16::from_be(body.protocol), body.mac_bytes, body.address_bytes);
    if kind != (ETHERNET, IPV4, 6, 4) {
        return Err(Unreadable::Malformed);
    }
    Ok(Arp {
        operation: match u16::from_be(body.operation) {
            1 => ArpOperation::Request,
            2 => ArpOperation::Reply,
            other => ArpOperation::Other(other),
        },
        sender_mac: body.sender_mac,
        sender: Address::from_v4(body.sender),
        target_mac: body.target_mac,
        target: Address::from_v4(body.target),
    })
}
