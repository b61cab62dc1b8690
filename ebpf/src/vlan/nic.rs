//! The journey of a frame that an uplink's driver still has: what is no business of the stack's goes no further.
//!
//! A frame from one wire to another needs no socket buffer, and neither does one that is dropped. Everything else goes on to
//! [`super::from_uplink`], which judges it once more. So this journey may give up at any point, and may not say anything that the
//! other would not say: both ask [`addressee`].

use super::uplink::{Addressee, addressee};
use crate::abi::{PATH_FAST, Port, PortKey, STATION_WIRE, Station};
use crate::stages::retag::{self, Form};
use crate::stages::{count, deliver};
use crate::verdict::{Delivery, Stop, Verdict, Way};
use crate::wire::Frame;
use crate::wire::packet::{Readable, Tag};
use crate::{Tables, wire};

const TAG_BYTES: u32 = 4;

/// A frame that came in by the driver of the uplink `here`. None where it goes on to [`super::from_uplink`], which counts it.
#[inline(always)]
pub fn from_nic<F: Readable, T: Tables>(packet: &F, here: u32, tables: &T) -> Option<Verdict> {
    let port = tables.port(&PortKey { ifindex: here })?;
    // Not even a header: that is for the stack to say.
    let frame = wire::frame(packet).ok()?;
    let bytes = in_stack(packet.length(), &frame);
    let verdict = match across(packet, &frame, (here, bytes), &port, tables) {
        Ok(delivery) => Verdict::Deliver(delivery),
        Err(Stop::Drop(reason)) => Verdict::Drop(reason),
        Err(Stop::Pass(_)) => return None,
    };
    count::sent(&verdict, &port, here, bytes, tables);
    Some(verdict)
}

/// Bytes of a frame as the stack counts them: it takes the outermost tag out.
#[inline(always)]
const fn in_stack(bytes: u32, frame: &Frame) -> u32 {
    if frame.inline_tags == 0 { bytes } else { bytes - TAG_BYTES }
}

/// To another wire, as it came: all of them carry every VLAN tagged, and what the kernel's bridge forwards untagged.
#[inline(always)]
fn across<F: Readable, T: Tables>(
    packet: &F,
    frame: &Frame,
    (here, bytes): (u32, u32),
    port: &Port,
    tables: &T,
) -> Result<Delivery, Stop> {
    let (station, vlan) = match addressee(packet, frame, here, port, tables)? {
        Addressee::InVlan(station, vlan) => (station, Some(vlan)),
        Addressee::Bridged(station) => (station, None),
        Addressee::Everybody(_) => return Err(THE_STACKS),
    };
    // Most are for containers.
    if station.flags & STATION_WIRE == 0 {
        return Err(THE_STACKS);
    }
    let receiver = tables.port(&PortKey { ifindex: station.ifindex }).ok_or(THE_STACKS)?;
    let leaves_as_it_came = match vlan {
        Some(vlan) => {
            let form = retag::at(vlan.vid, &receiver, station.ifindex, tables);
            form == Some(Form::Tagged) && vlan.came == Some(Tag::customer(vlan.tci()))
        }
        // Where there have been flows of the kernel's, its headers would have to be read.
        None => receiver.asks == PATH_FAST,
    };
    if leaves_as_it_came && deliver::is_within(bytes, &station) && tables.takes(station.ifindex) {
        return Ok(wired(&station));
    }
    Err(THE_STACKS)
}

/// Whatever the reason: the next journey has its own.
const THE_STACKS: Stop = Stop::Pass(crate::PassReason::ByKernel);

#[inline(always)]
fn wired(station: &Station) -> Delivery {
    Delivery { ifindex: station.ifindex, slot: station.slot, way: Way::Port }
}
