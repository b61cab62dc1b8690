//! deliver: the last checks, then all edits at once.

use crate::Tables;
use crate::abi::{
    NO_SLOT, STATION_ALONE, STATION_APART, STATION_ASIDE, STATION_BLOCKED, STATION_PEER_UP, STATION_QUEUED,
    Station,
};
use crate::tables::{Route, RouteQuery, Unrouted};
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Way};
use crate::wire::address::Address;
use crate::wire::address::Macs;
use crate::wire::packet::Packet;
use crate::wire::{Frame, Ip, Protocol};

const ETHERNET_BYTES: u32 = 14;
const TAG_BYTES: u32 = 4;

/// Delivers a frame of a container to `station`: into its peer where that is up and no queue is on the way, else through its
/// port.
///
/// # Errors
/// Passes a frame that does not fit, and one that the kernel's bridge judges. Drops a frame for a container that no container may
/// reach.
#[inline(always)]
pub fn from_container<P: Packet>(packet: &mut P, station: &Station) -> Result<Delivery, Stop> {
    fits(packet, station)?;
    // One test for all, so that it costs nothing where none is.
    let plain = STATION_PEER_UP | STATION_QUEUED | STATION_ALONE | STATION_ASIDE | STATION_APART;
    if station.flags & plain != STATION_PEER_UP {
        if station.flags & STATION_ALONE != 0 {
            return Err(Stop::Drop(DropReason::IngressPolicy));
        }
        not_aside(station)?;
        return Ok(into_container(packet, station));
    }
    Ok(into_peer(packet, station))
}

/// Lets a frame on to `station` unless its port is set so that the kernel's bridge judges what goes there, or all of its flows are the
/// kernel's.
///
/// # Errors
/// Passes such a frame.
#[inline(always)]
pub fn not_aside(station: &Station) -> Result<(), Stop> {
    if station.flags & (STATION_ASIDE | STATION_APART) != 0 {
        let is_aside = station.flags & STATION_ASIDE != 0;
        return Err(Stop::Pass(if is_aside { PassReason::Aside } else { PassReason::KernelFlow }));
    }
    Ok(())
}

/// Lets a translated packet on to `station`, which the kernel's bridge will not see, unless its port does not forward.
///
/// # Errors
/// Drops it as the bridge would.
#[inline(always)]
pub fn forwards(station: &Station) -> Result<(), Stop> {
    if station.flags & STATION_BLOCKED != 0 {
        return Err(Stop::Drop(DropReason::NotForwarding));
    }
    Ok(())
}

/// The same for a frame that fits.
#[inline(always)]
pub fn into_container<P: Packet>(packet: &mut P, station: &Station) -> Delivery {
    if station.flags & (STATION_PEER_UP | STATION_QUEUED) != STATION_PEER_UP {
        return through_port(packet, station);
    }
    into_peer(packet, station)
}

/// Writes the Ethernet addresses of a packet from outside, in front of which it puts a header if it has none. The first edit, as it is the
/// only one that may fail.
///
/// # Errors
/// Drops the packet where the kernel has no memory for the header: its connection's state has been updated.
#[inline(always)]
pub fn address<P: Packet>(packet: &mut P, macs: Macs) -> Result<(), Stop> {
    if packet.address(macs.destination, macs.source) { Ok(()) } else { Err(Stop::Drop(DropReason::NoMemory)) }
}

#[inline(always)]
fn into_peer<P: Packet>(packet: &mut P, station: &Station) -> Delivery {
    packet.become_own();
    Delivery { ifindex: station.ifindex, slot: station.slot, way: Way::Peer }
}

/// Delivers a frame of the node's own stack to `station`, through its port: a tc egress hook cannot redirect to a peer.
///
/// # Errors
/// Passes a frame that does not fit.
#[inline(always)]
pub fn from_host<P: Packet>(packet: &mut P, station: &Station) -> Result<Delivery, Stop> {
    fits(packet, station)?;
    Ok(through_port(packet, station))
}

/// Routes a packet of a container from its bridge. `ends` are its source and destination after translation.
///
/// # Errors
/// Passes a packet that has no route, does not fit, or has no hop left.
#[inline(always)]
pub fn routed<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    ip: &Ip,
    ends: (Address, Address),
    bridge: u32,
    tables: &T,
) -> Result<Delivery, Stop> {
    survives(ip)?;
    route(packet, (frame.payload, ip), ends, bridge, tables).map(by)
}

/// The delivery to a route's next hop.
#[inline(always)]
pub const fn by(route: Route) -> Delivery {
    Delivery { ifindex: route.ifindex, slot: NO_SLOT, way: Way::Neighbor(route.next_hop) }
}

/// The kernel's route from `bridge`, between two addresses, for the packet whose IP header `ip` is at `header`.
///
/// # Errors
/// Passes a packet that has none, or does not fit; then its note is the route's MTU.
#[inline(always)]
pub fn route<P: Packet, T: Tables>(
    packet: &mut P,
    (header, ip): (u32, &Ip),
    (source, destination): (Address, Address),
    bridge: u32,
    tables: &T,
) -> Result<Route, Stop> {
    let bytes = largest_segment(packet, header, ip) as u16;
    let query = RouteQuery { from: bridge, source, destination, bytes };
    match tables.route(&query) {
        Ok(route) => Ok(route),
        Err(Unrouted::NoRoute) => Err(Stop::Pass(PassReason::NoRoute)),
        Err(Unrouted::TooBig(mtu)) => {
            packet.leave_note(u32::from(mtu));
            Err(Stop::Pass(PassReason::TooBig))
        }
    }
}

/// Bytes of the largest packet that is made of this one, from its IP header at `header` on: of a GSO packet its headers and one segment
/// (`skb_gso_network_seglen`), without the header of a jumbogram, which no segment gets (`ipv6_hopopt_jumbo_remove`). 0, which is not
/// judged: SCTP's, whose chunks have no common size, and those whose header cannot be read.
#[inline(always)]
fn largest_segment<P: Packet>(packet: &P, header: u32, ip: &Ip) -> u32 {
    const TCP_WORDS: u32 = 12;
    const UDP_BYTES: u32 = 8;
    const MOST_BYTES: u32 = 65_535;
    const IPV6_BYTES: u32 = 40;
    const JUMBO_BYTES: u32 = 8;
    let (payload, bytes) = (packet.segment_size(), packet.length() - header);
    if payload == 0 {
        return if bytes > MOST_BYTES { 0 } else { bytes };
    }
    let headers = ip.payload - header;
    let is_jumbo = bytes > MOST_BYTES && headers > IPV6_BYTES && !ip.source.is_v4();
    let headers = if is_jumbo { headers - JUMBO_BYTES } else { headers };
    let transport = match ip.protocol {
        Protocol::TCP => {
            packet.load(ip.payload + TCP_WORDS).map(|[words, _]: [u8; 2]| u32::from(words >> 4) * 4)
        }
        Protocol::UDP => Some(UDP_BYTES),
        _ => None,
    };
    transport.map_or(0, |transport| headers + transport + payload)
}

/// The route of a packet that is known to fit, as [`route`].
///
/// # Errors
/// Passes a packet that has no route.
#[inline(always)]
pub fn route_fitting<T: Tables>(
    (source, destination): (Address, Address),
    from: u32,
    tables: &T,
) -> Result<Route, Stop> {
    let query = RouteQuery { from, source, destination, bytes: 0 };
    tables.route(&query).map_err(|_| Stop::Pass(PassReason::NoRoute))
}

/// Lets a packet on if it has a hop left.
///
/// # Errors
/// Passes a packet whose hop limit ends here: the kernel sends the ICMP error.
#[inline(always)]
pub fn survives(ip: &Ip) -> Result<(), Stop> {
    if ip.hop_limit <= 1 {
        return Err(Stop::Pass(PassReason::Expiring));
    }
    Ok(())
}

/// Delivers a frame that fits to `station`, through its port, where its mark says that it has been judged.
#[inline(always)]
pub fn through_port<P: Packet>(packet: &mut P, station: &Station) -> Delivery {
    packet.mark_judged();
    Delivery { ifindex: station.ifindex, slot: station.slot, way: Way::Port }
}

/// The same as [`fits`] for a frame whose tag will be popped: inline, the tag takes four bytes that the receiver does not get.
///
/// # Errors
/// Passes a frame that does not fit.
#[inline(always)]
pub fn fits_tagged<P: Packet>(packet: &P, station: &Station) -> Result<(), Stop> {
    let mtu = if packet.tag().is_none() { station.mtu + TAG_BYTES } else { station.mtu };
    fits(packet, &Station { mtu, ..*station })
}

/// Lets a frame on if it fits the MTU of `station`. The kernel's bridge drops a frame that is larger than its port's MTU, and
/// forwards every GSO packet (`is_skb_forwardable`); a redirect to a peer checks nothing.
///
/// # Errors
/// Passes a frame that does not fit.
#[inline(always)]
pub fn fits<P: Packet>(packet: &P, station: &Station) -> Result<(), Stop> {
    if packet.segment_size() == 0 && !is_within(packet.length(), station) {
        return Err(Stop::Pass(PassReason::TooBig));
    }
    Ok(())
}

/// The same for a packet that the node forwards, whose IP header `ip` is at `header`: a router judges each segment of a GSO packet
/// (`ip_exceeds_mtu`, net/ipv4/ip_forward.c).
///
/// # Errors
/// Passes a packet that does not fit.
#[inline(always)]
pub fn forwarded_fits<P: Packet>(
    packet: &P,
    (header, ip): (u32, &Ip),
    station: &Station,
) -> Result<(), Stop> {
    if largest_segment(packet, header, ip) > station.mtu {
        return Err(Stop::Pass(PassReason::TooBig));
    }
    Ok(())
}

/// Whether a frame of `bytes` bytes, without a tag, is within the MTU of `station`.
#[inline(always)]
pub const fn is_within(bytes: u32, station: &Station) -> bool {
    bytes <= station.mtu + ETHERNET_BYTES
}
