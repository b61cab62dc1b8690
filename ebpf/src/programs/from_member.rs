//! `from_container` of a port in VLANs. The kernel's bridge may know no VLANs, so it never gets such a frame: what a member
//! sends is delivered, flooded or dropped.

use crate::Tables;
use crate::abi::vlan::VID_ANY;
use crate::abi::{Port, PortKey, Station, StationKey};
use crate::stages::classify::{self, Vlan};
use crate::stages::flood::{self, Destination};
use crate::stages::neighbor_proxy::{self, Within};
use crate::stages::port::Missing;
use crate::stages::{
    announce, count, deliver, find, isolate, mac_filter, parse, police, port, retag, source_guard,
};
use crate::verdict::{DropReason, Stop, Verdict};
use crate::wire::Packet;

/// The whole program. `here` is the host end.
#[inline(always)]
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let port = match port::entry(here, Missing::Drop, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables).into(),
    };
    let bytes = packet.length();
    let verdict = match stages(packet, here, &port, tables) {
        Ok(Destination::One(delivery)) => Verdict::Deliver(delivery),
        Ok(Destination::Vlan(vlan)) => Verdict::Flooded(flood::to_members(packet, vlan, &port, here, tables)),
        Err(Stop::Drop(reason)) => Verdict::Drop(reason),
        // Other ports would leave it to the kernel.
        Err(Stop::Pass(_)) => Verdict::Drop(DropReason::KernelsWay),
    };
    count::sent(&verdict, &port, here, bytes, tables);
    verdict
}

#[inline(always)]
fn stages<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    tables: &T,
) -> Result<Destination, Stop> {
    let frame = parse::frame(packet)?;
    source_guard::check(packet, &frame, port, here, tables)?;
    mac_filter::check_member(&frame, port)?;
    let vlan = classify::classify(packet, &frame, port, here, tables)?;
    // A frame is charged for whatever becomes of it.
    police::rate(packet, &frame, port, tables)?;
    if frame.destination.is_reserved() {
        return Err(Stop::Drop(DropReason::ReservedGroup));
    }
    police::flood(&frame, port, tables)?;
    let key = StationKey { bridge: port.bridge, vid: vlan.vid, mac: frame.destination };
    let is_news = announce::hear_member(packet, &frame, port, vlan.vid, here, tables);
    if is_news {
        // Others have to hear it.
        return Ok(Destination::Vlan(vlan));
    }
    if frame.destination.is_group() {
        let within = Within { vid: vlan.vid, stations: VID_ANY };
        let is_answered = neighbor_proxy::answer(packet, &frame, port, within, here, tables);
        return Ok(if is_answered { back(packet, port, here) } else { Destination::Vlan(vlan) });
    }
    let Some(station) = find::in_vlan(key, tables) else {
        return Ok(Destination::Vlan(vlan));
    };
    if station.ifindex == here {
        return Err(Stop::Drop(DropReason::Hairpin));
    }
    isolate::ports(port, &station)?;
    retag_for(packet, vlan, &station, tables)?;
    deliver::from_container(packet, &station).map(Destination::One)
}

/// The answer to what a member asks. Never into the peer: VLAN interfaces behind the port get theirs from its egress, and a
/// gateway's peer is in the node's own namespace, where no redirect to a peer leads.
#[inline(always)]
fn back<P: Packet>(packet: &mut P, port: &Port, here: u32) -> Destination {
    let asker = Station { ifindex: here, slot: port.slot, ..Station::default() };
    Destination::One(deliver::through_port(packet, &asker))
}

/// Gives a frame the tag that its VLAN has at `station`, or none.
///
/// # Errors
/// Drops what is for a port in other VLANs, does not fit, or cannot be tagged.
#[inline(always)]
pub(super) fn retag_for<P: Packet, T: Tables>(
    packet: &mut P,
    vlan: Vlan,
    station: &Station,
    tables: &T,
) -> Result<(), Stop> {
    let receiver = tables.port(&PortKey { ifindex: station.ifindex });
    let form = receiver.and_then(|receiver| retag::form_at(vlan.vid, &receiver, station.ifindex, tables));
    let form = form.ok_or(Stop::Drop(DropReason::OtherVlan))?;
    deliver::fits(packet, station).map_err(|_| Stop::Drop(DropReason::TooBig))?;
    retag::retag(packet, vlan, vlan.came, form).map(|_| ())
}
