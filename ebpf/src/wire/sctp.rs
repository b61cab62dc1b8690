//! What SCTP's checksum has to make up for where a port becomes another one (RFC 9260 section 3.1).

use crate::wire::crc32c::updated_by;
use crate::wire::packet::Packet;

/// Where the checksum is in an SCTP header; it has four bytes.
pub const SCTP_CHECKSUM: u32 = 8;
/// Bytes of the two ports.
const PORTS_BYTES: u32 = 4;

/// Where the length is in an IPv4 header, all of the packet's, and in one of IPv6, of what follows the header.
const V4_TOTAL: u32 = 2;
const V6_PAYLOAD: u32 = 4;
const V6_HEADER_BYTES: u32 = 40;

/// See above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortsMending {
    /// Offset of the IP header.
    pub header: u32,
    /// Offset of the checksum.
    pub field: u32,
    /// The old ports and the new ones, each bit added, the first byte lowest.
    pub ports: u32,
}

impl PortsMending {
    /// Makes the checksum fit.
    #[inline(always)]
    pub fn make_good<P: Packet>(self, packet: &mut P) {
        let behind = self.behind(packet);
        packet.edit(self.field, |sum: &mut [u16; 2]| {
            let [low, high] = sum.map(u16::from_le);
            let mended = updated_by(u32::from(low) | u32::from(high) << 16, self.ports, behind);
            *sum = [mended as u16, (mended >> 16) as u16].map(u16::to_le);
        });
    }

    /// Bytes of the SCTP packet behind its ports, by the IP header's word: a frame may have been filled up.
    #[inline(always)]
    fn behind<P: Packet>(&self, packet: &P) -> u32 {
        let half = |at: u32| u16::from_be(packet.load(self.header + at).unwrap_or_default());
        let is_v4 = half(0) >> 12 == 4;
        let bytes =
            if is_v4 { u32::from(half(V4_TOTAL)) } else { u32::from(half(V6_PAYLOAD)) + V6_HEADER_BYTES };
        bytes.wrapping_sub(self.field - SCTP_CHECKSUM + PORTS_BYTES - self.header)
    }
}
