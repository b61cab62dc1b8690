//! masquerade: the journeys of a container's own connections to the world, which sees the node.
//!
//! [`crate::journey::from_mapped`] takes what is of such a connection already; what may [`begin`] one goes on here, is planned
//! with both of its entries made, and then [`done`]. What [`returns`] comes from [`crate::journey::from_wire`]. Whatever is in
//! doubt is passed untouched before there is an entry: the kernel's own rule masquerades it, and goes on doing so.

use crate::abi::translation::TupleKey;
use crate::abi::{PATH_FAST, PORT_SHARED, Port, PortKey};
use crate::nat::connection::{Fate, fate};
use crate::nat::dnat::OUTSIDE;
use crate::nat::rewrite::rewrite;
use crate::nat::segment::Segment;
use crate::nat::{clone_to_host, frag_needed, fragments, segment, snat};
use crate::programs::from_mapped;
use crate::stages::isolate::is_bridge;
use crate::stages::{count, deliver, find, flow_affinity};
use crate::tables::{Lane, Route};
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict};
use crate::wire::packet::Packet;
use crate::wire::{Frame, Protocol};
use crate::{Tables, wire};

/// What is to become of a connection's first packet, and where it goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beginning {
    /// The offset of its IP header.
    pub header: u32,
    /// The packet.
    pub segment: Segment,
    /// What it becomes.
    pub becomes: TupleKey,
    /// By which way.
    pub route: Route,
    /// From whom.
    pub slot: u32,
}

/// Plans a connection that the container behind `here` begins, and makes its entries. A verdict where it is not ours.
#[inline(always)]
pub fn begin<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: &mut Beginning,
) -> Option<Verdict> {
    let (frame, port) = match from_mapped::arrival(packet, here, tables) {
        Ok(arrival) => arrival,
        Err(stop) => return Some(Err(stop).into()),
    };
    let stop = outwards(packet, &frame, (here, &port), tables, plan).err()?;
    let verdict = Err(stop).into();
    if port.flags & PORT_SHARED == 0 {
        count::sent(&verdict, &port, here, packet.length(), tables);
    }
    Some(verdict)
}

#[inline(always)]
fn outwards<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    (here, port): (u32, &Port),
    tables: &T,
    plan: &mut Beginning,
) -> Result<(), Stop> {
    // Whoever else looks at what it sends would not see it.
    if port.flags & PORT_SHARED != 0 {
        return Err(Stop::Pass(PassReason::Shared));
    }
    plan.header = frame.payload;
    plan.slot = port.slot;
    plan.segment = segment::read(packet, frame, port.bridge).ok_or(Stop::Pass(PassReason::ToHost))?;
    let key = plan.segment.key;
    snat::leaves(&key, here, tables)?;
    if port.asks != PATH_FAST {
        flow_affinity::unheld(&plan.segment.flow(), port, tables)
            .map_err(|_| Stop::Pass(PassReason::KernelHeld))?;
    }
    deliver::survives(&plan.segment.ip)?;
    let ends = (key.source, key.destination);
    plan.route = deliver::route(packet, frame.payload, ends, port.bridge, tables)?;
    let outlet = tables.outlet(&PortKey { ifindex: plan.route.ifindex });
    let outlet = outlet.ok_or(Stop::Pass(PassReason::NoOutlet))?;
    plan.becomes = key;
    snat::begin(&plan.segment, &outlet, (here, packet.length()), tables, &mut plan.becomes)?;
    fragments::remember(packet, frame, &plan.segment, &plan.becomes, tables)
}

/// Does what [`begin`] has planned.
#[inline(always)]
pub fn done<P: Packet, T: Tables>(packet: &mut P, tables: &T, plan: &Beginning) -> Verdict {
    let bytes = packet.length();
    rewrite(packet, plan.header, &plan.segment, &plan.becomes);
    tables.count(plan.slot, Lane::FromFast, bytes);
    Verdict::Deliver(deliver::by(plan.route))
}

/// The way of a packet of a masqueraded connection, if it is the one that the connection began by.
///
/// # Errors
/// Passes what has none, for the kernel to say so. Drops what the kernel would cut and masquerade itself, and what leaves by an
/// interface where the connection's address is not the one; such a connection is over.
#[inline(always)]
pub fn stays<P: Packet, T: Tables>(
    packet: &P,
    frame: &Frame,
    segment: &Segment,
    becomes: &TupleKey,
    route: Result<Route, Stop>,
    tables: &T,
) -> Result<Route, Stop> {
    let Ok(route) = route else {
        return Err(if is_cut(packet, frame, segment) {
            Stop::Drop(DropReason::Uncut)
        } else {
            Stop::Pass(PassReason::NoRoute)
        });
    };
    let outlet = tables.outlet(&PortKey { ifindex: route.ifindex });
    if outlet.is_some_and(|outlet| outlet.address(becomes.source).is(becomes.source)) {
        return Ok(route);
    }
    tables.forget_flow(&segment.key);
    Err(Stop::Drop(DropReason::Rerouted))
}

/// Whether routers cut the packet where it is too large: IPv4 without "don't fragment" (RFC 791).
#[inline(always)]
fn is_cut<P: Packet>(packet: &P, frame: &Frame, segment: &Segment) -> bool {
    const FLAGS: u32 = 6;
    const DONT_FRAGMENT: u16 = 0x4000;
    let flags: Option<u16> = packet.load(frame.payload + FLAGS);
    segment.ip.source.is_v4() && flags.is_some_and(|flags| u16::from_be(flags) & DONT_FRAGMENT == 0)
}

/// A packet that has come in by `here` for a port of the node that a masqueraded connection has.
#[inline(always)]
pub fn returns<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let bytes = packet.length();
    let verdict = inwards(packet, here, bytes, tables).into();
    count::came_in(&verdict, here, bytes, tables);
    verdict
}

#[inline(always)]
fn inwards<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    bytes: u32,
    tables: &T,
) -> Result<Delivery, Stop> {
    let stray = Stop::Pass(PassReason::Stray);
    // No container answers for the world.
    if is_bridge(here, tables) {
        return Err(stray);
    }
    let frame = wire::frame(packet).map_err(|_| stray)?;
    let segment = segment::read(packet, &frame, OUTSIDE).ok_or(stray)?;
    clone_to_host::unless_copied(&frame, segment.ip.protocol)?;
    let (becomes, holder) = tables.becomes(&segment.key).ok_or(stray)?;
    let (station, macs) = find::holder(&becomes, holder, tables)?;
    follow(&segment, &becomes, bytes, tables)?;
    deliver::survives(&segment.ip).map_err(|_| Stop::Drop(DropReason::Expired))?;
    deliver::fits(packet, &station).map_err(|_| frag_needed::refused(packet, &station))?;
    fragments::remember(packet, &frame, &segment, &becomes, tables)?;
    clone_to_host::with_node(packet, segment.ip.protocol, here);
    deliver::address(packet, macs)?;
    rewrite(packet, frame.payload, &segment, &becomes);
    Ok(deliver::into_container(packet, &station))
}

/// Follows the connection that a packet returns to.
///
/// # Errors
/// Passes what is of one that is over.
#[inline(always)]
fn follow<T: Tables>(segment: &Segment, becomes: &TupleKey, bytes: u32, tables: &T) -> Result<(), Stop> {
    let now = tables.boot_time();
    let protocol = Protocol(segment.key.protocol);
    let mut opener = becomes.reversed(becomes.domain);
    let fate = tables.follow(&segment.key, &mut opener, bytes, |mine, openers| {
        let fate = fate(protocol, openers, mine, false, now);
        (fate, (fate == Fate::Continues).then(|| mine.after(segment.flags(), now)))
    });
    match fate {
        Some(Fate::Continues) => Ok(()),
        _ => Err(Stop::Pass(PassReason::Stray)),
    }
}
