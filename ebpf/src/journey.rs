//! The journeys: one function for each place where a packet meets us. Read them top to bottom.
//!
//! | journey | hook | what comes in | what it decides |
//! |---|---|---|---|
//! | [`from_container`] | tc ingress of a host veth end | what a container sends | the fast path, or the kernel's |
//! | [`to_container`] | tc egress of a host veth end | what reaches a container by the kernel's way | which flows are the kernel's |
//! | [`crate::stages::neighbor_proxy`] | behind [`from_container`] and [`from_host`], in the same programs | what asks everybody for an address | an answer, or not |
//! | [`from_mapped`] | behind [`from_container`], where host ports lead to the container, or it is masqueraded | what it sends to the node | of a connection that is translated, or not |
//! | [`crate::nat::masquerade`] | behind [`from_mapped`] and [`from_wire`], in the same programs | what begins a masqueraded connection, or returns to one | out of the node, or into the container |
//! | [`crate::nat::fragments`] | behind the same two | later fragments | the way of their first one, or the kernel's |
//! | [`crate::errors`] | behind those | ICMP errors | to whom they say something |
//! | [`from_wire`] | tc ingress of an uplink or a bridge device | what comes to the node | into a container by a host port, or the kernel's |
//! | [`crate::nat::frag_needed`] | behind [`from_wire`] and [`crate::nat::masquerade::returns`] | what a container's link has no room for | the word to its sender, or none |
//! | [`from_host`] | tc egress of the bridge device | what the node's own stack sends or routes to containers | straight to the port, or through the bridge |

use crate::abi::{PORT_SHARED, Port};
use crate::nat::dnat::OUTSIDE;
use crate::nat::rewrite::rewrite;
use crate::nat::{dnat, frag_needed, fragments, masquerade, reply, segment};
use crate::programs::from_mapped;
use crate::stages::port::Missing;
use crate::stages::track_kernel_flow::Sender;
use crate::stages::{
    count, deliver, find, flow_affinity, guard, isolate, mac_filter, neighbor_proxy, origin_check, police,
    port, source_guard, track_kernel_flow,
};
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict};
use crate::wire::packet::Packet;
use crate::wire::{Frame, Unreadable};
use crate::{Tables, wire};

/// A frame that a container sent, at the host end `here` of its veth.
#[inline(always)]
pub fn from_container<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    missing: Missing,
    tables: &T,
) -> Verdict {
    let port = match port::entry(here, missing, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables),
    };
    let bytes = packet.length();
    let verdict = onwards(packet, here, &port, missing, tables).into();
    count::sent(&verdict, &port, here, bytes, tables);
    guard::checked(packet, missing, verdict)
}

/// The same frame, which [`from_container`] has left to the kernel, on a port that host ports lead to or that is
/// masqueraded. What is of a connection leaves by the kernel's route; everything else stays the kernel's, and is counted here only where it was not counted there.
#[inline(always)]
pub fn from_mapped<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let (frame, port) = match from_mapped::arrival(packet, here, tables) {
        Ok(arrival) => arrival,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables),
    };
    let bytes = packet.length();
    let verdict = outwards(packet, &frame, (here, &port), bytes, tables).into();
    let is_over = !matches!(verdict, Verdict::Pass(PassReason::MayQuote | PassReason::MayBegin));
    if port.flags & PORT_SHARED == 0 && is_over {
        count::sent(&verdict, &port, here, bytes, tables);
    }
    verdict
}

#[inline(always)]
fn outwards<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    (here, port): (u32, &Port),
    bytes: u32,
    tables: &T,
) -> Result<Delivery, Stop> {
    let segment = segment::read(packet, frame, port.bridge).ok_or(Stop::Pass(PassReason::MayQuote))?;
    let (becomes, is_masqueraded) = reply::becomes(&segment, (here, port), bytes, tables)?;
    deliver::survives(&segment.ip)?;
    // As the kernel, which masquerades behind its routes and translates a host port's answer in front of them.
    let source = if is_masqueraded { segment.key.source } else { becomes.source };
    let route = deliver::route(packet, frame.payload, (source, becomes.destination), port.bridge, tables);
    let route = if is_masqueraded {
        masquerade::stays(packet, frame, &segment, &becomes, route, tables)?
    } else {
        route?
    };
    fragments::remember(packet, frame, &segment, &becomes, tables)?;
    rewrite(packet, frame.payload, &segment, &becomes);
    Ok(deliver::by(route))
}

/// A frame that came in by `here`: an uplink, or a bridge, by which its containers reach the node.
#[inline(always)]
pub fn from_wire<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let bytes = packet.length();
    let verdict = request(packet, here, tables).into();
    count::came_in(&verdict, here, bytes, tables);
    verdict
}

#[inline(always)]
fn request<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Result<Delivery, Stop> {
    if !packet.is_for_this_host() {
        return Err(Stop::Pass(PassReason::NotLocal));
    }
    let frame = wire::frame(packet).map_err(|_| Stop::Pass(PassReason::Unmapped))?;
    let mut segment = segment::read(packet, &frame, OUTSIDE).ok_or(Stop::Pass(PassReason::MayQuote))?;
    // First: nobody takes a port of the node's from a connection that has it.
    if tables.becomes(&segment.key).is_some_and(|(_, holder)| holder != 0) {
        return Err(Stop::Pass(PassReason::MayReturn));
    }
    let mapping = dnat::mapping(&segment.key, tables)?;
    segment.key.domain = dnat::domain(here, frame.source, tables);
    let mut becomes = dnat::becomes(&segment.key, here, &mapping)?;
    let (station, macs) = find::mapped(&mapping, tables)?;
    isolate::routed(segment.key.domain, mapping.bridge, &station, tables)?;
    deliver::survives(&segment.ip)?;
    dnat::follow(&segment, &mut becomes, packet.length(), tables)?;
    deliver::fits(packet, &station).map_err(|_| frag_needed::refused(packet, &station))?;
    fragments::remember(packet, &frame, &segment, &becomes, tables)?;
    deliver::address(packet, macs)?;
    rewrite(packet, frame.payload, &segment, &becomes);
    Ok(deliver::into_container(packet, &station))
}

#[inline(always)]
fn onwards<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    missing: Missing,
    tables: &T,
) -> Result<Delivery, Stop> {
    let frame = wire::frame(packet).map_err(truncated)?;
    // Whatever becomes of it, it was sent.
    police::rate(packet, &frame, port, tables)?;
    // Before admit: what passes as another station's frame must not pass for another's address. Only in the programs for
    // restricted ports: it costs the verifier more than all the rest.
    if missing == Missing::Drop {
        source_guard::addresses(packet, &frame, port, here, tables)?;
        police::flood(&frame, port, tables)?;
    }
    mac_filter::source(&frame, port)?;
    mac_filter::alone(port)?;
    let found = neighbor_proxy::unless_question(find::station(&frame, port, here, tables), &frame);
    let station = from_mapped::unless_answer(found, port)?;
    isolate::apart(port, &station)?;
    flow_affinity::ours(packet, &frame, port, tables)?;
    deliver::from_container(packet, &station)
}

/// A frame on its way to the container behind the host end `here`, by the kernel's way.
#[inline(always)]
pub fn to_container<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    missing: Missing,
    tables: &T,
) -> Verdict {
    // Delivered by another of our programs, and counted there.
    if packet.take_judged() {
        return guard::checked(packet, missing, Verdict::Pass(PassReason::Judged));
    }
    let port = match port::entry(here, missing, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables),
    };
    let bytes = packet.length();
    let verdict = arriving(packet, here, &port, missing, tables).into();
    count::received(&verdict, &port, here, bytes, tables);
    guard::checked(packet, missing, verdict)
}

#[inline(always)]
fn arriving<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    missing: Missing,
    tables: &T,
) -> Result<Delivery, Stop> {
    let frame = wire::frame(packet).map_err(truncated)?;
    if missing == Missing::Drop {
        origin_check::from_anywhere(packet, &frame, port, tables)?;
    }
    track_kernel_flow::kernel_flow(packet, &frame, port, here, tables);
    Err(Stop::Pass(PassReason::ByKernel))
}

/// A frame that the node's stack sends out of the bridge device `here`: its own traffic, or what it routes.
///
/// Every hook of the stack is behind it, so handing it to the port passes nothing by but the bridge's own look-up. One kind
/// of frame is still on its way through the hooks: what br_netfilter has translated inside the bridge, for a
/// container that has to be resolved first, comes out here between DNAT and masquerading, and the bridge device takes it
/// back in (`br_nf_pre_routing_finish_bridge`, net/bridge/br_netfilter_hooks.c). It has a container's source address,
/// and it is left alone; so is what may belong to such a flow and does not say.
#[inline(always)]
pub fn from_host<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let port = match port::entry(here, Missing::Pass, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables),
    };
    let bytes = packet.length();
    let verdict = to_station(packet, here, &port, tables).into();
    count::sent(&verdict, &port, here, bytes, tables);
    verdict
}

#[inline(always)]
fn to_station<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    tables: &T,
) -> Result<Delivery, Stop> {
    let frame = wire::frame(packet).map_err(truncated)?;
    let station = neighbor_proxy::unless_question(find::station(&frame, port, here, tables), &frame)?;
    isolate::routed(packet.origin(), here, &station, tables)?;
    match track_kernel_flow::kernel_flow(packet, &frame, port, station.ifindex, tables) {
        Sender::Container => Err(Stop::Pass(PassReason::KernelFlow)),
        Sender::Unclear => Err(Stop::Pass(PassReason::NoFlow)),
        Sender::Other => deliver::from_host(packet, &station),
    }
}

#[inline(always)]
pub(crate) fn truncated(_: Unreadable) -> Stop {
    Stop::Drop(DropReason::Truncated)
}
