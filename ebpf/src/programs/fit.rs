//! Whether a packet fits its container's link, for the programs that answer one that does not.

use super::Next;
use crate::abi::Station;
use crate::stages::deliver;
use crate::wire::{Ip, Packet};

/// Lets a packet on if it fits its container's link.
///
/// # Errors
/// [`Next::FragNeeded`]; [`crate::nat::frag_needed::send`] has to know by how much.
#[inline(always)]
pub(super) fn fits<P: Packet>(
    packet: &mut P,
    (header, ip): (u32, &Ip),
    station: &Station,
) -> Result<(), Next> {
    deliver::forwarded_fits(packet, (header, ip), station).map_err(|_| {
        packet.leave_note(station.mtu);
        Next::FragNeeded
    })
}
