//! neighbour proxy: answers ARP requests and neighbour solicitations for known addresses. Reports call the stage `answer`.
//!
//! A request goes to a group, and the kernel's bridge copies it to each of its ports, of which one answers: a thousand containers that
//! look for each other cost a thousand times a thousand copies. Containers' addresses are known (`ADDRESSES`), so the request is turned
//! into the reply and sent back. The kernel's bridge calls this neighbour suppression (`br_do_proxy_suppress_arp`,
//! `br_do_suppress_nd`, net/bridge/br_arp_nd_proxy.c); here it covers only addresses that the agent has written.
//!
//! Everything that others have to hear goes on: duplicate address probes (unspecified sender, RFC 5227 and RFC 4862), announcements,
//! whatever is no plain request, requests for a container that the asker may not reach or that is not there, and all where others' rules are
//! heeded, which may be about who asks whom.
//!
//! A part of its own in `from_container` and `from_host`, so that no other packet pays for it. Ports in VLANs call it in their pipeline,
//! which floods what is not answered.

mod arp;
mod nd;
mod request;

use self::request::Request;
use crate::Tables;
use crate::abi::{
    AddressKey, PORT_ALONE, PORT_HEEDED, PORT_ISOLATED, PORT_XDP, Port, STATION_ASIDE, STATION_MOVED,
    STATION_PEER_UP, Station,
};
use crate::stages::deliver;
use crate::verdict::{Delivery, Way};
use crate::wire::address::Mac;
use crate::wire::{EtherType, Frame, Packet};

/// The VLAN of a request, and the one that stations have in the FDB of its bridge.
#[derive(Clone, Copy, Debug)]
pub struct Within {
    /// The request's VLAN.
    pub vid: u16,
    /// As in [`crate::abi::StationKey::vid`].
    pub stations: u16,
}

/// Whether a frame to a group may be a request.
#[inline(always)]
pub fn is_candidate(frame: &Frame) -> bool {
    matches!(frame.ether_type, EtherType::ARP | EtherType::IPV6)
}

/// Answers the container behind `port`. None where its request is not answered.
#[inline(always)]
pub fn to_container<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    within: Within,
    here: u32,
    tables: &T,
) -> Option<Delivery> {
    if !answer(packet, frame, port, within, here, tables) {
        return None;
    }
    let asker = Station { ifindex: here, slot: port.slot, ..Station::default() };
    if port.flags & PORT_XDP != 0 {
        return Some(deliver::through_port(packet, &asker));
    }
    packet.become_own();
    Some(Delivery { ifindex: here, slot: port.slot, way: Way::Peer })
}

/// Turns a request by `port` into its reply. False where the address is not known.
#[inline(always)]
pub fn answer<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    within: Within,
    here: u32,
    tables: &T,
) -> bool {
    let Some(request) = request(packet, frame, port) else { return false };
    let Some((asked, ifindex)) = known(&request, port.bridge, within, tables) else { return false };
    let apart = (port.flags | asked.flags) & PORT_ALONE | port.flags & asked.flags & PORT_ISOLATED;
    ifindex != here && apart == 0 && write(packet, frame, &request, asked.mac)
}

/// Answers the node's own request, which it sent by the bridge device `port`. None where it is not answered.
#[inline(always)]
pub fn to_host<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    tables: &T,
) -> Option<Delivery> {
    let request = request(packet, frame, port)?;
    let within = Within { vid: port.vid, stations: port.vid };
    let (asked, _) = known(&request, port.bridge, within, tables)?;
    write(packet, frame, &request, asked.mac).then_some(Delivery {
        ifindex: port.bridge,
        slot: port.slot,
        way: Way::Into,
    })
}

/// The request in a frame; none where it is no plain one, or others have to hear it.
#[inline(always)]
fn request<P: Packet>(packet: &mut P, frame: &Frame, port: &Port) -> Option<Request> {
    if frame.inline_tags != 0 || port.flags & PORT_HEEDED != 0 {
        return None;
    }
    let request = match frame.ether_type {
        EtherType::ARP if frame.destination.is_broadcast() => {
            readable(packet, arp::END)?;
            arp::request(packet, frame)?
        }
        EtherType::IPV6 => {
            readable(packet, nd::END)?;
            nd::request(packet, frame)?
        }
        _ => return None,
    };
    (!request.asker.is_unspecified() && !request.asker.is(request.target)).then_some(request)
}

/// Makes a frame's first `bytes` bytes readable. None where it has fewer.
#[inline(always)]
fn readable<P: Packet>(packet: &mut P, bytes: u32) -> Option<()> {
    let last: Option<u16> = packet.load(bytes - 2);
    (last.is_some() || packet.linearize(bytes)).then_some(())
}

/// The container that is asked for, if it is up and the kernel's bridge does not judge what goes there: its port, and the interface. In the request's VLAN, as other VLANs may use the same
/// address.
#[inline(always)]
fn known<T: Tables>(request: &Request, bridge: u32, within: Within, tables: &T) -> Option<(Port, u32)> {
    let key = AddressKey::new(bridge, within.vid, request.target);
    let (asked, station) = tables.resident(&key, within.stations)?;
    (station.flags & (STATION_PEER_UP | STATION_MOVED | STATION_ASIDE) == STATION_PEER_UP)
        .then_some((asked, station.ifindex))
}

/// Writes the reply in the place of the request: `mac` has the address. False where the kernel has no memory for it.
#[inline(always)]
fn write<P: Packet>(packet: &mut P, frame: &Frame, request: &Request, mac: Mac) -> bool {
    let written = if frame.ether_type == EtherType::ARP {
        arp::write(packet, frame, request, mac)
    } else {
        nd::write(packet, frame, request, mac)
    };
    written.is_some() && packet.store(0, &[frame.source, mac])
}
