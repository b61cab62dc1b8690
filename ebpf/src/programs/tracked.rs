//! The part of `from_wire` for connections of host ports that the kernel has opened ([`carry`]): translated as connection tracking does, or left to it.

use super::{DnatPlan, Next};
use crate::Tables;
use crate::abi::STATION_MOVED;
use crate::abi::translation::OUTSIDE;
use crate::nat::rewrite::rewrite;
use crate::nat::segment::Segment;
use crate::nat::{carry, dnat, masquerade};
use crate::stages::{count, deliver, find, isolate};
use crate::verdict::{Delivery, PassReason, Stop, Verdict};
use crate::wire;
use crate::wire::Packet;

/// What a client sends: into the container.
#[inline(always)]
pub fn inwards<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &DnatPlan) -> Next {
    // No container answers for a client outside.
    if isolate::is_bridge(here, tables) {
        return Stop::Pass(PassReason::Stray).into();
    }
    let bytes = packet.length();
    let verdict: Verdict = inwards_stages(packet, &plan.segment, (here, bytes), tables).into();
    count::arrived(&verdict, here, bytes, tables);
    verdict.into()
}

#[inline(always)]
fn inwards_stages<P: Packet, T: Tables>(
    packet: &mut P,
    segment: &Segment,
    (here, bytes): (u32, u32),
    tables: &T,
) -> Result<Delivery, Stop> {
    let stray = Stop::Pass(PassReason::Stray);
    let frame = wire::frame(packet).map_err(|_| stray)?;
    let (becomes, _) = tables.becomes(&segment.key).ok_or(stray)?;
    let mapping = dnat::mapping(&segment.key, tables)?;
    if !mapping.leads_as(&becomes) {
        return Err(stray);
    }
    let (mut station, macs) = find::mapped(&mapping, tables)?;
    find::heed_moves(&mapping, becomes.destination, &mut station, tables);
    if station.flags & STATION_MOVED != 0 {
        return Err(Stop::Pass(PassReason::UnknownStation));
    }
    carry::check(segment, (frame.payload, &becomes), [here, station.ifindex], tables)?;
    isolate::translated(OUTSIDE, becomes.domain, &station, tables)?;
    deliver::survives(&segment.ip)?;
    deliver::forwarded_fits(packet, (frame.payload, &segment.ip), &station)?;
    masquerade::follow(segment, &becomes, bytes, tables)?;
    deliver::address(packet, macs)?;
    rewrite(packet, frame.payload, segment, &becomes);
    Ok(deliver::into_container(packet, &station))
}
