//! flow affinity: a flow keeps one path for life. Reports call the stage `path`.
//!
//! A flow that the host translates, or that began before the programs were attached, is the kernel's: its conntrack must see
//! both directions. [`crate::stages::track_kernel_flow`] and the agent put such flows into `KERNEL_FLOWS` and make their ports
//! look them up. A port without any (`AFFINITY_FAST`) does not read the IP header here.
//!
//! A translated connection's answer is no bridge's: where a client may be a neighbour that the container answers directly
//! ([`PORT_ANSWERS_NEIGHBORS`]), `from_mapped` gets it.

use crate::Tables;
use crate::abi::{
    AFFINITY_APART, AFFINITY_FAST, AFFINITY_LEARN, FlowKey, PORT_ANSWERS_NEIGHBORS, PORT_HEEDED, Port,
};
use crate::stages::accept::{self, Asked};
use crate::stages::kernel_share;
use crate::stages::read_flow::{Flow, FlowOf, read_flow};
use crate::verdict::{PassReason, Stop};
use crate::wire::Frame;
use crate::wire::packet::Packet;

/// Lets a frame on if its flow is not the kernel's.
///
/// # Errors
/// Passes a kernel flow, and what may belong to one: fragments (the kernel reassembles what it translates), ICMP errors,
/// headers that cannot be read. While the port learns, an unknown flow counts as the kernel's. On a port with [`PORT_HEEDED`] passes what
/// others' rules have not let through. `ports` are those by which it comes and goes, by ifindex.
#[inline(always)]
pub fn check<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    (port, ports): (&Port, [u32; 2]),
    tables: &T,
) -> Result<(), Stop> {
    check_unless(packet, frame, (port, ports), tables, |_| false)
}

/// The same of a frame from a container, which may answer a client of a host port.
///
/// # Errors
/// As [`check`], and passes such an answer.
#[inline(always)]
pub fn check_sent<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    (port, ports): (&Port, [u32; 2]),
    tables: &T,
) -> Result<(), Stop> {
    check_unless(packet, frame, (port, ports), tables, |flow| {
        port.flags & PORT_ANSWERS_NEIGHBORS != 0 && tables.answers_neighbor(&flow.key, flow.source)
    })
}

/// [`check`], of what is no answer of a translated connection.
#[inline(always)]
fn check_unless<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    (port, ports): (&Port, [u32; 2]),
    tables: &T,
    is_translated: impl FnOnce(&Flow) -> bool,
) -> Result<(), Stop> {
    if port.affinity == AFFINITY_FAST {
        return Ok(());
    }
    let Some(flow) = read(packet, frame, port)? else { return Ok(()) };
    if is_translated(&flow) {
        return Err(Stop::Pass(PassReason::KernelFlow));
    }
    check_flow(&flow.key, port, tables)?;
    heed(&Asked { flow: &flow, ports }, port, tables)
}

/// Lets a packet on that others' rules need not judge.
#[inline(always)]
fn heed<T: Tables>(asked: &Asked<'_>, port: &Port, tables: &T) -> Result<(), Stop> {
    if port.flags & PORT_HEEDED == 0 { Ok(()) } else { accept::check(asked, tables) }
}

/// The flow of a frame; none where it has none.
#[inline(always)]
fn read<P: Packet>(packet: &mut P, frame: &Frame, port: &Port) -> Result<Option<Flow>, Stop> {
    match read_flow(packet, frame, port.bridge) {
        FlowOf::Flow(flow) => Ok(Some(flow)),
        FlowOf::Fragment => Err(Stop::Pass(PassReason::Fragment)),
        FlowOf::Unclear => Err(Stop::Pass(PassReason::NoFlow)),
        FlowOf::None if port.flags & PORT_HEEDED != 0 => Err(Stop::Pass(PassReason::Unaccepted)),
        FlowOf::None => Ok(None),
    }
}

/// Lets a flow of a port that looks flows up on if it is not the kernel's.
///
/// # Errors
/// Passes a kernel flow and, while the port learns or is apart, an unknown one.
#[inline(always)]
pub fn check_flow<T: Tables>(key: &FlowKey, port: &Port, tables: &T) -> Result<(), Stop> {
    if tables.is_kernel_flow(key) {
        return Err(Stop::Pass(PassReason::KernelFlow));
    }
    if port.affinity == AFFINITY_LEARN {
        // Without room the agent puts the port apart once it has learned.
        kernel_share::hold(key, port.slot, tables);
        return Err(Stop::Pass(PassReason::KernelFlow));
    }
    if port.affinity == AFFINITY_APART {
        return Err(Stop::Pass(PassReason::KernelFlow));
    }
    Ok(())
}
