//! ARP for IPv4 over Ethernet (RFC 826).

use super::Unreadable;
use crate::address::{Address, Mac};
use crate::packet::Packet;

/// Ethernet, IPv4, and the lengths of their addresses.
const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// What an ARP packet wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArpOperation {
    /// Who has the target address?
    Request,
    /// The sender has its address.
    Reply,
    /// Anything else (RARP, InARP), by number.
    Other(u16),
}

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// What it wants.
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
    let [h0, h1, p0, p1, hl, pl, o0, o1] = packet.load::<8>(offset).ok_or(Unreadable::Truncated)?;
    let [m0, m1, m2, m3, m4, m5, s0, s1, s2, s3] =
        packet.load::<10>(offset + 8).ok_or(Unreadable::Truncated)?;
    let [n0, n1, n2, n3, n4, n5, t0, t1, t2, t3] =
        packet.load::<10>(offset + 18).ok_or(Unreadable::Truncated)?;
    if [h0, h1, p0, p1, hl, pl] != ETHERNET_IPV4 {
        return Err(Unreadable::Malformed);
    }
    Ok(Arp {
        operation: match u16::from_be_bytes([o0, o1]) {
            1 => ArpOperation::Request,
            2 => ArpOperation::Reply,
            other => ArpOperation::Other(other),
        },
        sender_mac: Mac::new([m0, m1, m2, m3, m4, m5]),
        sender: Address::from_v4([s0, s1, s2, s3]),
        target_mac: Mac::new([n0, n1, n2, n3, n4, n5]),
        target: Address::from_v4([t0, t1, t2, t3]),
    })
}
