//! `to_wire`: tc egress of an uplink. Sees what the kernel sends by addresses of the node: the node's own packets, and what the kernel
//! masquerades. `to_tunnel` is the same for uplinks without a link layer.
//!
//! The kernel does not know which tuples the containers' connections have outside. So its own are recorded here before a container gets them
//! ([`claim`]), and where a container has the tuple already the kernel's connection gets another port, as connection tracking gives one: out
//! here, and back in [`super::own_return`].

use super::{DnatPlan, Next};
use crate::Tables;
use crate::abi::share::Side;
use crate::abi::translation::{MAPPING_HEEDED, NODE, OUTSIDE, TRACKED_MASQUERADED, TupleKey, opened_by};
use crate::abi::{AddressKey, NO_SLOT, PortKey};
use crate::nat::connection::{Fate, fate};
use crate::nat::segment::Segment;
use crate::nat::{carry, claim, port_change, reply, segment, snat};
use crate::stages::count;
use crate::tables::Claimant;
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict};
use crate::wire;
use crate::wire::Packet;

/// As without the program.
const BY_KERNEL: Stop = Stop::Pass(PassReason::ByKernel);

/// The whole program.
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let mut plan = DnatPlan::default();
    let mut next = enter(packet, here, tables, || Some(&mut plan));
    if next == Next::Translate {
        next = leave(packet, here, tables, &plan);
    }
    if next == Next::Begin {
        next = begin(packet, here, tables, &plan);
    }
    next.verdict()
}

/// Whether a packet is the kernel's own, from an address of the node; reads it into `plan`.
#[inline(always)]
pub fn enter<'a, P: Packet, T: Tables>(
    packet: &mut P,
    _here: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut DnatPlan>,
) -> Next {
    if is_container(packet.origin(), tables) {
        return Stop::Pass(PassReason::Judged).into();
    }
    let Ok(frame) = wire::frame(packet) else { return BY_KERNEL.into() };
    let Some(segment) = segment::read(packet, &frame, NODE) else { return BY_KERNEL.into() };
    let is_translated = segment.is_tcp() || segment.is_datagram();
    if !is_translated || !tables.is_local(&segment.key.source) {
        return BY_KERNEL.into();
    }
    let Some(plan) = plan() else { return BY_KERNEL.into() };
    (plan.header, plan.segment) = (frame.payload, segment);
    Next::Translate
}

/// Packets of connections that are known: those with a tuple of their own, and those that have another port. The others are for [`begin`].
#[inline(always)]
pub fn leave<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &DnatPlan) -> Next {
    let segment = &plan.segment;
    let by = claimant(packet);
    // The node's own TCP is claimed with its first segment, and its sockets are asked.
    let is_claimed = segment.is_datagram() || by == Claimant::Masqueraded;
    if is_claimed && claim::renew(by, &segment.key.reversed(OUTSIDE), tables.boot_time(), tables) {
        if by == Claimant::Masqueraded {
            carry::note_masqueraded(packet, (segment, plan.header), here, tables);
        }
        return BY_KERNEL.into();
    }
    let known = reply::becomes(segment, NODE, segment.opens(), packet.length(), tables);
    if let Ok((becomes, _)) = known {
        port_change::write(packet, segment, &becomes);
        return Verdict::Deliver(Delivery::onward(here)).into();
    }
    if is_claimed || segment.opens() { Next::Begin } else { BY_KERNEL.into() }
}

/// Packets of no connection that is known: claims the tuple, or gives the connection another port where a container has it.
#[inline(always)]
pub fn begin<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &DnatPlan) -> Next {
    let bytes = packet.length();
    let verdict: Verdict = begin_stages(packet, (here, bytes), tables, plan).into();
    if verdict.is_dropped() {
        count::arrived(&verdict, here, bytes, tables);
    }
    verdict.into()
}

#[inline(always)]
fn begin_stages<P: Packet, T: Tables>(
    packet: &mut P,
    (here, bytes): (u32, u32),
    tables: &T,
    DnatPlan { segment, header, .. }: &DnatPlan,
) -> Result<Delivery, Stop> {
    let (by, now) = (claimant(packet), tables.boot_time());
    let leads = if by == Claimant::Masqueraded { snat::leads(&segment.key, tables) } else { None };
    // The answer of a connection to a host port that the kernel has opened.
    if let Some(mapping) = &leads
        && mapping.flags & MAPPING_HEEDED != 0
    {
        if !carry::is_routed_by_mark(packet, tables) {
            let leaves = TupleKey { domain: OUTSIDE, ..segment.key };
            carry::note_answer(segment, mapping, (*header, &leaves), [packet.origin(), here], tables);
        }
        return Err(BY_KERNEL);
    }
    if by == Claimant::Masqueraded && carry::note_masqueraded(packet, (segment, *header), here, tables) {
        return Err(BY_KERNEL);
    }
    // Who is masqueraded may be anybody: a claim would take the clients of the host port.
    let is_anothers = leads.is_some_and(|mapping| snat::is_anothers(&segment.key, &mapping));
    if !is_anothers && !is_held(segment, now, tables) {
        tables.claim(by, &segment.key.reversed(OUTSIDE), now);
        return Err(BY_KERNEL);
    }
    if !segment.opens() {
        return Err(BY_KERNEL);
    }
    // No container's connection leaves with an address that has none.
    let outlet = tables.outlet(&AddressKey::new(here, 0, segment.key.source)).ok_or(BY_KERNEL)?;
    let mut becomes = segment.key;
    becomes.domain = OUTSIDE;
    let opened = snat::Opened { holder: NODE, flags: opened_by(Side::Own, NO_SLOT), now, bytes };
    let is_open = snat::open(segment, &outlet, &opened, tables, &mut becomes);
    is_open.map_err(|_| Stop::Drop(DropReason::TupleTaken))?;
    port_change::write(packet, segment, &becomes);
    Ok(Delivery::onward(here))
}

/// Whose a packet of the kernel's is.
#[inline(always)]
fn claimant<P: Packet>(packet: &P) -> Claimant {
    if packet.origin() == 0 { Claimant::Own } else { Claimant::Masqueraded }
}

/// Whether a packet came in by a container's port: then the programs have translated it, or its way here would have been by a bridge.
#[inline(always)]
fn is_container<T: Tables>(origin: u32, tables: &T) -> bool {
    origin != 0 && tables.port(&PortKey { ifindex: origin }).is_some_and(|port| port.bridge != origin)
}

/// Whether the answers to a packet are a container's: the entries of its connection live, if only for as long as they are remembered after
/// its end.
#[inline(always)]
fn is_held<T: Tables>(segment: &Segment, now: u64, tables: &T) -> bool {
    let answer = segment.key.reversed(OUTSIDE);
    let Some((becomes, holder)) = tables.becomes(&answer) else { return false };
    // This is a packet of it.
    if holder == TRACKED_MASQUERADED {
        return false;
    }
    let mut opener = becomes.reversed(becomes.domain);
    let known = tables.follow(&answer, &mut opener, None, |mine, others| {
        fate(segment.ip.protocol, others, mine, false, now)
    });
    known == Some(Fate::Continues)
}
