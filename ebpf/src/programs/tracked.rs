//! The part of `from_wire` for connections that the kernel has opened ([`carry`]), by a host port or masqueraded: translated as connection tracking does, or left to it.

use super::{DnatPlan, Next};
use crate::Tables;
use crate::abi::translation::{OUTSIDE, TRACKED_MASQUERADED, TupleKey};
use crate::abi::{STATION_MOVED, Station};
use crate::nat::rewrite::rewrite;
use crate::nat::segment::Segment;
use crate::nat::{carry, dnat, masquerade};
use crate::stages::{count, deliver, find, isolate};
use crate::verdict::{Delivery, PassReason, Stop, Verdict};
use crate::wire;
use crate::wire::Packet;
use crate::wire::address::Macs;

/// What a client sends, or who is asked by a container answers: into the container.
#[inline(always)]
pub fn inwards<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &DnatPlan) -> Next {
    // No container is outside.
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
    let (becomes, holder) = tables.becomes(&segment.key).ok_or(stray)?;
    let (station, macs) = if holder == TRACKED_MASQUERADED {
        find::resident(&becomes, tables)?
    } else {
        led(segment, &becomes, tables)?
    };
    carry::check(segment, (frame.payload, &becomes), [here, station.ifindex], tables)?;
    if holder == TRACKED_MASQUERADED {
        deliver::forwards(&station)?;
    } else {
        isolate::translated(OUTSIDE, becomes.domain, &station, tables)?;
    }
    deliver::survives(&segment.ip)?;
    deliver::forwarded_fits(packet, (frame.payload, &segment.ip), &station)?;
    masquerade::follow(segment, &becomes, bytes, tables)?;
    deliver::address(packet, macs)?;
    rewrite(packet, frame.payload, segment, &becomes);
    Ok(deliver::into_container(packet, &station))
}

/// The container to which a host port leads, as the connection does.
#[inline(always)]
fn led<T: Tables>(segment: &Segment, becomes: &TupleKey, tables: &T) -> Result<(Station, Macs), Stop> {
    let mapping = dnat::mapping(&segment.key, tables)?;
    if !mapping.leads_as(becomes) {
        return Err(Stop::Pass(PassReason::Stray));
    }
    let (mut station, macs) = find::mapped(&mapping, tables)?;
    find::heed_moves(&mapping, becomes.destination, &mut station, tables);
    if station.flags & STATION_MOVED != 0 {
        return Err(Stop::Pass(PassReason::UnknownStation));
    }
    Ok((station, macs))
}
