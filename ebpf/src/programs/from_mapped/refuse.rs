//! Packets of translated connections that do not fit the way out.

use super::count_end;
use crate::Tables;
use crate::abi::HandedOn;
use crate::nat::frag_needed;
use crate::tables::Lane;
use crate::verdict::{DropReason, PassReason, Verdict};
use crate::wire::Packet;

/// A packet of a translated connection that does not fit the way out. The kernel tells its sender that it is too large, or would cut it and
/// send it from the container's own address. No program cuts, so the sender of one that may be cut is told here.
#[inline(always)]
pub fn refuse<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    HandedOn { port, .. }: &HandedOn,
) -> Verdict {
    let is_told = frag_needed::may_be_cut(packet);
    let ends = if is_told { Verdict::Drop(DropReason::TooBig) } else { Verdict::Pass(PassReason::TooBig) };
    count_end(&ends.into(), port, here, packet.length(), tables);
    if !is_told {
        return ends;
    }
    // It leaves by the container's own port, and is the node's word.
    packet.mark_judged();
    let verdict = frag_needed::send(packet, here, tables);
    if let Verdict::Deliver(_) = verdict {
        tables.count(port.slot, Lane::ToFast, packet.length());
    }
    verdict
}
