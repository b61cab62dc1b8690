//! Fragments: the identification of their datagram, and later ones.

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

/// A later fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaterFragment {
    /// Its IP header.
    pub ip: Ip,
    /// See [`identification`].
    pub identification: [u16; 2],
}

/// The identification of a fragment's datagram: 16 bits for IPv4, 32 for IPv6, in network order. None for a whole packet, and for one
/// whose fragment header stands behind other extension headers.
///
/// Verifier: read from the packet again, so that being a fragment is no state of all that comes between.
///
/// # Errors
/// [`Unreadable::Truncated`].
#[inline(always)]
pub fn identification<P: Packet>(packet: &P, is_v4: bool) -> Result<Option<[u16; 2]>, Unreadable> {
    if is_v4 {
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

/// Reads a later fragment. None for any other packet, and for one that cannot be read.
#[inline(always)]
pub fn later_fragment<P: Packet>(packet: &mut P) -> Option<(Frame, LaterFragment)> {
    let frame = frame(packet).ok()?;
    if frame.is_tagged() || !matches!(frame.ether_type, EtherType::IPV4 | EtherType::IPV6) {
        return None;
    }
    let mut linear = false;
    // Verifier: one call, run twice at most, as in `read_flow`.
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
    let identification = identification(packet, frame.ether_type == EtherType::IPV4)?;
    Ok(identification.map(|identification| LaterFragment { ip, identification }))
}
