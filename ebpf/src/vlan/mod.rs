//! The journeys of ports in VLANs. The kernel's bridge may know no VLANs, so for these ports it is never asked: what
//! a member sends is delivered, flooded or dropped here, and nothing reaches a member that was not judged here.
//!
//! | journey | hook | stages |
//! |---|---|---|
//! | [`from_member`] | tc ingress of a host veth end | port → parse → vouch → admit → classify → police → find, or flood → isolate → form → deliver |
//! | [`to_member`] | tc egress of a host veth end | port → drop what was not judged |

mod interface;
mod nic;
mod uplink;

pub use interface::{from_interface, from_trunk, to_trunk};
pub use nic::from_nic;
pub use uplink::{from_uplink, to_uplink};

use crate::abi::vlan::VID_ANY;
use crate::abi::{Port, PortKey, Station, StationKey};
use crate::stages::classify::{self, Vlan};
use crate::stages::neighbor_proxy::Within;
use crate::stages::port::Missing;
use crate::stages::{
    count, deliver, flood, isolate, learn, mac_filter, neighbor_proxy, police, port, retag, source_guard,
};
use crate::verdict::{Delivery, DropReason, Stop, Verdict};
use crate::wire::packet::Packet;
use crate::{Tables, wire};

/// Where a member's frame goes.
enum Destination {
    One(Delivery),
    Everybody(Vlan),
}

/// A frame that a container in VLANs sent, at the host end `here` of its veth.
#[inline(always)]
pub fn from_member<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let port = match port::entry(here, Missing::Drop, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables),
    };
    let bytes = packet.length();
    let verdict = match across(packet, here, &port, tables) {
        Ok(Destination::One(delivery)) => Verdict::Deliver(delivery),
        Ok(Destination::Everybody(vlan)) => {
            Verdict::Flooded(flood::everywhere(packet, vlan, &port, here, tables))
        }
        Err(Stop::Drop(reason)) => Verdict::Drop(reason),
        // Whatever another port would leave to the kernel: this one has nobody to leave it to.
        Err(Stop::Pass(_)) => Verdict::Drop(DropReason::KernelsWay),
    };
    count::sent(&verdict, &port, here, bytes, tables);
    verdict
}

#[inline(always)]
fn across<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    tables: &T,
) -> Result<Destination, Stop> {
    let frame = wire::frame(packet).map_err(|_| Stop::Drop(DropReason::Truncated))?;
    source_guard::addresses(packet, &frame, port, here, tables)?;
    mac_filter::member(&frame, port)?;
    let vlan = classify::classify(packet, &frame, port, here, tables)?;
    // Whatever becomes of it, it was sent.
    police::rate(packet, &frame, port, tables)?;
    if frame.destination.is_reserved() {
        return Err(Stop::Drop(DropReason::ReservedGroup));
    }
    police::flood(&frame, port, tables)?;
    let key = StationKey { bridge: port.bridge, vid: VID_ANY, mac: frame.destination };
    if frame.destination.is_group() {
        let within = Within { vid: vlan.vid, stations: VID_ANY };
        let is_answered = neighbor_proxy::turned(packet, &frame, port, within, here, tables);
        return Ok(if is_answered {
            // Never into the peer: VLAN interfaces behind the port have theirs from its egress, and a gateway's peer is in the node's own
            // namespace, where nothing can be redirected to.
            let asker = Station { ifindex: here, slot: port.slot, ..Station::default() };
            Destination::One(deliver::through_port(packet, &asker))
        } else {
            Destination::Everybody(vlan)
        });
    }
    let Some(station) = tables.station(&key).or_else(|| learn::beyond(&key, tables)) else {
        return Ok(Destination::Everybody(vlan));
    };
    if station.ifindex == here {
        return Err(Stop::Drop(DropReason::Hairpin));
    }
    isolate::apart(port, &station)?;
    formed(packet, vlan, &station, tables)?;
    deliver::from_container(packet, &station).map(Destination::One)
}

/// Brings a frame into the form that its VLAN has at `station`.
#[inline(always)]
fn formed<P: Packet, T: Tables>(
    packet: &mut P,
    vlan: Vlan,
    station: &Station,
    tables: &T,
) -> Result<(), Stop> {
    let receiver = tables.port(&PortKey { ifindex: station.ifindex });
    let form = receiver.and_then(|receiver| retag::at(vlan.vid, &receiver, station.ifindex, tables));
    let form = form.ok_or(Stop::Drop(DropReason::OtherVlan))?;
    deliver::fits(packet, station).map_err(|_| Stop::Drop(DropReason::TooBig))?;
    retag::bring(packet, vlan, vlan.came, form).map(|_| ())
}

/// A frame on its way to the container behind the host end `here`, which is in VLANs.
#[inline(always)]
pub fn to_member<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    if packet.take_judged() {
        return Verdict::Pass(crate::PassReason::Judged);
    }
    let port = match port::entry(here, Missing::Drop, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables),
    };
    let verdict = Verdict::Drop(DropReason::KernelsWay);
    count::received(&verdict, &port, here, packet.length(), tables);
    verdict
}
