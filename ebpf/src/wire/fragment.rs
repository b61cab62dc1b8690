//! A fragment of a datagram: which datagram's, and what follows its first one.

use super::ethernet::{EtherType, Frame, frame};
use super::ip::{Fragment, Ip};
use super::network::{Network, network};
use super::{HEADERS_BYTES, Unreadable};
use crate::wire::packet::Packet;

/// Where a frame's payload begins that has no tag among its bytes.
const PAYLOAD: u32 = 14;
/// IPv4: where the identification is, and behind it the flags and the offset.
const V4_IDENTIFICATION: u32 = 4;
const V4_FRAGMENTED: u16 = 0x3fff_u16.to_be();
/// IPv6: where the type of the next header is, and how long the header is.
const V6_NEXT: u32 = 6;
const V6_BYTES: u32 = 40;
const V6_FRAGMENT: u8 = 44;
const V6_FRAGMENTED: u16 = 0xfff9_u16.to_be();
/// IPv6: where the payload is behind a fragment header that no other extension header is in front of.
pub const V6_PAYLOAD: u32 = PAYLOAD + V6_BYTES + 8;

/// A fragment that has no transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaterFragment {
    /// Its IP header.
    pub ip: Ip,
    /// See [`identification`].
    pub identification: [u16; 2],
}

/// The identification of the datagram that a packet is a fragment of: of 16 bits for IPv4, of 32 for IPv6, in network order.
/// None for a whole packet, and for one whose fragment header stands behind other extension headers.
///
/// Verifier: read from the packet once more, so that being a fragment is no state of all that comes between.
///
/// # Errors
/// [`Unreadable::Truncated`].
#[inline(always)]
pub fn identification<P: Packet>(packet: &P, frame: &Frame) -> Result<Option<[u16; 2]>, Unreadable> {
    if frame.ether_type == EtherType::IPV4 {
        let [identification, flags_offset]: [u16; 2] =
            packet.load(PAYLOAD + V4_IDENTIFICATION).ok_or(Unreadable::Truncated)?;
        return Ok((flags_offset & V4_FRAGMENTED != 0).then_some([identification, 0]));
    }
    let next: u16 = packet.load(PAYLOAD + V6_NEXT).ok_or(Unreadable::Truncated)?;
    if next.to_ne_bytes()[0] != V6_FRAGMENT {
        return Ok(None);
    }
    let [_, offset_flags, high, low]: [u16; 4] =
        packet.load(PAYLOAD + V6_BYTES).ok_or(Unreadable::Truncated)?;
    Ok((offset_flags & V6_FRAGMENTED != 0).then_some([high, low]))
}

/// Reads a later fragment. None for anything else and for what cannot be read.
#[inline(always)]
pub fn later_fragment<P: Packet>(packet: &mut P) -> Option<(Frame, LaterFragment)> {
    let frame = frame(packet).ok()?;
    if frame.is_tagged() || !matches!(frame.ether_type, EtherType::IPV4 | EtherType::IPV6) {
        return None;
    }
    let mut linear = false;
    // One place that reads, gone through twice at most: as in `flow`.
    loop {
        match attempt(packet, &frame) {
            Ok(fragment) => return fragment.map(|fragment| (frame, fragment)),
            Err(Unreadable::Truncated) if !linear && packet.linearize(HEADERS_BYTES) => linear = true,
            Err(_) => return None,
        }
    }
}

#[inline(always)]
fn attempt<P: Packet>(packet: &P, frame: &Frame) -> Result<Option<LaterFragment>, Unreadable> {
    let ip = match network(packet, frame)? {
        Network::Ip(ip) if ip.fragment == Fragment::Later => ip,
        _ => return Ok(None),
    };
    let identification = identification(packet, frame)?;
    Ok(identification.map(|identification| LaterFragment { ip, identification }))
}
