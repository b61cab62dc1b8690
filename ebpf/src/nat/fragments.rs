//! fragments: of a datagram in pieces only the first has ports, and what it becomes the others become.
//!
//! The journeys translate a first fragment as they do a whole packet, and [`remember`] it. Those behind it have no transport header to be
//! translated, and go on here: as the same datagram (RFC 791 section 3.2, RFC 8200 section 4.5), from the same place, soon after. One whose
//! first was not seen, or was left to the kernel, is left to the kernel too, which puts the datagram together.

use crate::abi::fragment::{FragmentKey, FragmentTranslation};
use crate::abi::{AddressKey, PORT_SHARED, PortKey};
use crate::nat::rewrite::{Macs, readdress};
use crate::nat::segment::Segment;
use crate::nat::{clone_to_host, dnat};
use crate::programs::from_mapped;
use crate::stages::{count, deliver, isolate};
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict};
use crate::wire::packet::Packet;
use crate::wire::{Frame, Ip, LaterFragment, Protocol};
use crate::{Tables, abi, wire};

/// How long fragments may follow their first one, in nanoseconds: as long as Linux waits for them (`IP_FRAG_TIME`,
/// include/net/ip.h). An identification comes again, and a container's address may be given to another.
pub const LIFETIME: u64 = 30_000_000_000;

/// Writes down what a packet that is a first fragment is about to become.
///
/// # Errors
/// Passes one of SCTP that is to have another port: its checksum covers all fragments and would change by how many bytes are behind
/// the ports, which none but the last one says.
#[inline(always)]
pub fn remember<P: Packet, T: Tables>(
    packet: &P,
    frame: &Frame,
    segment: &Segment,
    becomes: &abi::translation::TupleKey,
    tables: &T,
) -> Result<(), Stop> {
    let Ok(Some(identification)) = wire::identification(packet, frame) else { return Ok(()) };
    let had = &segment.key;
    let has_its_ports =
        had.source_port == becomes.source_port && had.destination_port == becomes.destination_port;
    if segment.ip.protocol == Protocol::SCTP && !has_its_ports {
        return Err(Stop::Pass(PassReason::SumUnknown));
    }
    tables.remember_fragment(identification, had, becomes);
    Ok(())
}

/// A later fragment that came in by `here`: an uplink, or a bridge. None for what is none.
#[inline(always)]
pub fn from_wire<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Option<Verdict> {
    let bytes = packet.length();
    let (frame, fragment) = wire::later_fragment(packet)?;
    let verdict = inwards(packet, &frame, &fragment, here, tables).into();
    count::came_in(&verdict, here, bytes, tables);
    Some(verdict)
}

#[inline(always)]
fn inwards<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    fragment: &LaterFragment,
    here: u32,
    tables: &T,
) -> Result<Delivery, Stop> {
    if !packet.is_for_this_host() {
        return Err(Stop::Pass(PassReason::NotLocal));
    }
    clone_to_host::unless_copied(frame, fragment.ip.protocol)?;
    let from = dnat::domain(here, frame.source, tables);
    let becomes = known(fragment, from, tables)?;
    let key = AddressKey::new(becomes.domain, 0, becomes.destination);
    let resident = tables.resident(&key, 0).ok_or(Stop::Pass(PassReason::UnknownStation))?;
    let (container, station) = resident;
    let bridge = tables.port(&PortKey { ifindex: becomes.domain }).ok_or(Stop::Pass(PassReason::NoPort))?;
    isolate::routed(from, becomes.domain, &station, tables)?;
    deliver::survives(&fragment.ip)?;
    deliver::fits(packet, &station).map_err(|_| Stop::Drop(DropReason::TooBig))?;
    clone_to_host::with_node(packet, fragment.ip.protocol, here);
    deliver::address(packet, Macs { destination: container.mac, source: bridge.mac })?;
    send_on(packet, frame, &fragment.ip, &becomes);
    Ok(deliver::into_container(packet, &station))
}

/// A later fragment that a container sent, at the host end `here`, on a port that host ports lead to. None for what is none.
#[inline(always)]
pub fn from_mapped<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Option<Verdict> {
    let bytes = packet.length();
    let (frame, fragment) = wire::later_fragment(packet)?;
    let port = match from_mapped::arrival(packet, here, tables) {
        Ok((_, port)) => port,
        Err(stop) => return Some(Err(stop).into()),
    };
    let verdict = outwards(packet, &frame, &fragment, port.bridge, tables).into();
    if port.flags & PORT_SHARED == 0 {
        count::sent(&verdict, &port, here, bytes, tables);
    }
    Some(verdict)
}

#[inline(always)]
fn outwards<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    fragment: &LaterFragment,
    bridge: u32,
    tables: &T,
) -> Result<Delivery, Stop> {
    let becomes = known(fragment, bridge, tables)?;
    let ends = (becomes.source, becomes.destination);
    let delivery = deliver::routed(packet, frame, &fragment.ip, ends, bridge, tables)?;
    send_on(packet, frame, &fragment.ip, &becomes);
    Ok(delivery)
}

/// What the fragment's first one has become.
#[inline(always)]
fn known<T: Tables>(fragment: &LaterFragment, domain: u32, tables: &T) -> Result<FragmentTranslation, Stop> {
    let LaterFragment { ip, identification } = *fragment;
    let key = FragmentKey {
        domain,
        identification,
        source: ip.source,
        destination: ip.destination,
        protocol: ip.protocol.0,
        pad: [0; 3],
    };
    match tables.fragment(&key) {
        Some(first) if tables.boot_time().saturating_sub(first.seen) < LIFETIME => Ok(first),
        _ => Err(Stop::Pass(PassReason::FirstUnseen)),
    }
}

/// The edits of both: there is no transport checksum to make up for them, and IPv6 has no other.
#[inline(always)]
fn send_on<P: Packet>(packet: &mut P, frame: &Frame, ip: &Ip, becomes: &FragmentTranslation) {
    let changed = readdress(packet, frame.payload, ip, (becomes.source, becomes.destination));
    if changed.alone {
        packet.tell_sum(changed.addresses.and(changed.header));
    }
}
