//! guard: has the program of this restricted port seen the frame?
//!
//! A port that loses its program would be an open one, until an agent puts it back. The kernel's bridge has a flag of its own for some
//! restrictions and none for others (`ingressPolicy`, `ipspoofchk`). So what a restricted port's programs leave to the kernel
//! is marked as checked, and another program behind them takes the mark off and lets nothing else on: it takes the loss of both to open
//! the port. No mark crosses a veth between two namespaces, so a container cannot bring it along.

use crate::Tables;
use crate::abi::{PORT_GUARDED, Port};
use crate::stages::port::Missing;
use crate::stages::{count, port};
use crate::verdict::{DropReason, PassReason, Stop, Verdict};
use crate::wire::packet::Packet;

/// Marks a frame that a restricted port's program leaves to the kernel.
#[inline(always)]
pub fn checked<P: Packet>(packet: &mut P, missing: Missing, verdict: Verdict) -> Verdict {
    // What the program's second half is to look at, that one marks.
    let is_left = matches!(verdict, Verdict::Pass(reason) if !matches!(reason, PassReason::MayAsk));
    if missing == Missing::Drop && is_left {
        packet.mark_checked();
    }
    verdict
}

/// Lets a frame on that comes from `port` if it was checked, where that is the rule: for a program between the port's and its
/// guard, which leaves the mark to that one.
///
/// # Errors
/// Drops what was not.
#[inline(always)]
pub fn behind<P: Packet>(packet: &P, port: &Port) -> Result<(), Stop> {
    if port.flags & PORT_GUARDED != 0 && !packet.is_checked() {
        return Err(Stop::Drop(DropReason::Unchecked));
    }
    Ok(())
}

/// Takes the mark off what such a program does not leave to the kernel.
#[inline(always)]
pub fn unless_left<P: Packet>(packet: &mut P, verdict: Verdict) -> Verdict {
    if !matches!(verdict, Verdict::Pass(_)) {
        packet.take_checked();
    }
    verdict
}

/// A frame that a container sent, behind [`crate::journey::from_container`] and [`crate::journey::from_mapped`].
#[inline(always)]
pub fn from_container<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    checked_by(packet, here, tables, |verdict, port, bytes| {
        count::sent(verdict, port, here, bytes, tables);
    })
}

/// A frame on its way to a container, behind [`crate::journey::to_container`].
#[inline(always)]
pub fn to_container<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    checked_by(packet, here, tables, |verdict, port, bytes| {
        count::received(verdict, port, here, bytes, tables);
    })
}

/// What was checked is counted already; `count` the rest.
#[inline(always)]
fn checked_by<P: Packet, T: Tables>(
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
        Err(stop) => count::unknown(stop, here, packet.length(), tables),
    }
}
