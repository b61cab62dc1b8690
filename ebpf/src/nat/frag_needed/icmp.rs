//! What the errors of both families have in common.

use crate::wire::checksum::{Change, whole};
use crate::wire::packet::Packet;

/// Offset of the packet's IP header: tagged packets are never translated.
pub(super) const PAYLOAD: u32 = 14;

/// An error's header of ICMP.
pub(super) type Icmp = [u16; 4];
pub(super) const ICMP_BYTES: u32 = size_of::<Icmp>() as u32;

/// Writes the ICMP header in front of the embedded packet at `above`; the checksum covers `others`, too.
#[inline(always)]
pub(super) fn write_icmp<P: Packet>(packet: &mut P, above: u32, icmp: Icmp, others: Change) -> Option<()> {
    let [kind, _, high, low] = icmp;
    let sum = whole(others.halves(icmp));
    packet.store(above - ICMP_BYTES, &[kind, sum, high, low]).then_some(())
}
