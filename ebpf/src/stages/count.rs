//! count: every packet that a program saw is counted once, at its sender or receiver and by its path.

use crate::Tables;
use crate::abi::{DropKey, Port};
use crate::tables::Lane;
use crate::verdict::{PassReason, Stop, Verdict, Way};

/// Counts what became of a packet from `here`. A delivery is counted at both ends: redirecting to a peer passes the
/// receiver's own hooks by.
#[inline(always)]
pub fn sent<T: Tables>(verdict: &Verdict, port: &Port, here: u32, bytes: u32, tables: &T) {
    match *verdict {
        Verdict::Deliver(delivery) => {
            tables.count(port.slot, Lane::FromFast, bytes);
            // What leaves the node has no receiver here, and what is sent in by another port is counted there.
            if !matches!(delivery.way, Way::Neighbor(_) | Way::Wire | Way::Into | Way::Back) {
                tables.count(delivery.slot, Lane::ToFast, bytes);
            }
        }
        // `from_mapped` comes next, or the program's second half, and counts.
        Verdict::Pass(PassReason::MayAnswer | PassReason::MayAsk) => {}
        // Its copies were counted one by one.
        Verdict::Flooded(_) => tables.count(port.slot, Lane::FromFast, bytes),
        Verdict::Pass(_) => tables.count(port.slot, Lane::FromKernel, bytes),
        Verdict::Drop(reason) => {
            tables.count(port.slot, Lane::FromDropped, bytes);
            tables.count_drop(&DropKey { ifindex: here, reason: reason as u32 }, bytes);
        }
    }
}

/// Counts what became of a packet that came to the node by `here`: at its receiver, for `here` has no counters.
#[inline(always)]
pub fn came_in<T: Tables>(verdict: &Verdict, here: u32, bytes: u32, tables: &T) {
    match *verdict {
        Verdict::Deliver(delivery) => tables.count(delivery.slot, Lane::ToFast, bytes),
        Verdict::Drop(reason) => {
            tables.count_drop(&DropKey { ifindex: here, reason: reason as u32 }, bytes);
        }
        // Members' frames do not come this way.
        Verdict::Pass(_) | Verdict::Flooded(_) => {}
    }
}

/// Counts what became of a packet on its way by the kernel to the container behind `here`.
#[inline(always)]
pub fn received<T: Tables>(verdict: &Verdict, port: &Port, here: u32, bytes: u32, tables: &T) {
    match *verdict {
        Verdict::Deliver(_) | Verdict::Pass(_) | Verdict::Flooded(_) => {
            tables.count(port.slot, Lane::ToKernel, bytes);
        }
        Verdict::Drop(reason) => {
            tables.count(port.slot, Lane::ToDropped, bytes);
            tables.count_drop(&DropKey { ifindex: here, reason: reason as u32 }, bytes);
        }
    }
}

/// Counts what became of a packet on an interface without an entry, which has no counters but its drops'.
#[inline(always)]
pub fn unknown<T: Tables>(stop: Stop, here: u32, bytes: u32, tables: &T) -> Verdict {
    if let Stop::Drop(reason) = stop {
        tables.count_drop(&DropKey { ifindex: here, reason: reason as u32 }, bytes);
    }
    Err(stop).into()
}

/// Counts what became of a packet on an interface that is nobody's port and has no counters but its drops'.
#[inline(always)]
pub fn arrived<T: Tables>(verdict: &Verdict, here: u32, bytes: u32, tables: &T) {
    match *verdict {
        Verdict::Deliver(delivery) => tables.count(delivery.slot, Lane::ToFast, bytes),
        Verdict::Drop(reason) => {
            tables.count_drop(&DropKey { ifindex: here, reason: reason as u32 }, bytes);
        }
        Verdict::Pass(_) | Verdict::Flooded(_) => {}
    }
}
