//! snat: begins a masqueraded connection of a container, and chooses its port of the node.
//!
//! Nothing is edited here. The two entries are made as a host port's are, the returning direction's first.

use crate::Tables;
use crate::abi::share::Side;
use crate::abi::translation::{
    Mapping, OUTSIDE, Outlet, SourceKey, TRANSLATION_OPENER, Translation, TupleKey, opened_by,
};
use crate::abi::{AddressKey, PORT_MASQUERADED, Port};
use crate::nat::claim;
use crate::nat::connection::Shown;
use crate::nat::dnat::{answers, mapping, take};
use crate::nat::segment::Segment;
use crate::stages::share::{self, Excess};
use crate::tables::Route;
use crate::verdict::{PassReason, Stop};
use crate::wire::Protocol;
use crate::wire::address::{Address, L4Port};

/// How many ports are tried for one connection.
const ATTEMPTS: u32 = 8;

/// The first port that is not a system port (RFC 6335 section 6).
const FIRST: u32 = 1024;

/// Whether a packet of no connection may begin a masqueraded one, by its port and protocol.
#[inline(always)]
pub fn may_begin(segment: &Segment, port: &Port) -> bool {
    port.flags & PORT_MASQUERADED != 0 && Protocol(segment.key.protocol) != Protocol::SCTP && segment.opens()
}

/// Lets a tuple on if it is masqueraded: from the container behind `here`, out of its network, to a single host other than the
/// node.
///
/// # Errors
/// Passes any other tuple.
#[inline(always)]
pub fn leaves<T: Tables>(key: &TupleKey, here: u32, tables: &T) -> Result<(), Stop> {
    let stays = Stop::Pass(PassReason::ToHost);
    let own = tables.masquerade(&AddressKey::new(key.domain, 0, key.source)).ok_or(stays)?;
    if own.ifindex != here
        || own.is_within(key.source, key.destination)
        || key.destination.is_group()
        || tables.is_local(&key.destination)
    {
        return Err(stays);
    }
    Ok(())
}

/// By what the kernel chooses the address of a connection to `destination`: of IPv4 by the next hop (`inet_select_addr`,
/// net/ipv4/devinet.c), of IPv6 by the destination (`ipv6_dev_get_saddr`, net/ipv6/addrconf.c).
#[inline(always)]
pub fn source_key(route: &Route, destination: Address) -> SourceKey {
    let by_hop = destination.is_v4() && route.next_hop.is_v4();
    SourceKey { ifindex: route.ifindex, address: if by_hop { route.next_hop } else { destination } }
}

/// Begins the connection of `segment`, a packet of `bytes` bytes from the container behind `here`. Writes the translated tuple to
/// `becomes`.
///
/// # Errors
/// Passes a packet for which there is no address or no free port.
#[inline(always)]
pub fn begin<T: Tables>(
    segment: &Segment,
    route: &Route,
    (here, slot, bytes): (u32, u32, u32),
    tables: &T,
    becomes: &mut TupleKey,
) -> Result<(), Stop> {
    let key = source_key(route, segment.key.destination);
    let no_outlet = Stop::Pass(PassReason::NoOutlet);
    becomes.domain = OUTSIDE;
    becomes.source = tables.source(&key).ok_or(no_outlet)?;
    // Where there is none of IPv4, all of IPv6 holds the mapped addresses.
    if becomes.source.is_v4() != segment.key.source.is_v4() {
        return Err(no_outlet);
    }
    let outlet = tables.outlet(&AddressKey::new(route.ifindex, 0, becomes.source)).ok_or(no_outlet)?;
    let now = tables.boot_time();
    share::charge(slot, Side::Own, now, tables).map_err(Excess::passed)?;
    let opened = Opened { holder: here, flags: opened_by(Side::Own, slot), now, bytes };
    open(segment, &outlet, &opened, tables, becomes)
}

/// Who opens a connection.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// [`Translation::holder`].
    pub holder: u32,
    /// See [`opened_by`].
    pub flags: u32,
    /// `CLOCK_BOOTTIME` in nanoseconds.
    pub now: u64,
    /// Of the first packet, Ethernet header included.
    pub bytes: u32,
}

/// Makes both entries of the connection of `segment`. Keeps the source port of `becomes`, so that a socket has one port towards all of its
/// peers (RFC 4787 REQ-1), unless it is taken for this one.
///
/// # Errors
/// Passes a packet for which there is no free port.
#[inline(always)]
pub fn open<T: Tables>(
    segment: &Segment,
    outlet: &Outlet,
    opened: &Opened,
    tables: &T,
    becomes: &mut TupleKey,
) -> Result<(), Stop> {
    let mut value = Translation { holder: opened.holder, ..answers(segment, opened.now, opened.flags) };
    let mut is_there = false;
    if leads(becomes, tables).is_some_and(|mapping| is_anothers(&segment.key, &mapping)) {
        // Nobody can predict which: it takes nobody's client.
        becomes.source_port = other_port(&segment.key, outlet, ATTEMPTS);
    }
    for attempt in 0..ATTEMPTS {
        if is_free(becomes, opened.now, tables) && take(&becomes.reversed(OUTSIDE), &value, tables) {
            is_there = true;
            break;
        }
        becomes.source_port = other_port(&segment.key, outlet, attempt);
    }
    if !is_there {
        return Err(Stop::Pass(PassReason::TupleTaken));
    }
    value.becomes = *becomes;
    value.shown = Shown::opener(segment.is_tcp()).0;
    value.flags |= TRANSLATION_OPENER;
    (value.packets, value.bytes) = (1, u64::from(opened.bytes));
    if !tables.replace_flow(&segment.key, &value) {
        tables.forget_flow(&becomes.reversed(OUTSIDE));
        return Err(Stop::Pass(PassReason::TupleTaken));
    }
    Ok(())
}

/// Whether the kernel has no connection with the tuple, and no socket that would take its answers. Of echo identifiers this is unknown, and
/// need not be known: the node gets a clone of what comes back for one.
#[inline(always)]
fn is_free<T: Tables>(becomes: &TupleKey, now: u64, tables: &T) -> bool {
    if Protocol(becomes.protocol).is_icmp() {
        return true;
    }
    !claim::holds(&becomes.reversed(OUTSIDE), now, tables) && !tables.has_socket(becomes)
}

/// The host port that a tuple leaves by, if it is one.
#[inline(always)]
pub fn leads<T: Tables>(leaves: &TupleKey, tables: &T) -> Option<Mapping> {
    mapping(&leaves.reversed(OUTSIDE), tables).ok()
}

/// Whether the host port is another container's than the one's that has `sent` the packet: its client at that very end would be answered by this one.
#[inline(always)]
pub fn is_anothers(sent: &TupleKey, mapping: &Mapping) -> bool {
    let own = if sent.source.is_v4() { mapping.v4 } else { mapping.v6 };
    !(mapping.bridge == sent.domain && own.is(sent.source))
}

/// Another port of the node at each attempt, of those outside `ip_local_port_range`: the node's sockets seldom ask for these.
#[inline(always)]
fn other_port(key: &TupleKey, outlet: &Outlet, attempt: u32) -> L4Port {
    let (low, high) = (u32::from(outlet.low), u32::from(outlet.high).max(FIRST - 1));
    let below = low.saturating_sub(FIRST);
    let above = 65_535 - high;
    let [_, _, _, source] = key.source.words();
    let [_, _, _, destination] = key.destination.words();
    let ports = u32::from(key.source_port.half()) << 16 | u32::from(key.destination_port.half());
    let mut mixed = outlet.seed ^ (attempt << 24);
    for word in [source, destination, ports] {
        mixed = (mixed ^ word).wrapping_mul(0x9e37_79b1);
        mixed ^= mixed >> 15;
    }
    let count = below + above;
    // None outside the range: the attempts fail.
    if count == 0 {
        return key.source_port;
    }
    let chosen = mixed % count;
    L4Port::from(if chosen < below { FIRST + chosen } else { high + 1 + chosen - below } as u16)
}
