//! deliver: the last checks, then all edits at once.

use crate::Tables;
use crate::abi::{NO_SLOT, STATION_ALONE, STATION_PEER_UP, STATION_QUEUED, Station};
use crate::nat::rewrite::Macs;
use crate::tables::{Route, RouteQuery};
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Way};
use crate::wire::address::Address;
use crate::wire::packet::Packet;
use crate::wire::{Frame, Ip};

const ETHERNET_BYTES: u32 = 14;
const TAG_BYTES: u32 = 4;

/// Hands a frame that came out of a container to `station`: into its peer where that is up and nothing has to be
/// passed on the way, else through its port.
///
/// # Errors
/// Passes what does not fit, and drops what is for a container that no container reaches.
#[inline(always)]
pub fn from_container<P: Packet>(packet: &mut P, station: &Station) -> Result<Delivery, Stop> {
    fits(packet, station)?;
    // One test for both, so that it costs nothing where neither is.
    if station.flags & (STATION_PEER_UP | STATION_QUEUED | STATION_ALONE) != STATION_PEER_UP {
        if station.flags & STATION_ALONE != 0 {
            return Err(Stop::Drop(DropReason::IngressPolicy));
        }
        return Ok(into_container(packet, station));
    }
    Ok(into_peer(packet, station))
}

/// The same for a frame that has been found to fit.
#[inline(always)]
pub fn into_container<P: Packet>(packet: &mut P, station: &Station) -> Delivery {
    if station.flags & (STATION_PEER_UP | STATION_QUEUED) != STATION_PEER_UP {
        return through_port(packet, station);
    }
    into_peer(packet, station)
}

/// Gives a packet that came in from outside the Ethernet addresses for its container, and a header for them where it has none. The
/// first of the edits, for it is the only one that may fail.
///
/// # Errors
/// Drops it where the kernel has no memory for the header: its connection has been followed.
#[inline(always)]
pub fn address<P: Packet>(packet: &mut P, macs: Macs) -> Result<(), Stop> {
    if packet.address(macs.destination, macs.source) { Ok(()) } else { Err(Stop::Drop(DropReason::NoMemory)) }
}

#[inline(always)]
fn into_peer<P: Packet>(packet: &mut P, station: &Station) -> Delivery {
    packet.become_own();
    Delivery { ifindex: station.ifindex, slot: station.slot, way: Way::Peer }
}

/// Hands a frame from the node's own stack to `station`. From a tc egress hook only its port can be reached.
///
/// # Errors
/// Passes what does not fit.
#[inline(always)]
pub fn from_host<P: Packet>(packet: &mut P, station: &Station) -> Result<Delivery, Stop> {
    fits(packet, station)?;
    Ok(through_port(packet, station))
}

/// Where an answer goes: by the kernel's route from its bridge, between the ends that it will have: from whom and to whom.
///
/// # Errors
/// Passes what has no route, does not fit, or has come to its last hop.
#[inline(always)]
pub fn routed<P: Packet, T: Tables>(
    packet: &P,
    frame: &Frame,
    ip: &Ip,
    ends: (Address, Address),
    bridge: u32,
    tables: &T,
) -> Result<Delivery, Stop> {
    survives(ip)?;
    route(packet, frame.payload, ends, bridge, tables).map(by)
}

/// To the next hop of a route.
#[inline(always)]
pub const fn by(route: Route) -> Delivery {
    Delivery { ifindex: route.ifindex, slot: NO_SLOT, way: Way::Neighbor(route.next_hop) }
}

/// The kernel's route from `bridge`, between these two ends, for the packet whose IP header is at `header`.
///
/// # Errors
/// Passes what has none, or does not fit.
#[inline(always)]
pub fn route<P: Packet, T: Tables>(
    packet: &P,
    header: u32,
    (source, destination): (Address, Address),
    bridge: u32,
    tables: &T,
) -> Result<Route, Stop> {
    let bytes = if packet.segment_size() == 0 { (packet.length() - header) as u16 } else { 0 };
    let query = RouteQuery { from: bridge, source, destination, bytes };
    tables.route(&query).ok_or(Stop::Pass(PassReason::NoRoute))
}

/// Whether a packet may be routed on.
///
/// # Errors
/// Passes what has come to its last hop: the kernel tells its sender.
#[inline(always)]
pub fn survives(ip: &Ip) -> Result<(), Stop> {
    if ip.hop_limit <= 1 {
        return Err(Stop::Pass(PassReason::Expiring));
    }
    Ok(())
}

/// Hands a frame that has been found to fit to `station`, through its port. It counts as judged there.
#[inline(always)]
pub fn through_port<P: Packet>(packet: &mut P, station: &Station) -> Delivery {
    packet.mark_judged();
    Delivery { ifindex: station.ifindex, slot: station.slot, way: Way::Port }
}

/// The same as [`fits`] for a frame whose tag will be taken off: in the bytes it takes four more than the receiver will get.
///
/// # Errors
/// Passes what does not fit.
#[inline(always)]
pub fn fits_tagged<P: Packet>(packet: &P, station: &Station) -> Result<(), Stop> {
    let mtu = if packet.tag().is_none() { station.mtu + TAG_BYTES } else { station.mtu };
    fits(packet, &Station { mtu, ..*station })
}

/// Whether a frame may go to `station`. The kernel's bridge drops a frame that is larger than its port's MTU, and lets
/// every GSO packet through (`is_skb_forwardable`); redirecting to a peer checks nothing at all.
///
/// # Errors
/// Passes what does not fit.
#[inline(always)]
pub fn fits<P: Packet>(packet: &P, station: &Station) -> Result<(), Stop> {
    if packet.segment_size() == 0 && !is_within(packet.length(), station) {
        return Err(Stop::Pass(PassReason::TooBig));
    }
    Ok(())
}

/// Whether a frame of so many bytes, without a tag, is within the MTU of `station`.
#[inline(always)]
pub const fn is_within(bytes: u32, station: &Station) -> bool {
    bytes <= station.mtu + ETHERNET_BYTES
}
