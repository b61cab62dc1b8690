//! `from_host`: tc egress of a bridge device. Delivers what the node's own stack sends or routes to containers.
//!
//! All of the stack's hooks lie before it, so delivery to the port skips the bridge's look-up only. One exception: what
//! br_netfilter has translated inside the bridge for an unresolved container comes out here between DNAT and masquerading, and the
//! bridge device takes it back in (`br_nf_pre_routing_finish_bridge`, net/bridge/br_netfilter_hooks.c). Such a frame has a
//! container's source address, or came in by a port that is nobody's of ours, and is passed; so is a frame that may belong to such a flow
//! and cannot be read.

use super::Next;
use crate::Tables;
use crate::abi::{PORT_HEEDED, Port, PortKey, STATION_ASIDE, STATION_OPENED, STATION_SAME_BRIDGE};
use crate::nat::alias;
use crate::stages::port::Missing;
use crate::stages::track_kernel_flow::{Sender, Way};
use crate::stages::{
    count, deliver, find, isolate, neighbor_proxy, parse, port, suppress, track_kernel_flow,
};
use crate::verdict::{Delivery, PassReason, Stop, Verdict};
use crate::wire::Packet;

/// The whole program.
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    match forward(packet, here, tables) {
        Next::Answer => {
            note(packet, here, tables);
            answer(packet, here, tables)
        }
        next => next.verdict(),
    }
}

/// The first part: everything but the neighbour proxy. `here` is the bridge device.
#[inline(always)]
pub fn forward<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Next {
    let port = match port::entry(here, Missing::Pass, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables).into(),
    };
    let bytes = packet.length();
    let next = stages(packet, here, &port, tables).into();
    if let Next::Done(verdict) = &next {
        count::sent(verdict, &port, here, bytes, tables);
    }
    next
}

#[inline(always)]
fn stages<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    tables: &T,
) -> Result<Delivery, Next> {
    let frame = parse::frame(packet)?;
    // By the bridge: all that is asked of a packet is asked once more at its port.
    if packet.origin() == 0 && alias::asked(packet, &frame, here, tables) {
        return Ok(Delivery::onward(here));
    }
    let station = find::station(&frame, port, here, tables).map_err(|stop| match stop {
        Stop::Pass(PassReason::Group) if neighbor_proxy::is_candidate(&frame) => Next::Answer,
        stop => stop.into(),
    })?;
    // One test for both, so that it costs nothing where neither is.
    if station.flags & (STATION_SAME_BRIDGE | STATION_ASIDE) != 0 {
        deliver::not_aside(&station)?;
        isolate::routed(packet.origin(), here, &station, tables)?;
    }
    let way = way(packet.origin(), here, tables);
    match track_kernel_flow::track_host(packet, &frame, port, (station.ifindex, way), tables) {
        Sender::Container => Err(Stop::Pass(PassReason::KernelFlow).into()),
        Sender::Unclear => Err(Stop::Pass(PassReason::NoFlow).into()),
        Sender::Other if port.flags & PORT_HEEDED != 0 || station.flags & STATION_OPENED != 0 => {
            Err(Stop::Pass(PassReason::Unaccepted).into())
        }
        Sender::Other => Ok(deliver::from_host(packet, &station)?),
    }
}

/// How a frame came to the bridge `here`: by a port of the bridge it never left the bridge, for what the bridge has handed to the node's stack
/// comes from the bridge device. By another's the programs have brought it.
#[inline(always)]
fn way<T: Tables>(origin: u32, here: u32, tables: &T) -> Way {
    if origin == 0 || origin == here {
        return Way::FromStack;
    }
    match tables.port(&PortKey { ifindex: origin }) {
        Some(port) if port.bridge == here => Way::Bridged,
        Some(port) if port.bridge != origin => Way::Translated,
        _ => Way::FromStack,
    }
}

/// Notes what is said to a group, before [`answer`].
#[inline(always)]
pub fn note<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Next {
    if let Ok(port) = port::entry(here, Missing::Pass, tables)
        && let Ok(frame) = parse::frame(packet)
    {
        suppress::note_host(packet, &frame, &port, tables);
    }
    Next::Answer
}

/// The second part: the neighbour proxy, for [`Next::Answer`].
#[inline(always)]
pub fn answer<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let port = match port::entry(here, Missing::Pass, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables).into(),
    };
    let bytes = packet.length();
    let answered =
        parse::frame(packet).ok().and_then(|frame| neighbor_proxy::to_host(packet, &frame, &port, tables));
    let verdict = answered.map_or(Verdict::Pass(PassReason::Group), Verdict::Deliver);
    count::sent(&verdict, &port, here, bytes, tables);
    verdict
}
