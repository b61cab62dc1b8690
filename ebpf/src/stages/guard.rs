//! guard: whether the program of a restricted port has seen a frame.
//!
//! A port that loses its program would be open until an agent puts it back. The kernel's bridge has a flag of its own for some
//! restrictions and none for others (`ingressPolicy`, `ipspoofchk`). So a restricted port's programs mark what they pass, and
//! another program behind them takes the mark off and drops what has none: the port opens only if both are lost.
//! No mark crosses a veth between two namespaces, so a container cannot set it.

use crate::Tables;
use crate::abi::{PORT_GUARDED, Port};
use crate::stages::port::Missing;
use crate::stages::{count, port};
use crate::verdict::{DropReason, PassReason, Stop, Verdict};
use crate::wire::Packet;

/// Marks a frame that a restricted port's program passes.
#[inline(always)]
pub fn mark<P: Packet>(packet: &mut P, missing: Missing, is_passed: bool) {
    if is_passed && missing == Missing::Drop {
        packet.mark_checked();
    }
}

/// Lets a frame from `port` on if it is marked, where the port requires that: for a program between the port's and its guard. The mark
/// stays for the guard.
///
/// # Errors
/// Drops a frame without the mark.
#[inline(always)]
pub fn marked<P: Packet>(packet: &P, port: &Port) -> Result<(), Stop> {
    if port.flags & PORT_GUARDED != 0 && !packet.is_checked() {
        return Err(Stop::Drop(DropReason::Unchecked));
    }
    Ok(())
}

/// Takes the mark off what such a program does not leave to the kernel.
#[inline(always)]
pub fn unmark_unless_passed<P: Packet>(packet: &mut P, verdict: Verdict) -> Verdict {
    if !verdict.is_onward() {
        packet.take_checked();
    }
    verdict
}

/// Takes the mark off a frame, and drops one without it. Marked frames are counted already; `count` counts the others.
#[inline(always)]
pub fn require<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    count: impl FnOnce(&Verdict, &Port, u32),
) -> Verdict {
    if packet.take_checked() {
        return Verdict::Pass(PassReason::Checked);
    }
    match port::entry(here, Missing::Drop, tables) {
        Ok(port) => {
            let verdict = Verdict::Drop(DropReason::Unchecked);
            count(&verdict, &port, packet.length());
            verdict
        }
        Err(stop) => count::unknown(stop, here, packet.length(), tables).into(),
    }
}
