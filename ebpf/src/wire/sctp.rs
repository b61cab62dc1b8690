//! SCTP's checksum after a change of ports (RFC 9260 section 3.1).

use crate::wire::crc32c::updated_by;
use crate::wire::packet::{Packet, PortsUpdate};

/// Where the checksum is in an SCTP header; it has four bytes.
pub const SCTP_CHECKSUM: u32 = 8;
/// Bytes of the two ports.
const PORTS_BYTES: u32 = 4;

/// Where the length is in an IPv4 header, all of the packet's, and in one of IPv6, of what follows the header.
const V4_TOTAL: u32 = 2;
const V6_PAYLOAD: u32 = 4;
const V6_HEADER_BYTES: u32 = 40;

impl PortsUpdate {
    /// Updates the checksum.
    #[inline(always)]
    pub fn apply<P: Packet>(self, packet: &mut P) {
        let behind = self.behind(packet);
        packet.edit(self.field, |sum: &mut [u16; 2]| {
            let [low, high] = sum.map(u16::from_le);
            let updated = updated_by(u32::from(low) | u32::from(high) << 16, self.ports, behind);
            *sum = [updated as u16, (updated >> 16) as u16].map(u16::to_le);
        });
    }

    /// Bytes of the SCTP packet behind its ports, by the IP header: a frame may be padded.
    #[inline(always)]
    fn behind<P: Packet>(&self, packet: &P) -> u32 {
        let half = |at: u32| u16::from_be(packet.load(self.header + at).unwrap_or_default());
        let is_v4 = half(0) >> 12 == 4;
        let bytes =
            if is_v4 { u32::from(half(V4_TOTAL)) } else { u32::from(half(V6_PAYLOAD)) + V6_HEADER_BYTES };
        bytes.wrapping_sub(self.field - SCTP_CHECKSUM + PORTS_BYTES - self.header)
    }
}
