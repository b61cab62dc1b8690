//! `from_vlan`: tc ingress of the host end of a VLAN interface, a veth in place of a VLAN device.
//!
//! The host end is joined to a trunk. The trunk is a master in the node's namespace, or, where the interface's parent is in the
//! container too, the parent's host end: then a frame goes on as the parent's, as if the container had sent it tagged.
//! A master's VLAN is a broadcast domain: the FDB has its stations under master and VLAN.

use crate::Tables;
use crate::abi::{NO_SLOT, PORT_WITHIN, Port, StationKey};
use crate::stages::port::Missing;
use crate::stages::{count, deliver, flood, parse, police, port, retag};
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict, Way};
use crate::wire;
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
        // No other path leads to the container.
        Err(Stop::Pass(PassReason::TooBig)) => Verdict::Drop(DropReason::TooBig),
        result => result.into(),
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
) -> Result<Delivery, Stop> {
    let frame = parse::frame(packet)?;
    if !frame.source.is_valid_source() {
        return Err(Stop::Drop(DropReason::SourceInvalid));
    }
    if let Some(tag) = wire::outermost(packet, &frame) {
        let reason = if tag.is_service() { DropReason::ServiceTag } else { DropReason::StackedTags };
        return Err(Stop::Drop(reason));
    }
    police::rate(packet, &frame, port, tables)?;
    if port.flags & PORT_WITHIN != 0 {
        return to_trunk(packet, port, Way::Into);
    }
    if frame.destination.is_group() {
        flood::to_vlan_interfaces(packet, port.bridge, port.vid, here, tables);
        return to_trunk(packet, port, Way::Wire);
    }
    let key = StationKey { bridge: port.bridge, vid: port.vid, mac: frame.destination };
    match tables.station(&key) {
        Some(station) if station.ifindex == here => Err(Stop::Drop(DropReason::Hairpin)),
        Some(station) => deliver::from_container(packet, &station),
        None => to_trunk(packet, port, Way::Wire),
    }
}

/// Pushes the VLAN's tag, for the trunk.
#[inline(always)]
fn to_trunk<P: Packet>(packet: &mut P, port: &Port, way: Way) -> Result<Delivery, Stop> {
    retag::tag(packet, port.vid)?;
    Ok(Delivery { ifindex: port.bridge, slot: NO_SLOT, way })
}
