//! "Packet too big" (RFC 4443 section 3.2).

use super::icmp::{ICMP_BYTES, PAYLOAD, write_icmp};
use crate::wire::Protocol;
use crate::wire::address::Address;
use crate::wire::packet::{PIECE_BYTES, Packet};

/// Half words of a header up to its addresses, and those of one of them.
type Head = [u16; 4];
type End = [u16; 8];

const HEAD_BYTES: u32 = size_of::<Head>() as u32;
const END_BYTES: u32 = size_of::<End>() as u32;

/// The pieces that are embedded: enough to tell the connection.
const PIECES: u32 = 8;
/// Where they begin.
const ABOVE: u32 = PAYLOAD + HEAD_BYTES + 2 * END_BYTES + ICMP_BYTES;
const BYTES: u32 = ABOVE + PIECES * PIECE_BYTES;

/// No header of the packet begins at this offset or behind it: no parser looks there.
const PAST: u32 = 1024;

/// The least MTU of an IPv6 link (RFC 8200 section 5).
const LEAST_MTU: u32 = 1280;

const SOURCE: u32 = PAYLOAD + HEAD_BYTES;
const DESTINATION: u32 = SOURCE + END_BYTES;
const VERSION: u16 = 0x6000_u16.to_be();
const ICMP: u16 = Protocol::ICMPV6.0 as u16;
const HOPS: u16 = 64;
const KIND: u16 = 0x0200_u16.to_be();

/// Every packet that is too large is long enough.
const _: () = assert!(BYTES + PAST <= PAYLOAD + LEAST_MTU);

/// Turns `packet` into the error about it, except for the Ethernet addresses. None where no error is sent.
#[inline(always)]
pub(super) fn write<P: Packet>(packet: &mut P, mtu: u32) -> Option<()> {
    let mtu = if mtu < LEAST_MTU { LEAST_MTU } else { mtu };
    if packet.length() <= PAYLOAD + mtu || !packet.linearize(DESTINATION + END_BYTES) {
        return None;
    }
    let asker: End = packet.load(SOURCE)?;
    if !Address::in_v6_packet(asker)?.is_error_destination() {
        return None;
    }
    let embedded = packet.embed(ABOVE, PIECES, PAST)?;
    let bytes = ((BYTES - DESTINATION - END_BYTES) as u16).to_be();
    if !packet.store(PAYLOAD, &[VERSION, 0, bytes, (ICMP << 8 | HOPS).to_be()]) {
        return None;
    }
    // From the embedded packet: a program's stack is small.
    let shift = ABOVE - PAYLOAD;
    let mut covered = embedded.halves([bytes, ICMP.to_be()]);
    for (from, to) in [(DESTINATION, SOURCE), (SOURCE, DESTINATION)] {
        let end: End = packet.load(shift + from)?;
        covered = covered.halves(end);
        if !packet.store(to, &end) {
            return None;
        }
    }
    let icmp = [KIND, 0, ((mtu >> 16) as u16).to_be(), (mtu as u16).to_be()];
    write_icmp(packet, ABOVE, icmp, covered)
}
