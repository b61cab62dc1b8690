//! The IPv4 header, options included (RFC 791).

use super::Unreadable;
use super::ip::{Fragment, Ip, Protocol};
use crate::address::Address;
use crate::packet::Packet;

const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;
const WORD_BYTES: u32 = 4;
const MIN_HEADER_WORDS: u32 = 5;

/// Reads the header at `offset`.
///
/// # Errors
/// [`Unreadable::Truncated`] when it ends too soon, [`Unreadable::Malformed`] for another version, a header of less
/// than five words, or a total length that does not hold the header.
#[inline(always)]
pub fn ipv4<P: Packet>(packet: &P, offset: u32) -> Result<Ip, Unreadable> {
    let header = packet.load::<20>(offset).ok_or(Unreadable::Truncated)?;
    let [version_words, _, l0, l1, _, _, f0, f1, hop_limit, protocol, _, _, rest @ ..] = header;
    let [s0, s1, s2, s3, d0, d1, d2, d3] = rest;
    let words = u32::from(version_words & 0x0f);
    let total = u32::from(u16::from_be_bytes([l0, l1]));
    // A GSO packet of more than 64 KiB has a total length of 0 (BIG TCP, Linux 6.3).
    if version_words >> 4 != 4 || words < MIN_HEADER_WORDS || (total != 0 && total < words * WORD_BYTES) {
        return Err(Unreadable::Malformed);
    }
    let flags_offset = u16::from_be_bytes([f0, f1]);
    Ok(Ip {
        source: Address::from_v4([s0, s1, s2, s3]),
        destination: Address::from_v4([d0, d1, d2, d3]),
        protocol: Protocol(protocol),
        hop_limit,
        fragment: match (flags_offset & OFFSET_MASK, flags_offset & MORE_FRAGMENTS) {
            (0, 0) => Fragment::Whole,
            (0, _) => Fragment::First,
            _ => Fragment::Later,
        },
        payload: offset + words * WORD_BYTES,
    })
}
