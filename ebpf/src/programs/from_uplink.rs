//! `from_uplink`: tc ingress of an uplink, a trunk port of a bridge that leads out of the node.
//!
//! Untagged frames are the kernel's bridge's, except those for known containers. Tagged frames are for ports in VLANs, of which
//! the kernel's bridge knows nothing: they are delivered, flooded or dropped.

use super::from_member::retag_for;
use crate::Tables;
use crate::abi::{
    PORT_ALONE, PORT_BLOCKED, PORT_CHECKED, PORT_ISOLATED, PORT_MAPPED, Port, PortKey, STATION_HOST,
    STATION_MOVED, Station, StationKey,
};
use crate::stages::classify::{self, VID, Vlan};
use crate::stages::flood::{self, Destination};
use crate::stages::port::Missing;
use crate::stages::{announce, count, deliver, find, flow_affinity, learn, parse, port};
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
    let mut vid = 0;
    let verdict = match stages(packet, here, &port, tables) {
        Ok(Destination::One(delivery)) => Verdict::Deliver(delivery),
        Ok(Destination::Vlan(vlan)) => {
            vid = vlan.vid;
            Verdict::Flooded(flood::to_members(packet, vlan, &port, here, tables))
        }
        Err(stop) => stop.into(),
    };
    // Verifier: last, or all that follows has a state for each answer.
    if matches!(verdict, Verdict::Flooded(_) | Verdict::Pass(PassReason::Group | PassReason::Away)) {
        announce::hear_beyond(packet, &port, vid, here, tables);
    }
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
        Addressee::Moved(hint, vlan) => {
            tables.hear_station(&hint, here);
            let vid = vlan.map_or(0, |vlan| vlan.vid);
            learn::heard(&StationKey { vid, ..hint }, vid, here, tables);
            // Others have to hear it: the kernel's bridge, too.
            vlan.map(Destination::Vlan).ok_or(Stop::Pass(PassReason::Away))
        }
        Addressee::Vlan(vlan) => Ok(Destination::Vlan(vlan)),
        Addressee::InVlan(station, vlan) => {
            retag_for(packet, vlan, &station, tables)?;
            Ok(Destination::One(deliver::into_container(packet, &station)))
        }
        Addressee::Bridged(station) => {
            let receiver =
                tables.port(&PortKey { ifindex: station.ifindex }).ok_or(Stop::Pass(PassReason::NoPort))?;
            flow_affinity::check(packet, &frame, (&receiver, [here, station.ifindex]), tables)?;
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
    /// Whoever has to hear that the sender, the station of an open port so far by this entry of `FDB`, is beyond the uplink; in its
    /// VLAN if it has one.
    Moved(StationKey, Option<Vlan>),
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
            let sender = StationKey { bridge: port.bridge, vid: 0, mac: frame.source };
            if gives_way(tables.station(&sender), tables)? {
                return Ok(Addressee::Moved(sender, None));
            }
            learn::heard(&sender, 0, here, tables);
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
    let hint = announce::hint_in_vlan(&sender, tables);
    if gives_way(tables.station(&hint), tables)? {
        return Ok(Addressee::Moved(hint, Some(vlan)));
    }
    learn::heard(&sender, vlan.vid, here, tables);
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

/// Whether the sender of a frame that came by an uplink was at an open port so far, which this says of it.
///
/// # Errors
/// Drops a frame with the source address of the node, or of a container whose port is checked: it is on this node, whatever an uplink
/// brings. Also of an isolated one: sent back by somebody outside, its frames would reach those that it may not reach.
#[inline(always)]
fn gives_way<T: Tables>(station: Option<Station>, tables: &T) -> Result<bool, Stop> {
    match station {
        Some(station) if station.flags & STATION_MOVED == 0 => {
            let is_free = |port: Port| port.flags & (PORT_CHECKED | PORT_ISOLATED | PORT_ALONE) == 0;
            let port = tables.port(&PortKey { ifindex: station.ifindex });
            let gives_way = station.flags & STATION_HOST == 0 && port.is_some_and(is_free);
            if gives_way { Ok(true) } else { Err(Stop::Drop(DropReason::Impostor)) }
        }
        _ => Ok(false),
    }
}
