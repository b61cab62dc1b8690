//! The IPv6 header and the extension headers behind it (RFC 8200).

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::Unreadable;
use super::ip::{Fragment, Ip, Protocol};
use crate::wire::address::Address;
use crate::wire::packet::Packet;

/// Extension headers that are walked; a packet with more is left to the kernel.
pub const MAX_EXTENSIONS: usize = 6;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MORE_FRAGMENTS: u16 = 1;
const OFFSET_MASK: u16 = 0xfff8;

/// The header as it stands in the frame; half words in network order.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct Header {
    /// Version in the upper four bits, traffic class, flow label.
    version_class: u16,
    flow_label: u16,
    payload_bytes: u16,
    next: u8,
    hop_limit: u8,
    source: [u16; 8],
    destination: [u16; 8],
}

/// How every extension header begins; `offset_flags` in network order and in the fragment header only.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct Extension {
    next: u8,
    length: u8,
    offset_flags: u16,
}

/// Reads the header at `offset` and walks to what follows its extension headers.
///
/// # Errors
/// [`Unreadable::Truncated`] when any of them ends too soon, [`Unreadable::Malformed`] for another version, a
/// mapped IPv4 address, or more than [`MAX_EXTENSIONS`] extension headers.
#[inline(always)]
pub fn ipv6<P: Packet>(packet: &P, offset: u32) -> Result<Ip, Unreadable> {
    let header: Header = packet.load(offset).ok_or(Unreadable::Truncated)?;
    if u16::from_be(header.version_class) >> 12 != 6 {
        return Err(Unreadable::Malformed);
    }
    let source = Address::in_v6_packet(header.source).ok_or(Unreadable::Malformed)?;
    let destination = Address::in_v6_packet(header.destination).ok_or(Unreadable::Malformed)?;
    let mut ip = Ip {
        source,
        destination,
        protocol: Protocol(header.next),
        hop_limit: header.hop_limit,
        fragment: Fragment::Whole,
        payload: offset + size_of::<Header>() as u32,
    };
    for _ in 0..=MAX_EXTENSIONS {
        let Some((next, bytes)) = extension(packet, &mut ip)? else {
            return Ok(ip);
        };
        ip.protocol = Protocol(next);
        ip.payload += bytes;
    }
    Err(Unreadable::Malformed)
}

/// The header after the extension header at `ip.payload` and that one's length in bytes; none where there is none.
#[inline(always)]
fn extension<P: Packet>(packet: &P, ip: &mut Ip) -> Result<Option<(u8, u32)>, Unreadable> {
    let kind = ip.protocol.0;
    // Behind a later fragment's header there is payload, whatever "next header" says.
    if ip.fragment == Fragment::Later
        || !matches!(kind, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS)
    {
        return Ok(None);
    }
    let extension: Extension = packet.load(ip.payload).ok_or(Unreadable::Truncated)?;
    let bytes = match kind {
        FRAGMENT => {
            let offset_flags = u16::from_be(extension.offset_flags);
            ip.fragment = match (offset_flags & OFFSET_MASK, offset_flags & MORE_FRAGMENTS) {
                (0, 0) => Fragment::Whole,
                (0, _) => Fragment::First,
                _ => Fragment::Later,
            };
            8
        }
        // RFC 4302: in words of four bytes, minus two.
        AUTHENTICATION => (u32::from(extension.length) + 2) * 4,
        // RFC 8200: in words of eight bytes, not counting the first.
        _ => (u32::from(extension.length) + 1) * 8,
    };
    Ok(Some((extension.next, bytes)))
}
