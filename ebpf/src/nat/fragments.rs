//! fragments: only the first fragment of a datagram has ports; the others are translated as it was.
//!
//! A first fragment is translated like a whole packet, and [`remember`]ed. Later ones are found by datagram (RFC 791 section 3.2,
//! RFC 8200 section 4.5) and origin, for [`LIFETIME`]. Where the first one was not seen, or was passed, the later ones are
//! passed too, and the kernel reassembles the datagram.

use crate::Tables;
use crate::abi::fragment::{FragmentKey, FragmentTranslation};
use crate::abi::translation::TupleKey;
use crate::nat::rewrite::readdress;
use crate::nat::segment::Segment;
use crate::verdict::{PassReason, Stop};
use crate::wire::{self, Frame, Ip, LaterFragment, Packet, Protocol};

/// How long later fragments may follow their first one, in nanoseconds: as long as Linux keeps them (`IP_FRAG_TIME`,
/// include/net/ip.h). Identifications are used again, and a container's address may be another container's.
pub const LIFETIME: u64 = 30_000_000_000;

/// Records what a first fragment becomes; other packets are left alone.
///
/// # Errors
/// Passes a first fragment of SCTP that gets another port: its checksum covers all fragments, and changes by the number of bytes
/// behind the ports, which only the last fragment shows.
#[inline(always)]
pub fn remember<P: Packet, T: Tables>(
    packet: &P,
    is_v4: bool,
    segment: &Segment,
    becomes: &TupleKey,
    tables: &T,
) -> Result<(), Stop> {
    let Ok(Some(identification)) = wire::identification(packet, is_v4) else { return Ok(()) };
    let had = &segment.key;
    let has_its_ports =
        had.source_port == becomes.source_port && had.destination_port == becomes.destination_port;
    if segment.ip.protocol == Protocol::SCTP && !has_its_ports {
        return Err(Stop::Pass(PassReason::SumUnknown));
    }
    tables.remember_fragment(identification, had, becomes);
    Ok(())
}

/// The translation of a later fragment: its first one's.
///
/// # Errors
/// Passes a fragment whose first one is not known.
#[inline(always)]
pub fn becomes<T: Tables>(
    fragment: &LaterFragment,
    domain: u32,
    tables: &T,
) -> Result<FragmentTranslation, Stop> {
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

/// Rewrites a later fragment. It has no transport checksum, and IPv6 has no other.
#[inline(always)]
pub fn rewrite<P: Packet>(packet: &mut P, frame: &Frame, ip: &Ip, becomes: &FragmentTranslation) {
    let changed = readdress(packet, frame.payload, ip, (becomes.source, becomes.destination));
    if changed.alone {
        packet.adjust_sum(changed.addresses.and(changed.header));
    }
}
