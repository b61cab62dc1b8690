//! too_big: a packet that its container's link has no room for becomes the word to its sender that says how much room there is.
//!
//! It came in by a host port, or returns to a masqueraded container, so to whoever sent it the node is the router in front of the
//! container, and says what a router says: "fragmentation needed" (RFC 792, with the MTU of RFC 1191) or "packet too big" (RFC 4443
//! section 3.2), as the kernel does before it forwards (`ip_forward`, net/ipv4/ip_forward.c; `ip6_forward`,
//! net/ipv6/ip6_output.c). The journeys have dropped and counted it, and edited nothing: what is quoted is what was sent. It is from
//! the address that was asked for, and goes back where the packet came from.
//!
//! Nothing is said to what IPv4 lets a router cut, which the kernel would cut and no program can; to fragments but first ones, and to
//! ICMP errors, which do not come here; and to whom no host's address is the source of. An error is shorter than what it answers, so
//! nobody's traffic grows by it, and there is no limit to how many there are: these two are the errors that the kernel keeps
//! out of its limits as well (`icmpv4_mask_allow`, net/ipv4/icmp.c; `icmpv6_mask_allow`, net/ipv6/icmp.c), for path MTU discovery would
//! stand still without them.

mod v4;
mod v6;

use crate::abi::{NO_SLOT, STATION_HOST, Station, StationKey};
use crate::stages::deliver;
use crate::tables::Lane;
use crate::verdict::{Delivery, DropReason, Stop, Verdict, Way};
use crate::wire::checksum::{Change, whole};
use crate::wire::packet::Packet;
use crate::wire::{EtherType, Frame};
use crate::{Tables, wire};

/// Where the IP header of what is answered is: nothing that carries a tag is translated.
const PAYLOAD: u32 = 14;

/// An error's header of ICMP.
type Icmp = [u16; 4];
const ICMP_BYTES: u32 = size_of::<Icmp>() as u32;

/// The end of a packet's journey that does not fit `station`: dropped, with what [`tell`] has to know put down.
#[inline(always)]
pub fn refused<P: Packet>(packet: &mut P, station: &Station) -> Stop {
    packet.leave_note(station.mtu);
    Stop::Drop(DropReason::TooBig)
}

/// Tells the sender of a packet that came in by `here` and was [`refused`].
#[inline(always)]
pub fn tell<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let mtu = packet.note();
    match told(packet, mtu) {
        Some(frame) => Verdict::Deliver(back(packet, &frame, here, tables)),
        None => Verdict::Drop(DropReason::TooBig),
    }
}

/// Makes the packet the error about it; what it was as a frame.
#[inline(always)]
fn told<P: Packet>(packet: &mut P, mtu: u32) -> Option<Frame> {
    let frame = wire::frame(packet).ok()?;
    // A group's answers would be everybody's. A bare packet has no Ethernet addresses, and one way back.
    if frame.is_tagged() || !(packet.is_bare() || frame.source.is_valid_source()) {
        return None;
    }
    match frame.ether_type {
        EtherType::IPV4 => v4::tell(packet, mtu)?,
        EtherType::IPV6 => v6::tell(packet, mtu)?,
        _ => return None,
    }
    (packet.is_bare() || packet.store(0, &[frame.source, frame.destination])).then_some(frame)
}

/// The way back to whoever sent `frame`: through the port of a container on the bridge `here`, else out of where it came from.
#[inline(always)]
fn back<P: Packet, T: Tables>(packet: &mut P, frame: &Frame, here: u32, tables: &T) -> Delivery {
    let sender = StationKey { bridge: here, vid: 0, mac: frame.source };
    let station = if packet.is_bare() { None } else { tables.station(&sender) };
    let Some(station) = station.filter(|station| station.flags & STATION_HOST == 0) else {
        return Delivery { ifindex: here, slot: NO_SLOT, way: Way::Back };
    };
    // Not by the bridge: what comes out of it has come by a bridge, which not every container hears.
    tables.count(station.slot, Lane::ToFast, packet.length());
    Delivery { way: Way::Back, ..deliver::through_port(packet, &station) }
}

/// Writes the header of ICMP in front of what is quoted at `above`; its checksum covers `others`, too.
#[inline(always)]
fn write_icmp<P: Packet>(packet: &mut P, above: u32, icmp: Icmp, others: Change) -> Option<()> {
    let [kind, _, high, low] = icmp;
    let sum = whole(others.halves(icmp));
    packet.store(above - ICMP_BYTES, &[kind, sum, high, low]).then_some(())
}
