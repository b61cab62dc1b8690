//! `from_mapped`: tc ingress of a container's host veth end, behind `from_container`, where host ports lead to the container
//! or it is masqueraded. Takes what the container sends to the node for a translated connection out of the node.
//!
//! Its parts: [`reply`]; for what has no transport header [`later_fragment`], then [`plan_icmp_error`] and
//! [`rewrite_icmp_error`]; for a masqueraded connection's first packet [`plan_begin`] and [`begin`]. Before there is an entry,
//! whatever is in doubt is passed untouched: the kernel's own rule masquerades it, and its connection for life.

use super::{BeginPlan, IcmpErrorPlan, Next};
use crate::abi::{
    AFFINITY_FAST, NO_SLOT, PORT_BLOCKED, PORT_MAPPED, PORT_MASQUERADED, PORT_SHARED, Port, PortKey,
};
use crate::nat::rewrite::rewrite;
use crate::nat::segment::Segment;
use crate::nat::{embedded, fragments, icmp_error, masquerade, segment, snat};
use crate::stages::port::Missing;
use crate::stages::{count, deliver, find, flow_affinity, guard, mac_filter, parse, port};
use crate::tables::{Lane, Route};
use crate::verdict::{Delivery, PassReason, Stop, Verdict, Way};
use crate::wire::{EtherType, Frame, LaterFragment, Packet, Protocol};
use crate::{Tables, nat, wire};

/// Of no translated connection: for the node's own stack.
const TO_NODE: Stop = Stop::Pass(PassReason::ToHost);

/// The whole program.
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let (mut error, mut beginning) = (IcmpErrorPlan::default(), BeginPlan::default());
    let mut next = reply(packet, here, tables, || Some(&mut beginning));
    if next == Next::IcmpError {
        next = later_fragment(packet, here, tables);
    }
    if next == Next::IcmpError {
        next = plan_icmp_error(packet, here, tables, || Some(&mut error));
    }
    if next == Next::IcmpError {
        next = rewrite_icmp_error(packet, here, tables, &error);
    }
    if next == Next::Begin {
        next = plan_begin(packet, here, tables, || Some(&mut beginning));
    }
    if next == Next::Begin {
        next = begin(packet, here, tables, &beginning);
    }
    guard::unmark_unless_passed(packet, next.verdict())
}

/// Packets of connections that are translated already: the source becomes the node. Leaves what may begin a masqueraded
/// connection to [`plan_begin`], with all that was looked up for it in `plan`.
#[inline(always)]
pub fn reply<'a, P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut BeginPlan>,
) -> Next {
    let (frame, port) = match entry(packet, here, tables) {
        Ok(entry) => entry,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables).into(),
    };
    let bytes = packet.length();
    let next = reply_stages(packet, &frame, (here, &port), bytes, tables, plan).into();
    count_end(&next, &port, here, bytes, tables);
    next
}

#[inline(always)]
fn reply_stages<'a, P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    (here, port): (u32, &Port),
    bytes: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut BeginPlan>,
) -> Result<Delivery, Next> {
    let segment = segment::read(packet, frame, port.bridge).ok_or(Next::IcmpError)?;
    let may_begin = snat::may_begin(&segment, port);
    let known = nat::reply::becomes(&segment, here, may_begin, bytes, tables);
    let Some((becomes, is_masqueraded)) = known else {
        return Err(if may_begin { begins(&segment, frame, port, plan) } else { TO_NODE.into() });
    };
    deliver::survives(&segment.ip)?;
    // As in the kernel, which masquerades after routing and translates a host port's reply before it.
    let source = if is_masqueraded { segment.key.source } else { becomes.source };
    let route = deliver::route(packet, frame.payload, (source, becomes.destination), port.bridge, tables);
    let route = if is_masqueraded {
        masquerade::same_route(packet, frame, &segment, &becomes, route, tables)?
    } else {
        route?
    };
    fragments::remember(packet, frame.ether_type == EtherType::IPV4, &segment, &becomes, tables)?;
    rewrite(packet, frame.payload, &segment, &becomes);
    Ok(deliver::by(route))
}

/// What may be the first packet of a masqueraded connection.
#[inline(always)]
fn begins<'a>(
    segment: &Segment,
    frame: &Frame,
    port: &Port,
    plan: impl FnOnce() -> Option<&'a mut BeginPlan>,
) -> Next {
    let Some(plan) = plan() else { return TO_NODE.into() };
    plan.header = frame.payload;
    // Verifier: of the entry only what is needed, the stack is full.
    let Port { slot, affinity, flags, .. } = *port;
    plan.port = Port { slot, affinity, flags, ..Port::default() };
    plan.segment = *segment;
    Next::Begin
}

/// Later fragments, which have no transport header: as their datagram's first one. [`Next::IcmpError`] for other packets.
#[inline(always)]
pub fn later_fragment<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Next {
    let bytes = packet.length();
    let Some((frame, fragment)) = wire::later_fragment(packet) else { return Next::IcmpError };
    let port = match entry(packet, here, tables) {
        Ok((_, port)) => port,
        Err(stop) => return stop.into(),
    };
    let next = later_fragment_stages(packet, &frame, &fragment, port.bridge, tables).into();
    count_end(&next, &port, here, bytes, tables);
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
    let delivery = deliver::routed(packet, frame, &fragment.ip, ends, bridge, tables)?;
    fragments::rewrite(packet, frame, &fragment.ip, &becomes);
    Ok(delivery)
}

/// ICMP errors about packets that came in by a port of the node: decides. [`Next::IcmpError`] where the plan is to be done.
#[inline(always)]
pub fn plan_icmp_error<'a, P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut IcmpErrorPlan>,
) -> Next {
    let Some(plan) = plan() else { return TO_NODE.into() };
    let (frame, port) = match entry(packet, here, tables) {
        Ok(entry) => entry,
        Err(stop) => return stop.into(),
    };
    match plan_icmp_error_stages(packet, &frame, (here, &port), tables, plan) {
        Ok(()) => Next::IcmpError,
        Err(stop) => {
            let next = stop.into();
            count_end(&next, &port, here, packet.length(), tables);
            next
        }
    }
}

#[inline(always)]
fn plan_icmp_error_stages<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    (here, port): (u32, &Port),
    tables: &T,
    plan: &mut IcmpErrorPlan,
) -> Result<(), Stop> {
    plan.error = embedded::read(packet, frame, port.bridge).ok_or(TO_NODE)?;
    let (becomes, holder) = icmp_error::becomes(&plan.error, tables).ok_or(TO_NODE)?;
    plan.becomes = becomes;
    // Errors of hosts behind the container, or of the container that had its address before, are not translated.
    if !plan.error.ip.source.is(plan.error.key.source) || (holder != 0 && holder != here) {
        return Err(TO_NODE);
    }
    deliver::survives(&plan.error.ip)?;
    plan.source = plan.becomes.source;
    let source = if holder == 0 { plan.becomes.source } else { plan.error.key.source };
    let ends = (source, plan.becomes.destination);
    plan.route = deliver::route(packet, frame.payload, ends, port.bridge, tables)?;
    plan.slot = if port.flags & PORT_SHARED == 0 { port.slot } else { NO_SLOT };
    Ok(())
}

/// Does what [`plan_icmp_error`] has planned.
#[inline(always)]
pub fn rewrite_icmp_error<P: Packet, T: Tables>(
    packet: &mut P,
    _here: u32,
    tables: &T,
    plan: &IcmpErrorPlan,
) -> Next {
    let bytes = packet.length();
    icmp_error::rewrite(packet, &plan.error, plan.source, &plan.becomes);
    if plan.slot != NO_SLOT {
        tables.count(plan.slot, Lane::FromFast, bytes);
    }
    let Route { ifindex, next_hop } = plan.route;
    Verdict::Deliver(Delivery { ifindex, slot: NO_SLOT, way: Way::Neighbor(next_hop) }).into()
}

/// A masqueraded connection's first packet: decides, and makes both entries. [`Next::Begin`] where the plan is to be done.
#[inline(always)]
pub fn plan_begin<'a, P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut BeginPlan>,
) -> Next {
    let Some(plan) = plan() else { return TO_NODE.into() };
    match plan_begin_stages(packet, here, tables, plan) {
        Ok(()) => Next::Begin,
        Err(stop) => {
            let next = stop.into();
            count_end(&next, &plan.port, here, packet.length(), tables);
            next
        }
    }
}

#[inline(always)]
fn plan_begin_stages<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: &mut BeginPlan,
) -> Result<(), Stop> {
    // Other filters on the interface would not see it.
    if plan.port.flags & PORT_SHARED != 0 {
        return Err(Stop::Pass(PassReason::Shared));
    }
    let key = plan.segment.key;
    snat::leaves(&key, here, tables)?;
    if plan.port.affinity != AFFINITY_FAST {
        let is_kernels = |_| Stop::Pass(PassReason::KernelHeld);
        flow_affinity::check_flow(&plan.segment.flow(), &plan.port, tables).map_err(is_kernels)?;
    }
    if Protocol(key.protocol) == Protocol::UDP && tables.is_incoming_flow(&plan.segment.flow()) {
        return Err(Stop::Pass(PassReason::KernelHeld));
    }
    deliver::survives(&plan.segment.ip)?;
    let ends = (key.source, key.destination);
    plan.route = deliver::route(packet, plan.header, ends, key.domain, tables)?;
    let outlet = tables.outlet(&PortKey { ifindex: plan.route.ifindex });
    let outlet = outlet.ok_or(Stop::Pass(PassReason::NoOutlet))?;
    plan.becomes = key;
    snat::begin(&plan.segment, &outlet, (here, packet.length()), tables, &mut plan.becomes)?;
    fragments::remember(packet, key.source.is_v4(), &plan.segment, &plan.becomes, tables)
}

/// Does what [`plan_begin`] has planned.
#[inline(always)]
pub fn begin<P: Packet, T: Tables>(packet: &mut P, _here: u32, tables: &T, plan: &BeginPlan) -> Next {
    let bytes = packet.length();
    rewrite(packet, plan.header, &plan.segment, &plan.becomes);
    tables.count(plan.port.slot, Lane::FromFast, bytes);
    Verdict::Deliver(deliver::by(plan.route)).into()
}

/// A frame from the port `here` to the node, and the port's entry: a frame that `from_container` has left to this program, or on a
/// shared port one that it would have left, for other programs' filters cannot translate a reply.
///
/// # Errors
/// Passes everything else, and what the kernel's bridge drops as the port does not forward; drops a frame without an Ethernet header, and one that a restricted port's program has not marked.
#[inline(always)]
fn entry<P: Packet, T: Tables>(packet: &P, here: u32, tables: &T) -> Result<(Frame, Port), Stop> {
    let port = port::entry(here, Missing::Pass, tables)?;
    guard::marked(packet, &port)?;
    if port.flags & PORT_BLOCKED != 0 {
        return Err(Stop::Pass(PassReason::Blocked));
    }
    let frame = parse::frame(packet)?;
    mac_filter::check(&frame, &port)?;
    match find::station(&frame, &port, here, tables) {
        Err(Stop::Pass(PassReason::ToHost)) if port.flags & (PORT_MAPPED | PORT_MASQUERADED) != 0 => {
            Ok((frame, port))
        }
        Err(stop) => Err(stop),
        Ok(_) if port.flags & PORT_SHARED != 0 => Err(Stop::Pass(PassReason::Shared)),
        Ok(_) => Err(Stop::Pass(PassReason::KernelFlow)),
    }
}

/// Counts a packet whose way ends. On shared ports `from_container` has counted it.
#[inline(always)]
fn count_end<T: Tables>(next: &Next, port: &Port, here: u32, bytes: u32, tables: &T) {
    if let Next::Done(verdict) = next
        && port.flags & PORT_SHARED == 0
    {
        count::sent(verdict, port, here, bytes, tables);
    }
}
