//! The journeys of an uplink, a trunk port of a bridge that leads out of the node. What comes untagged is the kernel's
//! bridge's, but for what is for a known container. What comes with a tag is for ports in VLANs, of which the kernel's bridge
//! knows nothing: it is delivered, flooded or dropped here.
//!
//! | journey | hook | stages |
//! |---|---|---|
//! | [`super::from_nic`] | XDP of the uplink | port → parse → admit → classify → learn → find → form → deliver |
//! | [`from_uplink`] | tc ingress of the uplink | port → parse → admit → classify → learn → find, or flood → path → form → deliver |
//! | [`to_uplink`] | tc egress of the uplink | port → parse → drop what was tagged and not judged → notice |

use super::{Destination, formed};
use crate::abi::vlan::VID_ANY;
use crate::abi::{PORT_BLOCKED, Port, PortKey, Station, StationKey};
use crate::stages::classify::{self, Vlan};
use crate::stages::port::Missing;
use crate::stages::{count, deliver, find, flood, flow_affinity, learn, port, track_kernel_flow};
use crate::verdict::{DropReason, PassReason, Stop, Verdict};
use crate::wire::Frame;
use crate::wire::packet::{Packet, Readable, Tag};
use crate::{Tables, wire};

/// The bits of a tag that are the VLAN.
const VID: u16 = 0x0fff;

/// A frame that came in by an uplink, the interface `here`.
#[inline(always)]
pub fn from_uplink<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let bytes = packet.length();
    let port = match port::entry(here, Missing::Drop, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, bytes, tables),
    };
    let verdict = match inwards(packet, here, &port, tables) {
        Ok(Destination::One(delivery)) => Verdict::Deliver(delivery),
        Ok(Destination::Everybody(vlan)) => {
            Verdict::Flooded(flood::everywhere(packet, vlan, &port, here, tables))
        }
        Err(stop) => Err(stop).into(),
    };
    count::sent(&verdict, &port, here, bytes, tables);
    verdict
}

#[inline(always)]
fn inwards<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    tables: &T,
) -> Result<Destination, Stop> {
    let frame = wire::frame(packet).map_err(|_| Stop::Drop(DropReason::Truncated))?;
    match addressee(packet, &frame, here, port, tables)? {
        Addressee::Everybody(vlan) => Ok(Destination::Everybody(vlan)),
        Addressee::InVlan(station, vlan) => {
            formed(packet, vlan, &station, tables)?;
            Ok(Destination::One(deliver::into_container(packet, &station)))
        }
        Addressee::Bridged(station) => {
            let receiver =
                tables.port(&PortKey { ifindex: station.ifindex }).ok_or(Stop::Pass(PassReason::NoPort))?;
            flow_affinity::ours(packet, &frame, &receiver, tables)?;
            deliver::fits(packet, &station)?;
            Ok(Destination::One(deliver::into_container(packet, &station)))
        }
    }
}

/// For whom a frame is that came in by an uplink.
pub(super) enum Addressee {
    /// A station of its VLAN.
    InVlan(Station, Vlan),
    /// A station of the kernel's bridge.
    Bridged(Station),
    /// Every member of its VLAN.
    Everybody(Vlan),
}

/// For whom a frame is that came in by the uplink `here`; whoever sent it has been heard.
///
/// # Errors
/// Drops what nobody may send there. Passes what is the kernel's bridge's: what comes untagged and is for no known station.
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
            from_outside(&StationKey { bridge: port.bridge, vid: 0, mac: frame.source }, 0, here, tables)?;
            find::station(frame, port, here, tables).map(Addressee::Bridged)
        }
        // Whoever gets it takes that off.
        Some(tag) if is_priority(tag) => Err(Stop::Pass(PassReason::Tagged)),
        Some(_) => in_vlan(packet, frame, here, port, tables),
    }
}

/// A priority and no VLAN.
#[inline(always)]
fn is_priority(tag: Tag) -> bool {
    !tag.is_service() && tag.tci() & VID == 0
}

/// What becomes of a frame that comes by an uplink that does not forward. The kernel's bridge drops it too, unless it is one for
/// bridges themselves, from which it learns when that changes; with VLANs it has nothing to do.
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
    from_outside(
        &StationKey { bridge: port.bridge, vid: VID_ANY, mac: frame.source },
        vlan.vid,
        here,
        tables,
    )?;
    let key = StationKey { bridge: port.bridge, vid: VID_ANY, mac: frame.destination };
    if frame.destination.is_group() {
        return Ok(Addressee::Everybody(vlan));
    }
    let Some(station) = tables.station(&key).or_else(|| learn::beyond(&key, tables)) else {
        return Ok(Addressee::Everybody(vlan));
    };
    if station.ifindex == here {
        return Err(Stop::Drop(DropReason::Hairpin));
    }
    Ok(Addressee::InVlan(station, vlan))
}

/// Lets a frame in unless its sender's place is on this node: a container is nowhere else, whatever a wire says. Anybody else is
/// where the frame came in.
#[inline(always)]
fn from_outside<T: Tables>(sender: &StationKey, vid: u16, here: u32, tables: &T) -> Result<(), Stop> {
    if tables.station(sender).is_some() {
        return Err(Stop::Drop(DropReason::Impostor));
    }
    learn::heard(sender, vid, here, tables);
    Ok(())
}

/// A frame on its way out by an uplink, the interface `here`. What the kernel's bridge forwards there may not choose a VLAN;
/// the node itself may, and what it routes.
#[inline(always)]
pub fn to_uplink<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    if packet.take_judged() {
        return Verdict::Pass(PassReason::Judged);
    }
    let bytes = packet.length();
    let port = match port::entry(here, Missing::Drop, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, bytes, tables),
    };
    let verdict = Err(outwards(packet, here, &port, tables)).into();
    count::received(&verdict, &port, here, bytes, tables);
    verdict
}

#[inline(always)]
fn outwards<P: Packet, T: Tables>(packet: &mut P, here: u32, port: &Port, tables: &T) -> Stop {
    let Ok(frame) = wire::frame(packet) else { return Stop::Drop(DropReason::Truncated) };
    if frame.is_tagged() && is_bridged(packet.origin(), port, tables) {
        return Stop::Drop(DropReason::KernelsWay);
    }
    if !frame.is_tagged() {
        let station = |mac| StationKey { bridge: port.bridge, vid: 0, mac };
        learn::sent_from_within(&station(frame.source), here, tables);
        // To a station that is known the programs would have taken it: that the kernel has it, is for a reason.
        if learn::beyond(&station(frame.destination), tables).is_some() {
            track_kernel_flow::kernel_flow(packet, &frame, port, here, tables);
        }
    }
    Stop::Pass(PassReason::ByKernel)
}

/// Whether what came into the node by `origin` came by a port of the uplink's bridge.
#[inline(always)]
fn is_bridged<T: Tables>(origin: u32, port: &Port, tables: &T) -> bool {
    origin != 0
        && origin != port.bridge
        && tables.port(&PortKey { ifindex: origin }).is_some_and(|sender| sender.bridge == port.bridge)
}
