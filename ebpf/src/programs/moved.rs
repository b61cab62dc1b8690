//! The parts of `from_wire` for a host port whose container has moved: it has another MAC address than its port's entries say, or another
//! port. The kernel finds it, by its route and neighbours from the bridge.

use super::fit::fits;
use super::{DnatPlan, IcmpErrorPlan, Next};
use crate::abi::translation::TupleKey;
use crate::abi::{STATION_MOVED, Station};
use crate::nat::fragments;
use crate::nat::rewrite::rewrite;
use crate::stages::{count, deliver};
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict};
use crate::wire::Packet;
use crate::{Tables, nat};

/// Whether a container is elsewhere than its port's entries say: then the kernel finds it, by its route and neighbours.
#[inline(always)]
pub(super) fn has_moved(station: &Station) -> bool {
    station.flags & STATION_MOVED != 0
}

/// Packets to a host port whose container has moved, as [`super::from_wire::dnat`] does the others.
#[inline(always)]
pub fn follow<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &DnatPlan) -> Next {
    let bytes = packet.length();
    let next = follow_stages(packet, bytes, tables, plan).into();
    count_drop(&next, here, bytes, tables);
    next
}

#[inline(always)]
fn follow_stages<P: Packet, T: Tables>(
    packet: &mut P,
    bytes: u32,
    tables: &T,
    plan: &DnatPlan,
) -> Result<Delivery, Next> {
    let mut becomes = plan.becomes;
    if nat::dnat::follow(&plan.segment, &mut becomes, bytes, tables) {
        return routed(packet, tables, plan, &becomes);
    }
    Err(if plan.segment.opens() { Next::Begin } else { Stop::Pass(PassReason::Stray).into() })
}

/// A connection's first packet to a container that has moved, as [`super::from_wire::begin`].
#[inline(always)]
pub fn begin<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &DnatPlan) -> Next {
    let bytes = packet.length();
    let mut becomes = plan.becomes;
    let begun = nat::dnat::heed(&plan.segment, plan.flags, tables).and_then(|()| {
        nat::dnat::begin(&plan.segment, &mut becomes, (here, plan.station.slot, bytes), tables)
    });
    let next = begun.map_err(Next::from).and_then(|()| routed(packet, tables, plan, &becomes)).into();
    count_drop(&next, here, bytes, tables);
    next
}

/// Makes the packet the one that its container gets, and has the kernel find that.
#[inline(always)]
fn routed<P: Packet, T: Tables>(
    packet: &mut P,
    tables: &T,
    plan: &DnatPlan,
    becomes: &TupleKey,
) -> Result<Delivery, Next> {
    fits(packet, (plan.header, &plan.segment.ip), &plan.station)?;
    let route = deliver::route_fitting((becomes.source, becomes.destination), becomes.domain, tables)?;
    fragments::remember(packet, plan.segment.key.source.is_v4(), &plan.segment, becomes, tables)?;
    deliver::address(packet, plan.macs)?;
    rewrite(packet, plan.header, &plan.segment, becomes);
    Ok(deliver::by(route))
}

/// Does what [`super::from_wire::plan_icmp_error`] has planned for a container that has moved.
#[inline(always)]
pub fn icmp_error<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: &IcmpErrorPlan,
) -> Verdict {
    let bytes = packet.length();
    let verdict = match deliver::address(packet, plan.macs) {
        Ok(()) => {
            nat::icmp_error::rewrite(packet, &plan.error, plan.source, &plan.becomes);
            Verdict::Deliver(deliver::by(plan.route))
        }
        Err(stop) => stop.into(),
    };
    count_drop(&verdict.into(), here, bytes, tables);
    verdict
}

/// Counts a packet that is dropped on its way to a container that has moved. One that gets there is counted at its port.
#[inline(always)]
fn count_drop<T: Tables>(next: &Next, here: u32, bytes: u32, tables: &T) {
    let reason = match next {
        Next::Done(Verdict::Drop(reason)) => *reason,
        Next::FragNeeded => DropReason::TooBig,
        _ => return,
    };
    count::unknown(Stop::Drop(reason), here, bytes, tables);
}
