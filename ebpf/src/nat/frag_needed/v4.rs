//! "Fragmentation needed" (RFC 792; RFC 1191 section 4).

use super::icmp::{ICMP_BYTES, PAYLOAD, write_icmp};
use crate::wire::address::Address;
use crate::wire::checksum::{Change, whole};
use crate::wire::packet::{PIECE_BYTES, Packet};

/// Half words of a header without options, up to its addresses, and those of them.
type Head = [u16; 6];
type Ends = [u16; 4];

const HEAD_BYTES: u32 = size_of::<Head>() as u32;
const IP_BYTES: u32 = HEAD_BYTES + size_of::<Ends>() as u32;

/// The pieces that are embedded: the longest header, and more than the eight bytes behind it that RFC 792 requires.
const PIECES: u32 = 5;
/// Where they begin.
const ABOVE: u32 = PAYLOAD + IP_BYTES + ICMP_BYTES;
const BYTES: u32 = ABOVE + PIECES * PIECE_BYTES;

/// No header of the packet begins at this offset or behind it: Ethernet's and the longest IPv4 one end before.
const PAST: u32 = 76;

const DONT_FRAGMENT: u16 = 0x4000_u16.to_be();
/// Version, five words, and the precedence "internetwork control" (RFC 1812 section 4.3.2.5).
const VERSION_SERVICE: u16 = 0x45c0_u16.to_be();
/// Time to live, and ICMP.
const HOPS_PROTOCOL: u16 = 0x4001_u16.to_be();
/// "Destination unreachable", code "fragmentation needed".
const KIND: u16 = 0x0304_u16.to_be();

/// Turns `packet` into the error about it, except for the Ethernet addresses. None where no error is sent.
#[inline(always)]
pub(super) fn write<P: Packet>(packet: &mut P, mtu: u32) -> Option<()> {
    if packet.length() < BYTES + PAST || !packet.linearize(PAYLOAD + IP_BYTES) {
        return None;
    }
    let [a, b, c, d]: Ends = packet.load(PAYLOAD + HEAD_BYTES)?;
    if !Address::from_v4([a, b]).is_error_destination() {
        return None;
    }
    let embedded = packet.embed(ABOVE, PIECES, PAST)?;
    let ends: Ends = [c, d, a, b];
    let [version, bytes, fragment, hops] =
        [VERSION_SERVICE, ((BYTES - PAYLOAD) as u16).to_be(), DONT_FRAGMENT, HOPS_PROTOCOL];
    let sum = whole(Change::NONE.halves([version, bytes, fragment, hops]).halves(ends));
    let head: Head = [version, bytes, 0, fragment, hops, sum];
    if !packet.store(PAYLOAD, &head) || !packet.store(PAYLOAD + HEAD_BYTES, &ends) {
        return None;
    }
    write_icmp(packet, ABOVE, [KIND, 0, 0, (mtu as u16).to_be()], embedded)
}
