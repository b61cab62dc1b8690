//! `from_mapped`: tc ingress of a container's host veth end, behind `from_container`, where host ports lead to the container
//! or it is masqueraded. Takes what the container sends to the node for a translated connection out of the node.
//!
//! Its parts: [`reply`]; for what has no transport header [`later_fragment`], then [`plan_icmp_error`] and
//! [`rewrite_icmp_error`]; for a masqueraded connection's first packet [`plan_begin`] and [`begin`]. Before there is an entry,
//! whatever is in doubt is passed untouched: the kernel's own rule masquerades it, and its connection for life.

mod begin;
mod icmp_error;
mod later_fragment;
mod refuse;
mod reply;

use super::{BeginPlan, IcmpErrorPlan, Next};
use crate::Tables;
use crate::abi::{
    PORT_ANSWERS_NEIGHBORS, PORT_BLOCKED, PORT_MAPPED, PORT_MASQUERADED, PORT_SHARED, Port, Station,
};
use crate::stages::port::Missing;
use crate::stages::{count, find, guard, mac_filter, parse, port};
use crate::verdict::{PassReason, Stop, Verdict};
use crate::wire::{Frame, Packet};

pub use begin::{begin, plan_begin};
pub use icmp_error::{plan_icmp_error, rewrite_icmp_error};
pub use later_fragment::later_fragment;
pub use refuse::refuse;
pub use reply::reply;

/// No port.
const NO_HOLDER: u32 = 0;

/// Of no translated connection: for the node's own stack.
const TO_NODE: Stop = Stop::Pass(PassReason::ToHost);

/// From another MAC address than the container's.
const FOREIGN: Stop = Stop::Pass(PassReason::ForeignSource);

/// The whole program.
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let (mut error, mut beginning) = (IcmpErrorPlan::default(), BeginPlan::default());
    let mut next = reply(packet, here, tables, || Some(&mut beginning));
    if next == Next::IcmpError {
        next = later_fragment(packet, here, tables);
    }
    if next == Next::IcmpError {
        next = plan_icmp_error(packet, here, tables, || Some(&mut error));
    }
    if next == Next::IcmpError {
        next = rewrite_icmp_error(packet, here, tables, &error);
    }
    if next == Next::Begin {
        next = plan_begin(packet, here, tables, || Some(&mut beginning));
    }
    if next == Next::Begin {
        next = begin(packet, here, tables, &beginning);
    }
    if next == Next::FragNeeded {
        next = refuse(packet, here, tables).into();
    }
    guard::unmark_unless_passed(packet, next.verdict())
}

/// A frame from the port `here` to the node, and the port's entry: a frame that `from_container` has left to this program, or on a
/// shared port one that it would have left, for other programs' filters cannot translate a reply. A container that has changed its MAC
/// address goes on replying.
///
/// # Errors
/// Passes everything else, and what the kernel's bridge drops as the port does not forward; drops a frame without an Ethernet header, and one that a restricted port's program has not marked.
#[inline(always)]
fn entry<P: Packet, T: Tables>(packet: &P, here: u32, tables: &T) -> Result<(Frame, Port), Stop> {
    let mut port = port::entry(here, Missing::Pass, tables)?;
    guard::marked(packet, &port)?;
    if port.flags & PORT_BLOCKED != 0 {
        return Err(Stop::Pass(PassReason::Blocked));
    }
    let frame = parse::frame(packet)?;
    let has_moved = match mac_filter::check(&frame, &port) {
        Ok(()) => false,
        Err(FOREIGN) if port.flags & PORT_MAPPED != 0 => true,
        Err(stop) => return Err(stop),
    };
    // Verifier: one call for both.
    match find::station(&frame, &port, here, tables) {
        Err(TO_NODE) if has_moved => {
            // `from_container` has passed and counted it.
            port.flags = port.flags & !PORT_MASQUERADED | PORT_SHARED;
            Ok((frame, port))
        }
        _ if has_moved => Err(FOREIGN),
        Err(TO_NODE) if port.flags & (PORT_MAPPED | PORT_MASQUERADED) != 0 => Ok((frame, port)),
        found if port.flags & PORT_ANSWERS_NEIGHBORS != 0 && may_be_neighbor(&found) => {
            port.flags &= !PORT_MASQUERADED;
            Ok((frame, port))
        }
        Err(stop) => Err(stop),
        Ok(_) if port.flags & PORT_SHARED != 0 => Err(Stop::Pass(PassReason::Shared)),
        Ok(_) => Err(Stop::Pass(PassReason::KernelFlow)),
    }
}

/// Whether a frame is for somebody on the container's link whom it may answer directly.
#[inline(always)]
const fn may_be_neighbor(found: &Result<Station, Stop>) -> bool {
    matches!(found, Ok(_) | Err(Stop::Pass(PassReason::UnknownStation)))
}

/// The holder of the masqueraded connections that a frame may belong to; none from another MAC address than the container's own, to
/// which answers are delivered.
#[inline(always)]
fn holder(frame: &Frame, port: &Port, here: u32) -> u32 {
    if frame.source.is(port.mac) { here } else { NO_HOLDER }
}

/// Counts a packet whose way ends. On shared ports `from_container` has counted it.
#[inline(always)]
fn count_end<T: Tables>(next: &Next, port: &Port, here: u32, bytes: u32, tables: &T) {
    let Next::Done(verdict) = next else { return };
    if port.flags & PORT_SHARED == 0 {
        count::sent(verdict, port, here, bytes, tables);
    }
}
