//! `from_uplink`: tc ingress of an uplink, a trunk port of a bridge that leads out of the node.
//!
//! Untagged frames are the kernel's bridge's, except those for known containers. Tagged frames are for ports in VLANs, of which
//! the kernel's bridge knows nothing: they are delivered, flooded or dropped.

use super::from_member::retag_for;
use crate::Tables;
use crate::abi::vlan::VID_ANY;
use crate::abi::{PORT_BLOCKED, PORT_MAPPED, Port, PortKey, Station, StationKey};
use crate::stages::classify::{self, VID, Vlan};
use crate::stages::flood::{self, Destination};
use crate::stages::port::Missing;
use crate::stages::{count, deliver, find, flow_affinity, learn, parse, port};
use crate::verdict::{DropReason, PassReason, Stop, Verdict};
use crate::wire;
use crate::wire::packet::Tag;
use crate::wire::{Frame, Packet, Readable};

/// The whole program. `here` is the uplink.
#[inline(always)]
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let bytes = packet.length();
    let port = match port::entry(here, Missing::Drop, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, bytes, tables).into(),
    };
    let verdict = match stages(packet, here, &port, tables) {
        Ok(Destination::One(delivery)) => Verdict::Deliver(delivery),
        Ok(Destination::Vlan(vlan)) => Verdict::Flooded(flood::to_members(packet, vlan, &port, here, tables)),
        Err(stop) => stop.into(),
    };
    count::sent(&verdict, &port, here, bytes, tables);
    // Where it came in is a fact that the bridge forgets, and no sender can choose.
    if port.flags & PORT_MAPPED != 0 && matches!(verdict, Verdict::Pass(PassReason::ToHost)) {
        packet.mark_outside();
    }
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
    match addressee(packet, &frame, here, port, tables)? {
        Addressee::Vlan(vlan) => Ok(Destination::Vlan(vlan)),
        Addressee::InVlan(station, vlan) => {
            retag_for(packet, vlan, &station, tables)?;
            Ok(Destination::One(deliver::into_container(packet, &station)))
        }
        Addressee::Bridged(station) => {
            let receiver =
                tables.port(&PortKey { ifindex: station.ifindex }).ok_or(Stop::Pass(PassReason::NoPort))?;
            flow_affinity::check(packet, &frame, &receiver, tables)?;
            deliver::not_aside(&station)?;
            deliver::fits(packet, &station)?;
            Ok(Destination::One(deliver::into_container(packet, &station)))
        }
    }
}

/// The addressee of a frame that came in by an uplink.
pub(super) enum Addressee {
    /// A station in its VLAN.
    InVlan(Station, Vlan),
    /// A station on the kernel's bridge.
    Bridged(Station),
    /// Every member of its VLAN.
    Vlan(Vlan),
}

/// The addressee of a frame that came in by the uplink `here`. Learns the sender.
///
/// # Errors
/// Drops what may not come by an uplink. Passes what is the kernel's bridge's: untagged frames for no known station.
#[inline(always)]
pub(super) fn addressee<P: Readable, T: Tables>(
    packet: &P,
    frame: &Frame,
    here: u32,
    port: &Port,
    tables: &T,
) -> Result<Addressee, Stop> {
    if !frame.source.is_valid_source() {
        return Err(Stop::Drop(DropReason::SourceInvalid));
    }
    let tag = wire::outermost(packet, frame);
    if port.flags & PORT_BLOCKED != 0 {
        return Err(blocked(tag));
    }
    match tag {
        None => {
            learn_sender(&StationKey { bridge: port.bridge, vid: 0, mac: frame.source }, 0, here, tables)?;
            find::station(frame, port, here, tables).map(Addressee::Bridged)
        }
        // The receiver takes a priority tag off.
        Some(tag) if is_priority(tag) => Err(Stop::Pass(PassReason::Tagged)),
        Some(_) => in_vlan(packet, frame, here, port, tables),
    }
}

/// Whether a tag has a priority and no VLAN.
#[inline(always)]
fn is_priority(tag: Tag) -> bool {
    !tag.is_service() && tag.tci() & VID == 0
}

/// The end of a frame that came by an uplink which does not forward. The kernel's bridge drops it as well, except BPDUs, from
/// which it learns when to forward; tagged frames do not concern it.
#[inline(always)]
fn blocked(tag: Option<Tag>) -> Stop {
    match tag {
        Some(tag) if !is_priority(tag) => Stop::Drop(DropReason::Blocked),
        _ => Stop::Pass(PassReason::Blocked),
    }
}

#[inline(always)]
fn in_vlan<P: Readable, T: Tables>(
    packet: &P,
    frame: &Frame,
    here: u32,
    port: &Port,
    tables: &T,
) -> Result<Addressee, Stop> {
    let vlan = classify::classify(packet, frame, port, here, tables)?;
    if frame.destination.is_reserved() {
        return Err(Stop::Drop(DropReason::ReservedGroup));
    }
    let sender = StationKey { bridge: port.bridge, vid: vlan.vid, mac: frame.source };
    if tables.station(&StationKey { vid: VID_ANY, ..sender }).is_some() {
        return Err(Stop::Drop(DropReason::Impostor));
    }
    learn_sender(&sender, vlan.vid, here, tables)?;
    let key = StationKey { mac: frame.destination, ..sender };
    if frame.destination.is_group() {
        return Ok(Addressee::Vlan(vlan));
    }
    let Some(station) = find::in_vlan(key, tables) else {
        return Ok(Addressee::Vlan(vlan));
    };
    if station.ifindex == here {
        return Err(Stop::Drop(DropReason::Hairpin));
    }
    Ok(Addressee::InVlan(station, vlan))
}

/// Learns that the sender is beyond the uplink `here`.
///
/// # Errors
/// Drops a frame with a container's source address: a container is on this node, whatever an uplink brings.
#[inline(always)]
fn learn_sender<T: Tables>(sender: &StationKey, vid: u16, here: u32, tables: &T) -> Result<(), Stop> {
    if tables.station(sender).is_some() {
        return Err(Stop::Drop(DropReason::Impostor));
    }
    learn::heard(sender, vid, here, tables);
    Ok(())
}
