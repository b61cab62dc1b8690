//! `from_mapped`: tc ingress of a container's host veth end, behind `from_container`, where host ports lead to the container
//! or it is masqueraded. Takes what the container sends to the node for a translated connection out of the node.
//!
//! Its parts: [`enter`]; [`reply`]; for what has no transport header [`later_fragment`], then [`plan_icmp_error`] and
//! [`rewrite_icmp_error`]; for a masqueraded connection's first packet [`plan_begin`] and [`begin`]; for a connection that the kernel has opened [`tracked`]. Before there is an entry,
//! whatever is in doubt is passed untouched: the kernel's own rule masquerades it, and its connection for life.

mod begin;
mod enter;
mod icmp_error;
mod later_fragment;
mod refuse;
mod reply;
mod tracked;

use super::{BeginPlan, IcmpErrorPlan, Next};
use crate::Tables;
use crate::abi::{HandedOn, PORT_SHARED, Port};
use crate::stages::{count, guard};
use crate::verdict::{PassReason, Stop, Verdict};
use crate::wire::{Frame, Packet};

pub use begin::{begin, plan_begin};
pub use enter::enter;
pub use icmp_error::{plan_icmp_error, rewrite_icmp_error};
pub use later_fragment::later_fragment;
pub use refuse::refuse;
pub use reply::reply;
pub use tracked::tracked;

/// No port.
const NO_HOLDER: u32 = 0;

/// Of no translated connection: for the node's own stack.
const TO_NODE: Stop = Stop::Pass(PassReason::ToHost);

/// The whole program. `handed`: what `from_container` has handed on.
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, handed: &mut HandedOn) -> Verdict {
    let (mut error, mut beginning) = (IcmpErrorPlan::default(), BeginPlan::default());
    let mut next = enter(packet, here, tables, || Some(&mut *handed));
    if next == Next::Translate {
        next = reply(packet, here, tables, || Some(&mut beginning), handed);
    }
    if next == Next::IcmpError {
        next = later_fragment(packet, here, tables, handed);
    }
    if next == Next::IcmpError {
        next = plan_icmp_error(packet, here, tables, || Some(&mut error), handed);
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
    if next == Next::Tracked {
        next = tracked(packet, here, tables, &beginning);
    }
    if next == Next::FragNeeded {
        next = refuse(packet, here, tables, handed).into();
    }
    guard::unmark_unless_passed(packet, next.verdict())
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
