//! request: does a packet from outside go to a container, by a port of the node?
//!
//! Everything is decided and nothing is edited here. A connection's two entries are made together, the answers' first:
//! a request that gets through can be answered.

use crate::Tables;
use crate::abi::StationKey;
use crate::abi::translation::{
    MAPPING_MASQUERADED, Mapping, MappingKey, TRANSLATION_OPENER, Translation, TupleKey,
};
use crate::nat::connection::{Fate, Shown, fate};
use crate::nat::segment::Segment;
use crate::stages::isolate::is_bridge;
use crate::stages::learn;
use crate::tables::Inserted;
use crate::verdict::{PassReason, Stop};
use crate::wire::Protocol;
use crate::wire::address::{L4Port, Mac};

/// Where packets from outside come from, in [`TupleKey::domain`].
pub const OUTSIDE: u32 = 0;

/// How many source ports are tried for one connection.
const ATTEMPTS: u32 = 4;

/// The mapping of the port that a packet is for: of the very address, else of any.
///
/// # Errors
/// Passes what goes to any other port.
#[inline(always)]
pub fn mapping<T: Tables>(asked: &TupleKey, tables: &T) -> Result<Mapping, Stop> {
    let mut key = MappingKey {
        address: asked.destination.unspecified(),
        port: asked.destination_port,
        protocol: asked.protocol,
        pad: 0,
    };
    let any = tables.mapping(&key);
    key.address = asked.destination;
    tables.mapping(&key).or(any).ok_or(Stop::Pass(PassReason::Unmapped))
}

/// Where a packet of `sender` comes from that came in by `here`: from a bridge of ours, or from outside. So does what an uplink
/// has brought into a bridge.
#[inline(always)]
pub fn domain<T: Tables>(here: u32, sender: Mac, tables: &T) -> u32 {
    let sender = StationKey { bridge: here, vid: 0, mac: sender };
    if !is_bridge(here, tables) || learn::beyond(&sender, tables).is_some() {
        return OUTSIDE;
    }
    here
}

/// What the packet becomes: its tuple as the container sees it.
///
/// A container on the same bridge, itself among them, gets the node's address: the answer would never come by the node
/// otherwise. So does whoever an uplink brought onto the container's bridge, `here`, and the container takes for a neighbor, and
/// everybody where the mapping masquerades.
///
/// # Errors
/// Passes a family that the container has no address of.
#[inline(always)]
pub fn becomes(asked: &TupleKey, here: u32, mapping: &Mapping) -> Result<TupleKey, Stop> {
    let is_neighbor =
        asked.domain == mapping.bridge || here == mapping.bridge && mapping.is_on_link(asked.source);
    let is_masqueraded = is_neighbor || mapping.flags & MAPPING_MASQUERADED != 0;
    let destination = if asked.source.is_v4() { mapping.v4 } else { mapping.v6 };
    if destination.is_unspecified() {
        return Err(Stop::Pass(PassReason::Unmapped));
    }
    Ok(TupleKey {
        domain: mapping.bridge,
        source: if is_masqueraded { asked.destination } else { asked.source },
        destination,
        destination_port: mapping.port,
        ..*asked
    })
}

/// Follows the packet's connection of `bytes` bytes, or begins one. The source port in `becomes` may be changed by that:
/// where two of those have one address then, or one client asks for two ports of the node that lead to the same one.
///
/// # Errors
/// Passes what belongs to none and begins none, what is not for an address of the node, and what would have another
/// connection's tuple.
#[inline(always)]
pub fn follow<T: Tables>(
    segment: &Segment,
    becomes: &mut TupleKey,
    bytes: u32,
    tables: &T,
) -> Result<(), Stop> {
    let now = tables.boot_time();
    let asks = segment.asks();
    let protocol = Protocol(segment.key.protocol);
    let mut answer = becomes.reversed(becomes.domain);
    let known = tables.follow(&segment.key, &mut answer, bytes, |mine, others| {
        let fate = fate(protocol, mine, others, asks, now);
        (fate, (fate == Fate::Continues).then(|| mine.after(segment.flags(), now)))
    });
    match known {
        Some(Fate::Continues) => {
            becomes.source_port = answer.destination_port;
            Ok(())
        }
        _ if asks => begin(segment, becomes, now, bytes, tables),
        _ => Err(Stop::Pass(PassReason::Stray)),
    }
}

#[inline(always)]
fn begin<T: Tables>(
    segment: &Segment,
    becomes: &mut TupleKey,
    now: u64,
    bytes: u32,
    tables: &T,
) -> Result<(), Stop> {
    if !tables.is_local(&segment.key.destination) {
        return Err(Stop::Pass(PassReason::NotLocal));
    }
    let mut value = Translation {
        becomes: segment.key.reversed(segment.key.domain),
        shown: Shown::NOTHING.0,
        touched: now,
        begun: now,
        packets: 0,
        bytes: 0,
        holder: 0,
        flags: 0,
    };
    let mut is_there = false;
    for attempt in 0..ATTEMPTS {
        let answer = becomes.reversed(becomes.domain);
        is_there = match tables.insert_flow(&answer, &value) {
            Inserted::New => true,
            Inserted::Full => false,
            // A half that was left over of the same tuple may be written over; anybody else's may not.
            Inserted::Exists => {
                tables.becomes(&answer).is_some_and(|(held, _)| held.is(value.becomes))
                    && tables.replace_flow(&answer, &value)
            }
        };
        if is_there {
            break;
        }
        becomes.source_port = other_port(&segment.key, attempt);
    }
    if !is_there {
        return Err(Stop::Pass(PassReason::TupleTaken));
    }
    value.becomes = *becomes;
    value.shown = Shown::NOTHING.after(segment.flags()).0;
    value.flags = TRANSLATION_OPENER;
    (value.packets, value.bytes) = (1, u64::from(bytes));
    if !tables.replace_flow(&segment.key, &value) {
        tables.forget_flow(&becomes.reversed(becomes.domain));
        return Err(Stop::Pass(PassReason::TupleTaken));
    }
    Ok(())
}

/// Another source port, which is nobody's but by chance, and another one at each attempt.
#[inline(always)]
fn other_port(key: &TupleKey, attempt: u32) -> L4Port {
    const FIRST: u32 = 1024;
    let [_, _, _, word] = key.source.words();
    let mixed = (word ^ u32::from(key.source_port.half()) ^ (attempt << 24)).wrapping_mul(0x9e37_79b1);
    L4Port::from((FIRST + (mixed >> 16) % (65_536 - FIRST)) as u16)
}
