//! carry: connections that the kernel has opened and translates, behind others' rules, and that the programs carry: those of host ports, and those that it
//! masquerades.
//!
//! The kernel's own rule translates such a connection, so it meets what it would meet without the programs. What leaves by all hooks is noted, each
//! direction as it leaves: what the container gets at `to_container`, what it sends at `to_wire`. Once a direction has been noted a few times (a host port's
//! answers; what a masqueraded container gets) the agent is asked: it has connection tracking say what becomes of both directions, and writes that down as two
//! entries whose holder is [`TRACKED`](crate::abi::translation::TRACKED) or [`TRACKED_MASQUERADED`]. From then on each direction takes the fast path for a
//! lease after the packet that was noted last ([`accept`]): then one goes by the kernel again, which asks all rules, and keeps connection tracking's entry alive.
//!
//! What begins and ends a connection, fragments, errors and all else that is in doubt go by the kernel untouched. An end is the end of the entries, and of
//! all that was noted: should the connection go on, for connection tracking believed none of it, it is asked for again.

use crate::Tables;
use crate::abi::translation::{Mapping, OUTSIDE, TRACKED_MASQUERADED, TupleKey};
use crate::abi::{AddressKey, End, FlowKey, HEEDING_MARKED_ROUTES, StationKey};
use crate::nat::segment::Segment;
use crate::stages::accept::{self, Asked, Wanted};
use crate::stages::read_flow::{Flow, V4_HEADER, V6_HEADER};
use crate::verdict::{PassReason, Stop};
use crate::wire::{Fragment, Packet};

/// Lets a packet on that will leave as `leaves`, from one interface to another (`ports`), if its direction's lease lasts. Its IP header is at `header`.
///
/// # Errors
/// Passes any other.
#[inline(always)]
pub fn check<T: Tables>(
    segment: &Segment,
    (header, leaves): (u32, &TupleKey),
    ports: [u32; 2],
    tables: &T,
) -> Result<(), Stop> {
    let mut flow = leaving(segment, header, leaves);
    let asked = Asked { flow: &flow, ports };
    let by_kernel = Stop::Pass(PassReason::Unaccepted);
    if !asked.is_edge() {
        return if accept::is_accepted_one_way(&asked, tables) { Ok(()) } else { Err(by_kernel) };
    }
    // An end that comes another way is somebody else's. What begins a connection has nothing of an earlier one, whichever way it comes.
    if segment.opens() || accept::is_as_noted(&asked, tables) {
        forget(segment, leaves, &mut flow, tables);
    }
    Err(by_kernel)
}

/// Gives a connection back to the kernel. `flow` is that of the packet as it leaves.
#[inline(always)]
fn forget<T: Tables>(segment: &Segment, leaves: &TupleKey, flow: &mut Flow, tables: &T) {
    tables.forget_flow(&segment.key);
    tables.forget_flow(&leaves.reversed(leaves.domain));
    tables.forget_accepted_flow(&flow.key);
    // Verifier: in the place of the other, for the stack's sake.
    flow.key = segment.flow();
    tables.forget_accepted_flow(&flow.key);
}

/// Whether a packet that leaves may have taken a way that the programs do not find: by its mark.
#[inline(always)]
pub fn is_routed_by_mark<P: Packet, T: Tables>(packet: &P, tables: &T) -> bool {
    packet.is_marked_by_others()
        && tables.heeding().is_some_and(|heeding| heeding.flags & HEEDING_MARKED_ROUTES != 0)
}

/// Notes an answer that leaves the node as `leaves`, out of all hooks, by the host port `mapping`, whose container pays. Others may be masqueraded to the same
/// port: an answer is what goes to somebody whose packets the container gets.
#[inline(always)]
pub fn note_answer<T: Tables>(
    segment: &Segment,
    mapping: &Mapping,
    (header, leaves): (u32, &TupleKey),
    ports: [u32; 2],
    tables: &T,
) {
    let key = StationKey { bridge: mapping.bridge, vid: mapping.vid, mac: mapping.mac };
    let Some(station) = tables.station(&key) else { return };
    // Verifier: before the other flow is on the stack.
    let is_one =
        accept::is_edge(segment.flags()) || tables.accepted_flow(&answered(leaves, mapping)).is_some();
    if is_one {
        let flow = leaving(segment, header, leaves);
        accept::note_and_ask(&Asked { flow: &flow, ports }, station.slot, Wanted::Translation, tables);
    }
}

/// Notes a packet that leaves the node out of all hooks, if it is of a connection that the kernel masquerades and the programs carry, whose container pays. Its
/// claim is the entry's. Returns whether it is.
#[inline(always)]
pub fn note_masqueraded<P: Packet, T: Tables>(
    packet: &P,
    (segment, header): (&Segment, u32),
    here: u32,
    tables: &T,
) -> bool {
    if tables.heeding().is_none_or(|heeding| heeding.lease == 0) {
        return false;
    }
    let Some((answer, TRACKED_MASQUERADED)) = tables.becomes(&segment.key.reversed(OUTSIDE)) else {
        return false;
    };
    let key = AddressKey::new(answer.domain, 0, answer.destination);
    if let Some((port, _)) = tables.resident(&key, 0)
        && !is_routed_by_mark(packet, tables)
    {
        let leaves = TupleKey { domain: OUTSIDE, ..segment.key };
        let flow = leaving(segment, header, &leaves);
        let ports = [packet.origin(), here];
        accept::note_and_ask(&Asked { flow: &flow, ports }, port.slot, Wanted::Nothing, tables);
    }
    true
}

/// The flow, at the container, of what an answer that leaves as `leaves` is one to.
#[inline(always)]
fn answered(leaves: &TupleKey, mapping: &Mapping) -> FlowKey {
    let address = if leaves.source.is_v4() { mapping.v4 } else { mapping.v6 };
    let container = End { address, port: mapping.port };
    let client = End { address: leaves.destination, port: leaves.destination_port };
    FlowKey::of(mapping.bridge, leaves.protocol, client, container)
}

/// The flow of a packet as it leaves.
#[inline(always)]
fn leaving(segment: &Segment, header: u32, leaves: &TupleKey) -> Flow {
    let source = End { address: leaves.source, port: leaves.source_port };
    let destination = End { address: leaves.destination, port: leaves.destination_port };
    let bytes = if leaves.source.is_v4() { V4_HEADER } else { V6_HEADER };
    Flow {
        key: FlowKey::of(leaves.domain, leaves.protocol, source, destination),
        source: leaves.source,
        flags: segment.flags(),
        is_plain: segment.ip.fragment == Fragment::Whole && segment.ip.payload - header == bytes,
    }
}
