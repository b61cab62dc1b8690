//! `from_wire`: tc ingress of an uplink, or of a bridge device, by which containers reach the node. Takes what comes to a host
//! port, or returns to a masqueraded connection, into its container. `from_tunnel` is the same for uplinks without a link layer.
//!
//! Its parts: [`dnat`]; where the container has moved those of [`super::moved`]; for a connection's first packet [`begin`]; for what has no transport header [`later_fragment`], then [`plan_icmp_error`] and
//! [`rewrite_icmp_error`]; for what a masqueraded connection gets back [`returns`], and for what one of the kernel's
//! does [`own_return`]; for a connection that the kernel has opened [`tracked`]; for what is too large [`frag_needed`].

mod later_fragment;

pub use later_fragment::later_fragment;

use super::fit::fits;
use super::moved::{self, has_moved};
use super::{DnatPlan, IcmpErrorPlan, Next, own_return, tracked};
use crate::abi::Station;
use crate::abi::translation::{MAPPING_HEEDED, NODE, OUTSIDE, TRACKED, TRACKED_MASQUERADED, TupleKey};
use crate::nat::rewrite::rewrite;
use crate::nat::segment::Segment;
use crate::nat::{claim, clone_to_host, embedded, fragments, icmp_error, masquerade, segment};
use crate::stages::{count, deliver, find, isolate};
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict};
use crate::wire::address::Macs;
use crate::wire::{EtherType, Packet, Protocol};
use crate::{Tables, nat, wire};

/// The whole program.
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let (mut plan, mut beginning) = (IcmpErrorPlan::default(), DnatPlan::default());
    let mut next = dnat(packet, here, tables, || Some(&mut beginning));
    if next == Next::Moved {
        next = moved::follow(packet, here, tables, &beginning);
        if next == Next::Begin {
            next = moved::begin(packet, here, tables, &beginning);
        }
    }
    if next == Next::Begin {
        next = begin(packet, here, tables, &beginning);
    }
    if next == Next::IcmpError {
        next = later_fragment(packet, here, tables);
    }
    if next == Next::IcmpError {
        next = plan_icmp_error(packet, here, tables, || Some(&mut plan));
        if next == Next::Moved {
            next = moved::icmp_error(packet, here, tables, &plan).into();
        }
    }
    if next == Next::IcmpError {
        next = rewrite_icmp_error(packet, here, tables, &plan).into();
    }
    if next == Next::Return {
        next = returns(packet, here, tables, &beginning);
    }
    if next == Next::OwnReturn {
        next = own_return::own_return(packet, here, tables, &beginning);
    }
    if next == Next::Tracked {
        next = tracked::inwards(packet, here, tables, &beginning);
    }
    if next == Next::FragNeeded {
        next = nat::frag_needed::send(packet, here, tables).into();
    }
    packet.unmark_outside();
    next.verdict()
}

/// Packets to a host port: the destination becomes the container. Leaves what may begin a connection to [`begin`], and what is for a
/// container that has moved to [`moved::follow`], with all that was looked up for it in `plan`.
#[inline(always)]
pub fn dnat<'a, P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut DnatPlan>,
) -> Next {
    let bytes = packet.length();
    let next = dnat_stages(packet, here, tables, plan).into();
    count_end(&next, here, bytes, tables);
    next
}

#[inline(always)]
fn dnat_stages<'a, P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut DnatPlan>,
) -> Result<Delivery, Next> {
    if !packet.is_for_this_host() {
        return Err(Stop::Pass(PassReason::NotLocal).into());
    }
    let frame = wire::frame(packet).map_err(|_| Stop::Pass(PassReason::Unmapped))?;
    let mut segment = segment::read(packet, &frame, OUTSIDE).ok_or(Next::IcmpError)?;
    // First: a host port never takes a node's port from a masqueraded connection that has it.
    let holder = tables.becomes(&segment.key).map(|(_, holder)| holder);
    let is_anew = holder == Some(TRACKED) && segment.is_tcp() && segment.opens();
    if let Some(holder) = holder
        && holder != 0
        && !is_anew
    {
        return Err(held(holder, &segment, plan));
    }
    let mapping = nat::dnat::mapping(&segment.key, tables)?;
    let from = nat::dnat::domain(packet, here, tables);
    let is_heeded = mapping.flags & MAPPING_HEEDED != 0;
    if is_anew && (is_heeded || from != OUTSIDE) {
        return Err(held(TRACKED, &segment, plan));
    }
    opened_by_programs(&segment, holder, (from, is_heeded), tables)?;
    segment.key.domain = from;
    let mut becomes = nat::dnat::becomes(&segment.key, here, &mapping)?;
    let (mut station, macs) = find::mapped(&mapping, tables)?;
    isolate::translated(segment.key.domain, mapping.bridge, &station, tables)?;
    deliver::survives(&segment.ip)?;
    find::heed_moves(&mapping, becomes.destination, &mut station, tables);
    let has_moved = has_moved(&station);
    if !has_moved && nat::dnat::follow(&segment, &mut becomes, packet.length(), tables) {
        return translate(packet, frame.payload, &segment, &becomes, (&station, macs), tables);
    }
    let plan = if has_moved || segment.opens() { plan() } else { None };
    let plan = plan.ok_or(Stop::Pass(PassReason::Stray))?;
    plan.header = frame.payload;
    plan.segment = segment;
    plan.becomes = becomes;
    (plan.station, plan.macs, plan.flags) = (station, macs, mapping.flags);
    Err(if has_moved { Next::Moved } else { Next::Begin })
}

/// Lets a packet to a host port on whose connection the programs have opened, or may.
///
/// # Errors
/// Passes what only the kernel knows, and what is claimed.
#[inline(always)]
fn opened_by_programs<T: Tables>(
    segment: &Segment,
    holder: Option<u32>,
    (from, is_heeded): (u32, bool),
    tables: &T,
) -> Result<(), Stop> {
    match holder {
        None if from == OUTSIDE && is_heeded => Err(Stop::Pass(PassReason::Unaccepted)),
        None if from == OUTSIDE => claim::check(segment, tables),
        // What the kernel has opened it may not know any more, and it would lead nothing there.
        Some(TRACKED) => {
            tables.forget_flow(&segment.key);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The part that goes on with a packet of a connection that is no host port's, or that the kernel has opened.
#[inline(always)]
fn held<'a>(holder: u32, segment: &Segment, plan: impl FnOnce() -> Option<&'a mut DnatPlan>) -> Next {
    let Some(plan) = plan() else { return Stop::Pass(PassReason::Stray).into() };
    plan.segment = *segment;
    match holder {
        NODE => Next::OwnReturn,
        TRACKED | TRACKED_MASQUERADED => Next::Tracked,
        _ => Next::Return,
    }
}

/// A connection's first packet: makes its entries.
#[inline(always)]
pub fn begin<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &DnatPlan) -> Next {
    let bytes = packet.length();
    let next = begin_stages(packet, (here, bytes), tables, plan).into();
    count_end(&next, here, bytes, tables);
    next
}

#[inline(always)]
fn begin_stages<P: Packet, T: Tables>(
    packet: &mut P,
    (here, bytes): (u32, u32),
    tables: &T,
    plan: &DnatPlan,
) -> Result<Delivery, Next> {
    let mut becomes = plan.becomes;
    nat::dnat::heed(&plan.segment, plan.flags, tables)?;
    nat::dnat::begin(&plan.segment, &mut becomes, (here, plan.station.slot, bytes), tables)?;
    translate(packet, plan.header, &plan.segment, &becomes, (&plan.station, plan.macs), tables)
}

/// Makes the packet the one that its container gets.
#[inline(always)]
fn translate<P: Packet, T: Tables>(
    packet: &mut P,
    header: u32,
    segment: &Segment,
    becomes: &TupleKey,
    (station, macs): (&Station, Macs),
    tables: &T,
) -> Result<Delivery, Next> {
    fits(packet, (header, &segment.ip), station)?;
    fragments::remember(packet, segment.key.source.is_v4(), segment, becomes, tables)?;
    deliver::address(packet, macs)?;
    rewrite(packet, header, segment, becomes);
    Ok(deliver::into_container(packet, station))
}

/// ICMP errors about packets that left by a port of the node: decides. [`Next::IcmpError`] where the plan is to be done, [`Next::Moved`]
/// where that is for a container that has moved.
#[inline(always)]
pub fn plan_icmp_error<'a, P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut IcmpErrorPlan>,
) -> Next {
    let Some(plan) = plan() else { return Stop::Pass(PassReason::Unmapped).into() };
    match plan_icmp_error_stages(packet, here, tables, plan) {
        Ok(()) if has_moved(&plan.station) => Next::Moved,
        Ok(()) => Next::IcmpError,
        Err(stop) => {
            let next = stop.into();
            count_end(&next, here, packet.length(), tables);
            next
        }
    }
}

#[inline(always)]
fn plan_icmp_error_stages<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: &mut IcmpErrorPlan,
) -> Result<(), Stop> {
    let unmapped = Stop::Pass(PassReason::Unmapped);
    if !packet.is_for_this_host() {
        return Err(Stop::Pass(PassReason::NotLocal));
    }
    let frame = wire::frame(packet).map_err(|_| unmapped)?;
    plan.error = embedded::read(packet, &frame, OUTSIDE).ok_or(unmapped)?;
    let error = &mut plan.error;
    clone_to_host::unless_clone(&frame, Protocol(error.key.protocol))?;
    error.key.domain = nat::dnat::domain(packet, here, tables);
    let (becomes, holder) = icmp_error::becomes(error, tables).ok_or(Stop::Pass(PassReason::Stray))?;
    plan.becomes = becomes;
    if holder == 0 {
        let mapping = nat::dnat::mapping(&error.key, tables)?;
        // The connection may be that of a container which had the host port before.
        let container = if error.ip.source.is_v4() { mapping.v4 } else { mapping.v6 };
        if becomes.domain != mapping.bridge || !becomes.destination.is(container) {
            return Err(Stop::Pass(PassReason::Stray));
        }
        (plan.station, plan.macs) = find::mapped(&mapping, tables)?;
        isolate::translated(error.key.domain, mapping.bridge, &plan.station, tables)?;
        find::heed_moves(&mapping, becomes.destination, &mut plan.station, tables);
    } else {
        (plan.station, plan.macs) = find::holder(&plan.becomes, holder, tables)?;
        deliver::forwards(&plan.station)?;
    }
    deliver::survives(&error.ip)?;
    deliver::fits(packet, &plan.station).map_err(|_| Stop::Drop(DropReason::TooBig))?;
    plan.source = icmp_error::sender(error, &plan.becomes);
    if has_moved(&plan.station) {
        plan.route = deliver::route_fitting((plan.source, becomes.destination), becomes.domain, tables)?;
    }
    Ok(())
}

/// Does what [`plan_icmp_error`] has planned.
#[inline(always)]
pub fn rewrite_icmp_error<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: &IcmpErrorPlan,
) -> Verdict {
    let bytes = packet.length();
    clone_to_host::clone(packet, Protocol(plan.error.key.protocol), here);
    let verdict = match deliver::address(packet, plan.macs) {
        Ok(()) => {
            icmp_error::rewrite(packet, &plan.error, plan.source, &plan.becomes);
            Verdict::Deliver(deliver::into_container(packet, &plan.station))
        }
        Err(stop) => stop.into(),
    };
    count::arrived(&verdict, here, bytes, tables);
    verdict
}

/// Packets to a port of the node that a masqueraded connection has: the destination becomes the container again.
#[inline(always)]
pub fn returns<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &DnatPlan) -> Next {
    // No container answers for an address outside.
    if isolate::is_bridge(here, tables) {
        return Stop::Pass(PassReason::Stray).into();
    }
    let bytes = packet.length();
    let next = returns_stages(packet, &plan.segment, (here, bytes), tables).into();
    count_end(&next, here, bytes, tables);
    next
}

#[inline(always)]
fn returns_stages<P: Packet, T: Tables>(
    packet: &mut P,
    segment: &Segment,
    (here, bytes): (u32, u32),
    tables: &T,
) -> Result<Delivery, Next> {
    let stray = Stop::Pass(PassReason::Stray);
    let frame = wire::frame(packet).map_err(|_| stray)?;
    clone_to_host::unless_clone(&frame, segment.ip.protocol)?;
    let (becomes, holder) = tables.becomes(&segment.key).ok_or(stray)?;
    let (station, macs) = find::holder(&becomes, holder, tables)?;
    deliver::forwards(&station)?;
    masquerade::follow(segment, &becomes, bytes, tables)?;
    deliver::survives(&segment.ip).map_err(|_| Stop::Drop(DropReason::Expired))?;
    fits(packet, (frame.payload, &segment.ip), &station)?;
    fragments::remember(packet, frame.ether_type == EtherType::IPV4, segment, &becomes, tables)?;
    clone_to_host::clone(packet, segment.ip.protocol, here);
    deliver::address(packet, macs)?;
    rewrite(packet, frame.payload, segment, &becomes);
    Ok(deliver::into_container(packet, &station))
}

/// Counts a packet whose way ends, also by its size, at its receiver: `here` has no counters.
#[inline(always)]
fn count_end<T: Tables>(next: &Next, here: u32, bytes: u32, tables: &T) {
    // Verifier: one call for all ends.
    let verdict = match next {
        Next::Done(verdict) => *verdict,
        Next::FragNeeded => Verdict::Drop(DropReason::TooBig),
        _ => return,
    };
    count::arrived(&verdict, here, bytes, tables);
}
