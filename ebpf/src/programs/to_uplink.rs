//! `to_uplink`: tc egress of an uplink. What the kernel's bridge forwards there may not choose a VLAN; what the node sends or
//! routes may.

use crate::Tables;
use crate::abi::{Port, PortKey, StationKey};
use crate::stages::port::Missing;
use crate::stages::{count, learn, parse, port, track_kernel_flow};
use crate::verdict::{DropReason, PassReason, Stop, Verdict};
use crate::wire::Packet;

/// The whole program. `here` is the uplink.
#[inline(always)]
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    if packet.take_judged() {
        return Verdict::Pass(PassReason::Judged);
    }
    let bytes = packet.length();
    let port = match port::entry(here, Missing::Drop, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, bytes, tables).into(),
    };
    let verdict = stages(packet, here, &port, tables).into();
    count::received(&verdict, &port, here, bytes, tables);
    verdict
}

#[inline(always)]
fn stages<P: Packet, T: Tables>(packet: &mut P, here: u32, port: &Port, tables: &T) -> Stop {
    let frame = match parse::frame(packet) {
        Ok(frame) => frame,
        Err(stop) => return stop,
    };
    if frame.is_tagged() && is_bridged(packet.origin(), port, tables) {
        return Stop::Drop(DropReason::KernelsWay);
    }
    if !frame.is_tagged() {
        let station = |mac| StationKey { bridge: port.bridge, vid: 0, mac };
        learn::sent_from_within(&station(frame.source), here, tables);
        // The programs deliver to known stations: a frame for one that comes this way is of a kernel flow.
        if learn::beyond(&station(frame.destination), tables).is_some() {
            track_kernel_flow::track_leaving(packet, &frame, port, here, tables);
        } else if is_from_stack(packet.origin(), port) {
            track_kernel_flow::track_sent(packet, &frame, port, tables);
        }
    }
    Stop::Pass(PassReason::ByKernel)
}

/// Whether the node's own stack has sent or routed a frame, and not by another bridge or uplink than the port's.
#[inline(always)]
const fn is_from_stack(origin: u32, port: &Port) -> bool {
    origin == 0 || origin == port.bridge
}

/// Whether a frame came into the node, by `origin`, on a port of the uplink's bridge.
#[inline(always)]
fn is_bridged<T: Tables>(origin: u32, port: &Port, tables: &T) -> bool {
    origin != 0
        && origin != port.bridge
        && tables.port(&PortKey { ifindex: origin }).is_some_and(|sender| sender.bridge == port.bridge)
}
