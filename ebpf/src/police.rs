//! police: does a container send more than it may?
//!
//! What a limited container sends waits in a queue on its own end. It can take that away, and a packet socket can go past
//! it. What has waited always conforms here, because this is a little wider than the queue: it is felt by those only
//! who did not wait.
//!
//! The algorithm is virtual scheduling (ITU-T I.371, annex A). Packets come on many CPUs, and none waits for another: what
//! is charged is added atomically, so that it is not lost; two packets that both find nothing due may both begin anew, and
//! one of them is free.

use crate::Tables;
use crate::abi::policer::{PRICED, Policer};
use crate::abi::{PORT_POLICED, Port};
use crate::verdict::{DropReason, Stop};

/// Charges a packet of `bytes` bytes to its port. Nothing is looked up for a port without a limit.
///
/// # Errors
/// Drops what does not conform, which then costs nothing.
#[inline(always)]
pub fn rate<T: Tables>(port: &Port, bytes: u32, tables: &T) -> Result<(), Stop> {
    if port.flags & PORT_POLICED == 0 {
        return Ok(());
    }
    let Some(policer) = tables.policer(port.slot) else { return Ok(()) };
    let now = tables.now();
    if policer.due.saturating_sub(now) > policer.tolerance {
        return Err(Stop::Drop(DropReason::RateExceeded));
    }
    if policer.due < now {
        tables.begin(port.slot, now + cost(&policer, bytes));
    } else {
        tables.charge(port.slot, cost(&policer, bytes));
    }
    Ok(())
}

/// How long `bytes` bytes take at the rate, in nanoseconds.
#[inline(always)]
fn cost(policer: &Policer, bytes: u32) -> u64 {
    u64::from(bytes).wrapping_mul(policer.price) / PRICED
}
