//! The journeys: one function for each place where a packet meets us. Read them top to bottom.
//!
//! | journey | hook | what comes in | what it decides |
//! |---|---|---|---|
//! | [`from_container`] | tc ingress of a host veth end | what a container sends | the fast path, or the kernel's |
//! | [`to_container`] | tc egress of a host veth end | what reaches a container by the kernel's way | which flows are the kernel's |
//! | [`from_host`] | tc egress of the bridge device | what the node's own stack sends or routes to containers | straight to the port, or through the bridge |

use crate::abi::Port;
use crate::notice::Sender;
use crate::packet::Packet;
use crate::parse::Unreadable;
use crate::port::Missing;
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict};
use crate::{Tables, admit, count, deliver, find, isolate, notice, parse, path, police, port, reach, vouch};

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
    verdict
}

#[inline(always)]
fn onwards<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    missing: Missing,
    tables: &T,
) -> Result<Delivery, Stop> {
    let frame = parse::frame(packet).map_err(truncated)?;
    // Whatever becomes of it, it was sent.
    police::rate(port, packet.length(), tables)?;
    // Before admit: what passes as another station's frame must not pass for another's address. Only in the programs for
    // restricted ports: it costs the verifier more than all the rest.
    if missing == Missing::Drop {
        vouch::addresses(packet, &frame, port, here, tables)?;
    }
    admit::source(&frame, port)?;
    admit::alone(port)?;
    let station = find::station(&frame, port, here, tables)?;
    isolate::apart(port, &station)?;
    path::ours(packet, &frame, port, tables)?;
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
        return Verdict::Pass(PassReason::Judged);
    }
    let port = match port::entry(here, missing, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables),
    };
    let bytes = packet.length();
    let verdict = arriving(packet, here, &port, missing, tables).into();
    count::received(&verdict, &port, here, bytes, tables);
    verdict
}

#[inline(always)]
fn arriving<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    missing: Missing,
    tables: &T,
) -> Result<Delivery, Stop> {
    let frame = parse::frame(packet).map_err(truncated)?;
    if missing == Missing::Drop {
        reach::from_anywhere(packet, &frame, port, tables)?;
    }
    notice::kernel_flow(packet, &frame, port, here, tables);
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
    let frame = parse::frame(packet).map_err(truncated)?;
    let station = find::station(&frame, port, here, tables)?;
    match notice::kernel_flow(packet, &frame, port, station.ifindex, tables) {
        Sender::Container => Err(Stop::Pass(PassReason::KernelFlow)),
        Sender::Unclear => Err(Stop::Pass(PassReason::NoFlow)),
        Sender::Other => deliver::from_host(packet, &station),
    }
}

#[inline(always)]
fn truncated(_: Unreadable) -> Stop {
    Stop::Drop(DropReason::Truncated)
}
