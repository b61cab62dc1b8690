//! The IPv4 header, options included (RFC 791).

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::Unreadable;
use super::ip::{Fragment, Ip, Protocol};
use crate::wire::address::Address;
use crate::wire::packet::Packet;

const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;
const WORD_BYTES: u32 = 4;
const MIN_HEADER_WORDS: u32 = 5;

/// The header as it stands in the frame, without options; half words in network order.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct Header {
    /// Version in the upper four bits, length in words in the lower.
    version_words: u8,
    service: u8,
    total_bytes: u16,
    identification: u16,
    flags_offset: u16,
    time_to_live: u8,
    protocol: u8,
    checksum: u16,
    source: [u16; 2],
    destination: [u16; 2],
}

/// Reads the header at `offset`.
///
/// # Errors
/// [`Unreadable::Truncated`] when it ends too soon, [`Unreadable::Malformed`] for another version, a header of less
/// than five words, or a total length that does not hold the header.
#[inline(always)]
pub fn ipv4<P: Packet>(packet: &P, offset: u32) -> Result<Ip, Unreadable> {
    let header: Header = packet.load(offset).ok_or(Unreadable::Truncated)?;
    let words = u32::from(header.version_words & 0x0f);
    let total = u32::from(u16::from_be(header.total_bytes));
    // A GSO packet of more than 64 KiB has a total length of 0 (BIG TCP, Linux 6.3).
    if header.version_words >> 4 != 4
        || words < MIN_HEADER_WORDS
        || (total != 0 && total < words * WORD_BYTES)
    {
        return Err(Unreadable::Malformed);
    }
    let flags_offset = u16::from_be(header.flags_offset);
    Ok(Ip {
        source: Address::from_v4(header.source),
        destination: Address::from_v4(header.destination),
        protocol: Protocol(header.protocol),
        hop_limit: header.time_to_live,
        fragment: match (flags_offset & OFFSET_MASK, flags_offset & MORE_FRAGMENTS) {
            (0, 0) => Fragment::Whole,
            (0, _) => Fragment::First,
            _ => Fragment::Later,
        },
        payload: offset + words * WORD_BYTES,
    })
}
