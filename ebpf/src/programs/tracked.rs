//! The parts of `from_wire` and `from_mapped` for connections of host ports that the kernel has opened ([`carry`]): translated as connection tracking does,
//! or left to it.

use super::{BeginPlan, DnatPlan, Next, from_mapped};
use crate::Tables;
use crate::abi::translation::OUTSIDE;
use crate::abi::STATION_MOVED;
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

/// What the container answers: out of the node.
#[inline(always)]
pub fn outwards<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &BeginPlan) -> Next {
    let bytes = packet.length();
    let next = outwards_stages(packet, plan, bytes, tables).into();
    from_mapped::count_end(&next, &plan.port, here, bytes, tables);
    next
}

#[inline(always)]
fn outwards_stages<P: Packet, T: Tables>(
    packet: &mut P,
    BeginPlan { segment, header, .. }: &BeginPlan,
    bytes: u32,
    tables: &T,
) -> Result<Delivery, Stop> {
    let to_node = Stop::Pass(PassReason::ToHost);
    let (becomes, _) = tables.becomes(&segment.key).ok_or(to_node)?;
    deliver::survives(&segment.ip)?;
    // As the kernel, which translates an answer behind its routing.
    let (ends, bridge) = ((segment.key.source, becomes.destination), segment.key.domain);
    let route = deliver::route(packet, (*header, &segment.ip), ends, bridge, tables)?;
    carry::check(segment, (*header, &becomes), [bridge, route.ifindex], tables)?;
    masquerade::follow(segment, &becomes, bytes, tables)?;
    rewrite(packet, *header, segment, &becomes);
    Ok(deliver::by(route))
}
