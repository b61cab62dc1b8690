//! errors: the journeys of ICMP errors about translated packets. A router's word on the way to a client, such as "too big",
//! reaches the container that sent the packet, and the container's, such as "port unreachable", the client.
//!
//! Each goes on where the journey of the same name has found neither TCP nor UDP. First it is decided and planned, then
//! done: as programs the two are functions, with stacks of their own, and the [`Plan`] is what one hands to the other.

use crate::abi::translation::TupleKey;
use crate::abi::{NO_SLOT, PORT_SHARED, Port, Station};
use crate::nat::dnat::OUTSIDE;
use crate::nat::embedded::Quote;
use crate::nat::masquerade::Beginning;
use crate::nat::rewrite::Macs;
use crate::nat::{clone_to_host, dnat, embedded, frag_needed, fragments, icmp_error, masquerade};
use crate::programs::from_mapped;
use crate::stages::{count, deliver, find, guard, isolate};
use crate::tables::{Lane, Route};
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict, Way};
use crate::wire::address::Address;
use crate::wire::packet::Packet;
use crate::wire::{Frame, Protocol};
use crate::{Tables, journey, wire};

/// What is to become of an error, and where it goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// The error.
    pub quote: Quote,
    /// What a packet that goes where it goes becomes.
    pub becomes: TupleKey,
    /// Whom it will be from.
    pub source: Address,
    /// Inwards: to whom, and the Ethernet addresses.
    pub station: Station,
    /// See `station`.
    pub macs: Macs,
    /// Outwards: by which way.
    pub route: Route,
    /// Outwards: from whom.
    pub slot: u32,
}

/// Plans an error about an answer that left by a port of the node. A verdict where nothing is to be done.
#[inline(always)]
pub fn plan_from_wire<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: &mut Plan,
) -> Option<Verdict> {
    let stop = inwards(packet, here, tables, plan).err()?;
    let verdict = Err(stop).into();
    count::came_in(&verdict, here, packet.length(), tables);
    Some(verdict)
}

#[inline(always)]
fn inwards<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &mut Plan) -> Result<(), Stop> {
    let unmapped = Stop::Pass(PassReason::Unmapped);
    if !packet.is_for_this_host() {
        return Err(Stop::Pass(PassReason::NotLocal));
    }
    let frame = wire::frame(packet).map_err(|_| unmapped)?;
    plan.quote = embedded::read(packet, &frame, OUTSIDE).ok_or(unmapped)?;
    let quote = &mut plan.quote;
    clone_to_host::unless_copied(&frame, Protocol(quote.key.protocol))?;
    quote.key.domain = dnat::domain(here, frame.source, tables);
    let (becomes, holder) = icmp_error::becomes(quote, tables).ok_or(Stop::Pass(PassReason::Stray))?;
    plan.becomes = becomes;
    if holder == 0 {
        let mapping = dnat::mapping(&quote.key, tables)?;
        // The connection may be that of a container which had the port before.
        let container = if quote.ip.source.is_v4() { mapping.v4 } else { mapping.v6 };
        if becomes.domain != mapping.bridge || !becomes.destination.is(container) {
            return Err(Stop::Pass(PassReason::Stray));
        }
        (plan.station, plan.macs) = find::mapped(&mapping, tables)?;
        isolate::routed(quote.key.domain, mapping.bridge, &plan.station, tables)?;
    } else {
        (plan.station, plan.macs) = find::holder(&plan.becomes, holder, tables)?;
    }
    deliver::survives(&quote.ip)?;
    deliver::fits(packet, &plan.station).map_err(|_| Stop::Drop(DropReason::TooBig))?;
    plan.source = icmp_error::sender(quote, &plan.becomes);
    Ok(())
}

/// Does what [`plan_from_wire`] has planned.
#[inline(always)]
pub fn from_wire<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &Plan) -> Verdict {
    let bytes = packet.length();
    clone_to_host::with_node(packet, Protocol(plan.quote.key.protocol), here);
    let verdict = match deliver::address(packet, plan.macs) {
        Ok(()) => {
            icmp_error::rewrite(packet, &plan.quote, plan.source, &plan.becomes);
            Verdict::Deliver(deliver::into_container(packet, &plan.station))
        }
        Err(stop) => Err(stop).into(),
    };
    count::came_in(&verdict, here, bytes, tables);
    verdict
}

/// Plans an error about a request that came in by a port of the node, which the container behind `here` has sent.
#[inline(always)]
pub fn plan_from_mapped<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: &mut Plan,
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
    plan: &mut Plan,
) -> Result<(), Stop> {
    let no_answer = Stop::Pass(PassReason::ToHost);
    plan.quote = embedded::read(packet, frame, port.bridge).ok_or(no_answer)?;
    let (becomes, holder) = icmp_error::becomes(&plan.quote, tables).ok_or(no_answer)?;
    plan.becomes = becomes;
    // Nobody outside knows of anyone behind the container, or of whoever had its address before.
    if !plan.quote.ip.source.is(plan.quote.key.source) || (holder != 0 && holder != here) {
        return Err(no_answer);
    }
    deliver::survives(&plan.quote.ip)?;
    plan.source = plan.becomes.source;
    let source = if holder == 0 { plan.becomes.source } else { plan.quote.key.source };
    let ends = (source, plan.becomes.destination);
    plan.route = deliver::route(packet, frame.payload, ends, port.bridge, tables)?;
    plan.slot = if port.flags & PORT_SHARED == 0 { port.slot } else { NO_SLOT };
    Ok(())
}

/// Does what [`plan_from_mapped`] has planned.
#[inline(always)]
pub fn from_mapped<P: Packet, T: Tables>(packet: &mut P, tables: &T, plan: &Plan) -> Verdict {
    let bytes = packet.length();
    icmp_error::rewrite(packet, &plan.quote, plan.source, &plan.becomes);
    if plan.slot != NO_SLOT {
        tables.count(plan.slot, Lane::FromFast, bytes);
    }
    let Route { ifindex, next_hop } = plan.route;
    Verdict::Deliver(Delivery { ifindex, slot: NO_SLOT, way: Way::Neighbor(next_hop) })
}

/// The whole of the program `from_wire`: the journey of that name, that of fragments, this one, what returns to masqueraded
/// connections, and the word to whoever sent too large a packet.
pub fn whole_from_wire<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let mut plan = Plan::default();
    let verdict = match journey::from_wire(packet, here, tables) {
        Verdict::Pass(PassReason::MayQuote) => {
            return fragments::from_wire(packet, here, tables)
                .or_else(|| plan_from_wire(packet, here, tables, &mut plan))
                .unwrap_or_else(|| from_wire(packet, here, tables, &plan));
        }
        Verdict::Pass(PassReason::MayReturn) => masquerade::returns(packet, here, tables),
        verdict => verdict,
    };
    match verdict {
        Verdict::Drop(DropReason::TooBig) => frag_needed::tell(packet, here, tables),
        verdict => verdict,
    }
}

/// The same of `from_mapped`, and what begins them.
pub fn whole_from_mapped<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let mut plan = Plan::default();
    let verdict = match journey::from_mapped(packet, here, tables) {
        Verdict::Pass(PassReason::MayQuote) => fragments::from_mapped(packet, here, tables)
            .or_else(|| plan_from_mapped(packet, here, tables, &mut plan))
            .unwrap_or_else(|| from_mapped(packet, tables, &plan)),
        Verdict::Pass(PassReason::MayBegin) => {
            let mut plan = Beginning::default();
            masquerade::begin(packet, here, tables, &mut plan)
                .unwrap_or_else(|| masquerade::done(packet, tables, &plan))
        }
        verdict => verdict,
    };
    guard::unless_left(packet, verdict)
}
