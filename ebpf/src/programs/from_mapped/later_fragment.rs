//! Later fragments of translated datagrams.

use super::count_end;
use crate::Tables;
use crate::abi::HandedOn;
use crate::nat::fragments;
use crate::programs::Next;
use crate::stages::deliver;
use crate::verdict::{Delivery, DropReason, PassReason, Stop};
use crate::wire::{self, Frame, LaterFragment, Packet};

/// Later fragments, which have no transport header: as their datagram's first one. [`Next::IcmpError`] for other packets.
#[inline(always)]
pub fn later_fragment<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    HandedOn { port, .. }: &HandedOn,
) -> Next {
    let bytes = packet.length();
    let Some((frame, fragment)) = wire::later_fragment(packet) else { return Next::IcmpError };
    let next = later_fragment_stages(packet, &frame, &fragment, port.bridge, tables).into();
    count_end(&next, port, here, bytes, tables);
    next
}

#[inline(always)]
fn later_fragment_stages<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    fragment: &LaterFragment,
    bridge: u32,
    tables: &T,
) -> Result<Delivery, Stop> {
    let becomes = fragments::becomes(fragment, bridge, tables)?;
    let ends = (becomes.source, becomes.destination);
    let routed = deliver::routed(packet, frame, &fragment.ip, ends, bridge, tables);
    // The kernel would cut it once more, and send it from the container's own address.
    let delivery = routed.map_err(|stop| match stop {
        Stop::Pass(PassReason::TooBig) => Stop::Drop(DropReason::Uncut),
        stop => stop,
    })?;
    fragments::rewrite(packet, frame, &fragment.ip, &becomes);
    Ok(delivery)
}
