//! count: every packet that a program judges is counted once, at its sender or receiver and by its path.

use crate::Tables;
use crate::abi::{DropKey, Port};
use crate::tables::Lane;
use crate::verdict::{DropReason, Stop, Verdict, Way};

/// Counts a packet from the port `here`. A delivery is counted at both ends: a redirect to the peer skips the receiver's own
/// hooks.
#[inline(always)]
pub fn sent<T: Tables>(verdict: &Verdict, port: &Port, here: u32, bytes: u32, tables: &T) {
    match *verdict {
        Verdict::Deliver(delivery) => {
            tables.count(port.slot, Lane::FromFast, bytes);
            // What leaves the node has no receiver here, and what comes in by another port is counted there.
            if !matches!(delivery.way, Way::Neighbor(_) | Way::Wire | Way::Into | Way::Onward | Way::Back) {
                tables.count(delivery.slot, Lane::ToFast, bytes);
            }
        }
        // Each copy has been counted.
        Verdict::Flooded(_) => tables.count(port.slot, Lane::FromFast, bytes),
        Verdict::Pass(_) => tables.count(port.slot, Lane::FromKernel, bytes),
        Verdict::Drop(reason) => {
            tables.count(port.slot, Lane::FromDropped, bytes);
            dropped(reason, here, bytes, tables);
        }
    }
}

/// Counts a packet that came in by `here`, an interface without counters: at its receiver.
#[inline(always)]
pub fn arrived<T: Tables>(verdict: &Verdict, here: u32, bytes: u32, tables: &T) {
    match *verdict {
        Verdict::Deliver(delivery) => tables.count(delivery.slot, Lane::ToFast, bytes),
        Verdict::Drop(reason) => dropped(reason, here, bytes, tables),
        Verdict::Pass(_) | Verdict::Flooded(_) => {}
    }
}

/// Counts a packet on its way by the kernel's path to the container behind `here`.
#[inline(always)]
pub fn received<T: Tables>(verdict: &Verdict, port: &Port, here: u32, bytes: u32, tables: &T) {
    match *verdict {
        Verdict::Deliver(_) | Verdict::Pass(_) | Verdict::Flooded(_) => {
            tables.count(port.slot, Lane::ToKernel, bytes);
        }
        Verdict::Drop(reason) => {
            tables.count(port.slot, Lane::ToDropped, bytes);
            dropped(reason, here, bytes, tables);
        }
    }
}

/// Counts a packet on an interface without an entry: only drops have counters. Returns `stop`.
#[inline(always)]
pub fn unknown<T: Tables>(stop: Stop, here: u32, bytes: u32, tables: &T) -> Stop {
    match stop {
        Stop::Drop(reason) => {
            dropped(reason, here, bytes, tables);
            Stop::Drop(reason)
        }
        Stop::Pass(reason) => Stop::Pass(reason),
    }
}

#[inline(always)]
fn dropped<T: Tables>(reason: DropReason, here: u32, bytes: u32, tables: &T) {
    tables.count_drop(&DropKey { ifindex: here, reason: reason as u32 }, bytes);
}
