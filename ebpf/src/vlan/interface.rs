//! The journeys of VLAN interfaces: a veth that the container cannot tell from a VLAN device. Its host end is joined to
//! a trunk, which is a master in the node's namespace or, for an interface whose parent is in the container as well, the
//! parent's host end: what the container sends then is the parent's, as if it had come tagged out of the container.
//!
//! | journey | hook | stages |
//! |---|---|---|
//! | [`from_interface`] | tc ingress of the host end | port → parse → police → find, or flood → deliver, or push → out by the trunk |
//! | [`from_trunk`] | tc ingress of a master | parse → find, or flood → pop → deliver |
//! | [`to_trunk`] | tc egress of a parent's host end | parse → find → pop → deliver |
//!
//! A VLAN of a master is a broadcast domain of its own: the FDB has its stations under the master and the VLAN, and under a
//! parent, where a VLAN has one interface only, that interface under [`Mac::default`].

use crate::abi::vlan::{MAX_BRIDGE_PORTS, MemberKey};
use crate::abi::{NO_SLOT, PORT_WITHIN, Port, PortKey, Station, StationKey};
use crate::stages::port::Missing;
use crate::stages::{count, deliver, police, port};
use crate::tables::Lane;
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict, Way};
use crate::wire::Frame;
use crate::wire::address::Mac;
use crate::wire::packet::Packet;
use crate::{Tables, wire};

/// The bits of a tag that are the VLAN.
const VID: u16 = 0x0fff;

/// A frame that a container sent by a VLAN interface with the host end `here`.
#[inline(always)]
pub fn from_interface<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let port = match port::entry(here, Missing::Drop, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables),
    };
    let bytes = packet.length();
    let verdict = match outwards(packet, here, &port, tables) {
        // The node has nothing to do with it.
        Err(Stop::Pass(PassReason::TooBig)) => Verdict::Drop(DropReason::TooBig),
        decided => decided.into(),
    };
    count::sent(&verdict, &port, here, bytes, tables);
    verdict
}

#[inline(always)]
fn outwards<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    tables: &T,
) -> Result<Delivery, Stop> {
    let frame = wire::frame(packet).map_err(|_| Stop::Drop(DropReason::Truncated))?;
    if !frame.source.is_valid_source() {
        return Err(Stop::Drop(DropReason::SourceInvalid));
    }
    if let Some(tag) = wire::outermost(packet, &frame) {
        let reason = if tag.is_service() { DropReason::ServiceTag } else { DropReason::StackedTags };
        return Err(Stop::Drop(reason));
    }
    police::rate(packet, &frame, port, tables)?;
    if port.flags & PORT_WITHIN != 0 {
        return tagged(packet, port, Way::Into);
    }
    if frame.destination.is_group() {
        copies(packet, port.bridge, port.vid, here, tables);
        return tagged(packet, port, Way::Wire);
    }
    let key = StationKey { bridge: port.bridge, vid: port.vid, mac: frame.destination };
    match tables.station(&key) {
        Some(station) if station.ifindex == here => Err(Stop::Drop(DropReason::Hairpin)),
        Some(station) => deliver::from_container(packet, &station),
        None => tagged(packet, port, Way::Wire),
    }
}

/// Puts the VLAN's tag on, for the trunk.
#[inline(always)]
fn tagged<P: Packet>(packet: &mut P, port: &Port, way: Way) -> Result<Delivery, Stop> {
    if !packet.push_tag(port.vid) {
        return Err(Stop::Drop(DropReason::NotTagged));
    }
    Ok(Delivery { ifindex: port.bridge, slot: NO_SLOT, way })
}

/// A frame that came in by a master, the interface `here`.
#[inline(always)]
pub fn from_trunk<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let bytes = packet.length();
    let verdict = inwards(packet, here, tables).into();
    count::arrived(&verdict, here, bytes, tables);
    verdict
}

#[inline(always)]
fn inwards<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Result<Delivery, Stop> {
    let (frame, tci) = customers(packet)?;
    if frame.destination.is_group() {
        // Others on the node may listen as well, so the frame goes on as it came.
        if tables.member(&MemberKey { bridge: here, position: 0 }).is_some() && packet.pop_tag() {
            copies(packet, here, tci & VID, here, tables);
            packet.push_tag(tci);
        }
        return Err(Stop::Pass(PassReason::NoInterface));
    }
    let key = StationKey { bridge: here, vid: tci & VID, mac: frame.destination };
    let station = tables.station(&key).ok_or(Stop::Pass(PassReason::NoInterface))?;
    untagged(packet, &station)?;
    Ok(deliver::into_container(packet, &station))
}

/// A frame on its way to the container behind the host end `here`, which has VLAN interfaces on the interface behind it.
#[inline(always)]
pub fn to_trunk<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let bytes = packet.length();
    let verdict = within(packet, here, tables).into();
    count::arrived(&verdict, here, bytes, tables);
    verdict
}

#[inline(always)]
fn within<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Result<Delivery, Stop> {
    let (_, tci) = customers(packet)?;
    let key = StationKey { bridge: here, vid: tci & VID, mac: Mac::default() };
    let station = tables.station(&key).ok_or(Stop::Pass(PassReason::NoInterface))?;
    untagged(packet, &station)?;
    Ok(deliver::through_port(packet, &station))
}

/// A frame with a customer's tag, and that tag.
#[inline(always)]
fn customers<P: Packet>(packet: &P) -> Result<(Frame, u16), Stop> {
    let other = Stop::Pass(PassReason::NoInterface);
    let frame = wire::frame(packet).map_err(|_| other)?;
    match wire::outermost(packet, &frame) {
        Some(tag) if !tag.is_service() => Ok((frame, tag.tci())),
        _ => Err(other),
    }
}

/// Takes the tag off a frame for `station`.
#[inline(always)]
fn untagged<P: Packet>(packet: &mut P, station: &Station) -> Result<(), Stop> {
    deliver::fits_tagged(packet, station).map_err(|_| Stop::Drop(DropReason::TooBig))?;
    if packet.pop_tag() { Ok(()) } else { Err(Stop::Drop(DropReason::NotTagged)) }
}

/// Sends copies of an untagged frame to every interface in a VLAN of a master, but for the one that it came by.
#[inline(always)]
fn copies<P: Packet, T: Tables>(packet: &mut P, master: u32, vid: u16, came_by: u32, tables: &T) {
    let bytes = packet.length();
    tables.repeat(MAX_BRIDGE_PORTS, |position| {
        let Some(member) = tables.member(&MemberKey { bridge: master, position }) else {
            return false;
        };
        let there = member.ifindex;
        // A hole in the list has no port.
        if there != came_by
            && let Some(receiver) = tables.port(&PortKey { ifindex: there })
            && receiver.vid == vid
            && packet.copy_to(there)
        {
            tables.count(receiver.slot, Lane::ToFast, bytes);
        }
        true
    });
}
