//! frag needed: the ICMP error for a packet that does not fit its container's link, or the way out.
//!
//! The packet came to a host port, returns to a masqueraded container, or is a container's of a translated connection. For its sender the
//! node is the router in front of the receiver, so it sends what a router sends: "fragmentation needed" (RFC 792, with the MTU of RFC 1191) or "packet too big"
//! (RFC 4443 section 3.2), as the kernel does before forwarding (`ip_forward`, net/ipv4/ip_forward.c; `ip6_forward`,
//! net/ipv6/ip6_output.c). The packet is dropped, counted and unedited by then. The error comes from the packet's destination and
//! leaves where the packet came in.
//!
//! A router would cut an IPv4 packet without "don't fragment". No program can, so the error is sent for these, too: Linux, for one, cuts at
//! the source from then on. No error is sent for later fragments, for ICMP errors, and to source addresses that are
//! no single host's. An error is shorter than its packet, so no rate limit is needed: the kernel exempts these two types from its own
//! (`icmpv4_mask_allow`, net/ipv4/icmp.c; `icmpv6_mask_allow`, net/ipv6/icmp.c), because path MTU discovery depends on them.

mod icmp;
mod v4;
mod v6;

use self::icmp::PAYLOAD;
use crate::abi::{NO_SLOT, STATION_HOST, StationKey};
use crate::stages::deliver;
use crate::tables::Lane;
use crate::verdict::{Delivery, DropReason, Verdict, Way};
use crate::wire::packet::Packet;
use crate::wire::{EtherType, Frame};
use crate::{Tables, wire};

/// Whether routers fragment the packet where it is too large: IPv4 without "don't fragment" (RFC 791).
#[inline(always)]
pub fn may_be_cut<P: Packet>(packet: &P) -> bool {
    const FLAGS: u32 = 6;
    const DONT_FRAGMENT: u16 = 0x4000;
    let is_v4 = wire::frame(packet).is_ok_and(|frame| frame.ether_type == EtherType::IPV4);
    let flags: Option<u16> = packet.load(PAYLOAD + FLAGS);
    is_v4 && flags.is_some_and(|flags| u16::from_be(flags) & DONT_FRAGMENT == 0)
}

/// Turns a packet that came in by `here` into the error and sends it. The packet's note is the MTU.
#[inline(always)]
pub fn send<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let mtu = packet.note();
    match write(packet, mtu) {
        Some(frame) => Verdict::Deliver(back(packet, &frame, here, tables)),
        None => Verdict::Drop(DropReason::TooBig),
    }
}

/// Turns the packet into the error. Returns the packet's frame header.
#[inline(always)]
fn write<P: Packet>(packet: &mut P, mtu: u32) -> Option<Frame> {
    let frame = wire::frame(packet).ok()?;
    // No error goes to a group. A bare packet has no Ethernet addresses, and one way back.
    if frame.is_tagged() || !(packet.is_bare() || frame.source.is_valid_source()) {
        return None;
    }
    match frame.ether_type {
        EtherType::IPV4 => v4::write(packet, mtu)?,
        EtherType::IPV6 => v6::write(packet, mtu)?,
        _ => return None,
    }
    (packet.is_bare() || packet.store(0, &[frame.source, frame.destination])).then_some(frame)
}

/// The way back to the sender of `frame`: the port of a container on the bridge `here`, else the interface that it came in by.
#[inline(always)]
fn back<P: Packet, T: Tables>(packet: &mut P, frame: &Frame, here: u32, tables: &T) -> Delivery {
    let sender = StationKey { bridge: here, vid: 0, mac: frame.source };
    let station = if packet.is_bare() { None } else { tables.station(&sender) };
    let Some(station) = station.filter(|station| station.flags & STATION_HOST == 0) else {
        return Delivery { ifindex: here, slot: NO_SLOT, way: Way::Back };
    };
    // Not by the bridge: a frame out of it has a bridge as its origin, which some containers' `ingressPolicy` forbids.
    tables.count(station.slot, Lane::ToFast, packet.length());
    Delivery { way: Way::Back, ..deliver::through_port(packet, &station) }
}
