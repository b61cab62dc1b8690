//! dnat: the container that a packet to a host port is for.
//!
//! Nothing is edited here. A connection's two entries are made together, the reply direction's first: a request that gets
//! through can be replied to.

use crate::Tables;
use crate::abi::share::Side;
use crate::abi::translation::{
    MAPPING_HEEDED, MAPPING_MASQUERADED, MAPPING_SOURCE_KEPT, Mapping, MappingKey, OUTSIDE, SourceKey,
    TRANSLATION_NEAR, TRANSLATION_OPENER, Translation, TupleKey, opened_by,
};
use crate::nat::claim;
use crate::nat::connection::{Fate, Shown, fate};
use crate::nat::reverse_path;
use crate::nat::segment::Segment;
use crate::stages::isolate::is_bridge;
use crate::stages::share::{self, Excess};
use crate::tables::{Followed, Inserted};
use crate::verdict::{PassReason, Stop};
use crate::wire::address::{Address, L4Port};
use crate::wire::{Packet, Protocol};

/// How many source ports are tried for one connection.
const ATTEMPTS: u32 = 4;

/// The mapping of a packet's host port: of its address, else of any address.
///
/// # Errors
/// Passes a packet to any other port.
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

/// The domain of a packet that came in by `here`: a bridge of ours, or outside. What an uplink brings into a bridge comes from
/// outside as well; the uplink's mark says so, as any container can send from the address of a station beyond it.
#[inline(always)]
pub fn domain<P: Packet, T: Tables>(packet: &P, here: u32, tables: &T) -> u32 {
    if packet.is_outside() || !is_bridge(here, tables) { OUTSIDE } else { here }
}

/// The translated tuple, as the container sees it.
///
/// A sender on the container's link gets an address of the node, as the reply would not pass the node otherwise: where the mapping keeps
/// sources, only the container itself does. So does every sender where the mapping masquerades. Which address that is
/// [`begin`] chooses, and [`follow`] finds in the connection.
///
/// # Errors
/// Passes a family of which the container has no address.
#[inline(always)]
pub fn becomes(asked: &TupleKey, here: u32, mapping: &Mapping) -> Result<TupleKey, Stop> {
    let destination = if asked.source.is_v4() { mapping.v4 } else { mapping.v6 };
    let is_masqueraded = if mapping.flags & MAPPING_SOURCE_KEPT != 0 {
        asked.source.is(destination)
    } else {
        mapping.flags & MAPPING_MASQUERADED != 0 || here == mapping.bridge && mapping.is_on_link(asked.source)
    };
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

/// Updates the connection of a packet of `bytes` bytes. False where there is none. Changes the source in `becomes` to the connection's.
#[inline(always)]
pub fn follow<T: Tables>(segment: &Segment, becomes: &mut TupleKey, bytes: u32, tables: &T) -> bool {
    let now = tables.boot_time();
    let asks = segment.opens();
    let protocol = Protocol(segment.key.protocol);
    let mut answer = becomes.reversed(becomes.domain);
    let packet = Followed { bytes, step: segment.step(), now };
    let known = tables.follow(&segment.key, &mut answer, Some(&packet), |mine, others| {
        fate(protocol, mine, others, asks, now)
    });
    // Whom the container is to see may have been changed since: then it cannot go on with what it knows by another name.
    let source = segment.key.source;
    let continues =
        known == Some(Fate::Continues) && answer.destination.is(source) == becomes.source.is(source);
    if continues {
        becomes.source = answer.destination;
        becomes.source_port = answer.destination_port;
    }
    continues
}

/// Leaves a connection's first packet to the kernel where others' rules are asked who may use the host port: the kernel's own rule translates it behind
/// theirs. What is left of an earlier connection of the same tuple goes, or it would take the answers.
///
/// # Errors
/// Passes the packet there.
#[inline(always)]
pub fn heed<T: Tables>(segment: &Segment, flags: u16, tables: &T) -> Result<(), Stop> {
    if flags & MAPPING_HEEDED == 0 {
        return Ok(());
    }
    tables.forget_flow(&segment.key);
    Err(Stop::Pass(PassReason::Unaccepted))
}

/// Begins a connection with a packet of `bytes` bytes that came in by `here`, with the container whose counter slot is `slot`.
///
/// Changes the source in `becomes`, where it is not the client's own, to the address that the kernel's MASQUERADE would choose towards the container, and the source port where another connection or a
/// socket of the node has the tuple: where several senders share an address after translation, or one client uses two host
/// ports that lead to the same container port.
///
/// # Errors
/// Passes a packet for no address of the node, one from where the kernel takes none, one that answers another, and one whose translated tuple another connection
/// has. Drops one that is too many for its container.
#[inline(always)]
pub fn begin<T: Tables>(
    segment: &Segment,
    becomes: &mut TupleKey,
    (here, slot, bytes): (u32, u32, u32),
    tables: &T,
) -> Result<(), Stop> {
    if !tables.is_local(&segment.key.destination) {
        return Err(Stop::Pass(PassReason::NotLocal));
    }
    if is_martian(segment.key.source, tables) {
        return Err(Stop::Pass(PassReason::Martian));
    }
    claim::check_within(segment, here, tables)?;
    reverse_path::check(&segment.key, here, tables)?;
    let is_masqueraded = !becomes.source.is(segment.key.source);
    // The node's sockets of SCTP cannot be asked for.
    let may_be_nodes = is_masqueraded && Protocol(becomes.protocol) != Protocol::SCTP;
    if is_masqueraded {
        becomes.source = source(becomes.domain, becomes.destination, becomes.source, tables);
    }
    let now = tables.boot_time();
    let side = if segment.is_tcp() { Side::TcpClient } else { Side::DatagramClient };
    share::charge(slot, side, now, tables).map_err(Excess::dropped)?;
    // A client that came by another way cannot make what the container sends to a neighbour an answer.
    let near = if here == becomes.domain { TRANSLATION_NEAR } else { 0 };
    let flags = near | opened_by(side, slot);
    let mut value = answers(segment, now, flags);
    let mut is_there = false;
    for attempt in 0..ATTEMPTS {
        if !(may_be_nodes && tables.has_socket(becomes))
            && take(&becomes.reversed(becomes.domain), &value, tables)
        {
            is_there = true;
            break;
        }
        becomes.source_port = other_port(&segment.key, attempt);
    }
    if !is_there {
        return Err(Stop::Pass(PassReason::TupleTaken));
    }
    value.becomes = *becomes;
    value.shown = Shown::opener(segment.is_tcp()).0;
    value.flags = TRANSLATION_OPENER | flags;
    (value.packets, value.bytes) = (1, u64::from(bytes));
    if !tables.replace_flow(&segment.key, &value) {
        tables.forget_flow(&becomes.reversed(becomes.domain));
        return Err(Stop::Pass(PassReason::TupleTaken));
    }
    Ok(())
}

/// The address by which the node sends to the container `to` on `bridge`: the one that was `asked`, where the bridge has none.
#[inline(always)]
pub fn source<T: Tables>(bridge: u32, to: Address, asked: Address, tables: &T) -> Address {
    match tables.source(&SourceKey { ifindex: bridge, address: to }) {
        Some(source) if source.is_v4() == asked.is_v4() => source,
        _ => asked,
    }
}

/// Makes the entry of a connection's answers. A leftover half of the same tuple may be overwritten; another connection's entry may not.
#[inline(always)]
pub(super) fn take<T: Tables>(answer: &TupleKey, value: &Translation, tables: &T) -> bool {
    match tables.insert_flow(answer, value) {
        Inserted::New => true,
        Inserted::Full => false,
        Inserted::Exists => {
            tables.becomes(answer).is_some_and(|(held, _)| held.is(value.becomes))
                && tables.replace_flow(answer, value)
        }
    }
}

/// What the answers of a new connection become.
#[inline(always)]
pub(super) fn answers(segment: &Segment, now: u64, flags: u32) -> Translation {
    Translation {
        becomes: segment.key.reversed(segment.key.domain),
        shown: Shown::NOTHING.0,
        touched: now,
        begun: now,
        packets: 0,
        bytes: 0,
        holder: 0,
        flags,
        acknowledged: 0,
        end: 0,
    }
}

/// Whether the kernel's stack takes no packet from a source (`ip_route_input_slow`, `fib_validate_source`, `ip6_rcv_core`), or forwards
/// none (`ip6_forward`: one that holds on its link only). An IPv6 address of the node's own it does take.
#[inline(always)]
fn is_martian<T: Tables>(source: Address, tables: &T) -> bool {
    source.is_nobodys() || source.is_link_local() || source.is_v4() && tables.is_local(&source)
}

/// Another source port at each attempt, free with high probability.
#[inline(always)]
fn other_port(key: &TupleKey, attempt: u32) -> L4Port {
    const FIRST: u32 = 1024;
    let [_, _, _, word] = key.source.words();
    let mixed = (word ^ u32::from(key.source_port.half()) ^ (attempt << 24)).wrapping_mul(0x9e37_79b1);
    L4Port::from((FIRST + (mixed >> 16) % (65_536 - FIRST)) as u16)
}
