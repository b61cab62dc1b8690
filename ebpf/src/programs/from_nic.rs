//! `from_nic`: XDP in the driver of an uplink. Forwards frames between uplinks, and drops, before there is a socket buffer.
//!
//! All else goes on to `from_uplink`, which judges it anew. So this program may give up anywhere, and never decides anything
//! that `from_uplink` would not: both ask [`addressee`].

use super::from_uplink::{Addressee, addressee};
use crate::Tables;
use crate::abi::{AFFINITY_FAST, Port, PortKey, STATION_WIRE, Station};
use crate::stages::retag::{self, Form};
use crate::stages::{count, deliver};
use crate::verdict::{Delivery, PassReason, Stop, Verdict, Way};
use crate::wire;
use crate::wire::packet::Tag;
use crate::wire::{Frame, Readable};

const TAG_BYTES: u32 = 4;

/// The whole program. `here` is the uplink. None for what goes on to `from_uplink`, which counts it.
#[inline(always)]
pub fn run<F: Readable, T: Tables>(packet: &F, here: u32, tables: &T) -> Option<Verdict> {
    let port = tables.port(&PortKey { ifindex: here })?;
    // A frame without a header: `from_uplink` gives the reason.
    let frame = wire::frame(packet).ok()?;
    let bytes = in_stack(packet.length(), &frame);
    let verdict = match stages(packet, &frame, (here, bytes), &port, tables) {
        Ok(delivery) => Verdict::Deliver(delivery),
        Err(Stop::Drop(reason)) => Verdict::Drop(reason),
        Err(Stop::Pass(_)) => return None,
    };
    count::sent(&verdict, &port, here, bytes, tables);
    Some(verdict)
}

/// Bytes of a frame as the stack counts them: without the outermost tag.
#[inline(always)]
const fn in_stack(bytes: u32, frame: &Frame) -> u32 {
    if frame.inline_tags == 0 { bytes } else { bytes - TAG_BYTES }
}

/// To another uplink, unchanged: all of them carry every VLAN tagged, and untagged what the kernel's bridge forwards.
#[inline(always)]
fn stages<F: Readable, T: Tables>(
    packet: &F,
    frame: &Frame,
    (here, bytes): (u32, u32),
    port: &Port,
    tables: &T,
) -> Result<Delivery, Stop> {
    let (station, vlan) = match addressee(packet, frame, here, port, tables)? {
        Addressee::InVlan(station, vlan) => (station, Some(vlan)),
        Addressee::Bridged(station) => (station, None),
        Addressee::Vlan(_) | Addressee::Moved(..) => return Err(GIVES_UP),
    };
    // Most are for containers.
    if station.flags & STATION_WIRE == 0 {
        return Err(GIVES_UP);
    }
    let receiver = tables.port(&PortKey { ifindex: station.ifindex }).ok_or(GIVES_UP)?;
    let leaves_as_it_came = match vlan {
        Some(vlan) => {
            let form = retag::form_at(vlan.vid, &receiver, station.ifindex, tables);
            form == Some(Form::Tagged) && vlan.came == Some(Tag::customer(vlan.tci()))
        }
        // A port with kernel flows: the headers would have to be read.
        None => receiver.affinity == AFFINITY_FAST,
    };
    if leaves_as_it_came && deliver::is_within(bytes, &station) && tables.takes(station.ifindex) {
        return Ok(through_port(&station));
    }
    Err(GIVES_UP)
}

/// Whatever the reason: `from_uplink` has its own.
const GIVES_UP: Stop = Stop::Pass(PassReason::ByKernel);

#[inline(always)]
fn through_port(station: &Station) -> Delivery {
    Delivery { ifindex: station.ifindex, slot: station.slot, way: Way::Port }
}
