//! Neighbour discovery: solicitations and advertisements (RFC 4861 sections 4.3 and 4.4).

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::Unreadable;
use super::ip::{Fragment, Ip, Protocol};
use crate::wire::address::Address;
use crate::wire::packet::Packet;

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// RFC 4861: with any other value a router has forwarded it, and it is invalid.
const HOP_LIMIT: u8 = 255;

/// The message as it stands in the frame, without options; half words in network order.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct Body {
    kind: u8,
    code: u8,
    checksum: u16,
    flags: [u16; 2],
    target: [u16; 8],
}

/// A neighbour discovery message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighborDiscovery {
    /// Asks for the target's link-layer address. From `::` it is a duplicate address probe (RFC 4862).
    Solicitation {
        /// The target.
        target: Address,
    },
    /// Announces the target's link-layer address.
    Advertisement {
        /// The target.
        target: Address,
    },
}

/// Reads the message behind `ip`; none when it is another kind of packet.
///
/// # Errors
/// [`Unreadable::Truncated`] when it ends too soon, [`Unreadable::Malformed`] when a router has touched it, or for a
/// mapped IPv4 address.
#[inline(always)]
pub fn neighbor_discovery<P: Packet>(packet: &P, ip: &Ip) -> Result<Option<NeighborDiscovery>, Unreadable> {
    if ip.protocol != Protocol::ICMPV6 || ip.fragment == Fragment::Later {
        return Ok(None);
    }
    let [kind, code]: [u8; 2] = packet.load(ip.payload).ok_or(Unreadable::Truncated)?;
    if !matches!(kind, SOLICITATION | ADVERTISEMENT) {
        return Ok(None);
    }
    if code != 0 || ip.hop_limit != HOP_LIMIT {
        return Err(Unreadable::Malformed);
    }
    let body: Body = packet.load(ip.payload).ok_or(Unreadable::Truncated)?;
    let target = Address::in_v6_packet(body.target).ok_or(Unreadable::Malformed)?;
    Ok(Some(match kind {
        SOLICITATION => NeighborDiscovery::Solicitation { target },
        _ => NeighborDiscovery::Advertisement { target },
    }))
}

/// Where a frame without inline tags has its IPv6 header, and a message behind one without extension headers.
const HEADER: u32 = 14;
const MESSAGE: u32 = HEADER + 40;

/// The address that a message says its sender has: the target of an advertisement, or the source of a solicitation. None when it is
/// another kind of packet, or anything stands between IPv6 header and message.
#[inline(always)]
pub fn announced<P: Packet>(packet: &P) -> Option<Address> {
    let [next, hop_limit]: [u8; 2] = packet.load(HEADER + 6)?;
    let [kind, code]: [u8; 2] = packet.load(MESSAGE)?;
    if Protocol(next) != Protocol::ICMPV6 || hop_limit != HOP_LIMIT || code != 0 {
        return None;
    }
    let at = match kind {
        ADVERTISEMENT => MESSAGE + 8,
        SOLICITATION => HEADER + 8,
        _ => return None,
    };
    let address = Address::in_v6_packet(packet.load(at)?)?;
    (!address.is_unspecified()).then_some(address)
}

/// The target of an advertisement; none when it is another kind of packet, or anything stands between IPv6 header and message.
#[inline(always)]
pub fn advertised<P: Packet>(packet: &P) -> Option<Address> {
    let [next, _]: [u8; 2] = packet.load(HEADER + 6)?;
    let body: Body = packet.load(MESSAGE)?;
    let is_advertisement = Protocol(next) == Protocol::ICMPV6 && body.kind == ADVERTISEMENT;
    if is_advertisement { Address::in_v6_packet(body.target) } else { None }
}
