//! path: a flow keeps one path for life.
//!
//! What the host has translated, or what began before our programs were there, is the kernel's: its conntrack must see
//! both directions. [`crate::stages::track_kernel_flow`] and the agent put such flows into `KERNEL_FLOWS` and make their ports ask. A
//! port that has none (`PATH_FAST`) does not even read the IP header here.

use crate::Tables;
use crate::abi::{FlowKey, PATH_FAST, PATH_LEARN, Port};
use crate::stages::read_flow::{FlowOf, read_flow};
use crate::verdict::{PassReason, Stop};
use crate::wire::Frame;
use crate::wire::packet::Packet;

/// Lets a frame on if its flow is ours.
///
/// # Errors
/// Passes a flow of the kernel's, and what may belong to one: fragments (the kernel reassembles what it translates),
/// ICMP errors, headers that cannot be read. While the port learns, an unknown flow is taken for the kernel's.
#[inline(always)]
pub fn ours<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    tables: &T,
) -> Result<(), Stop> {
    if port.asks == PATH_FAST {
        return Ok(());
    }
    let key = match read_flow(packet, frame, port.bridge) {
        FlowOf::Flow { key, .. } => key,
        FlowOf::Fragment => return Err(Stop::Pass(PassReason::Fragment)),
        FlowOf::Unclear => return Err(Stop::Pass(PassReason::NoFlow)),
        FlowOf::None => return Ok(()),
    };
    unheld(&key, port, tables)
}

/// Lets a flow of a port that asks on if the kernel has not got it.
///
/// # Errors
/// Passes one that it has and, while the port learns, one that nobody knows.
#[inline(always)]
pub fn unheld<T: Tables>(key: &FlowKey, port: &Port, tables: &T) -> Result<(), Stop> {
    if tables.is_kernel_flow(key) {
        return Err(Stop::Pass(PassReason::KernelFlow));
    }
    if port.asks == PATH_LEARN {
        tables.note_kernel_flow(key);
        return Err(Stop::Pass(PassReason::KernelFlow));
    }
    Ok(())
}
