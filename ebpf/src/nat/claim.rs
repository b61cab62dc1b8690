//! claim: tuples outside of the node whose connections are the kernel's: the node's own, and those that the kernel masquerades. `to_wire` sees
//! them leave and records them in `OWN_CLAIMS` and `CLAIMS`. No container gets such a tuple, and an answer to one is none to a host port.

use crate::Tables;
use crate::abi::translation::TupleKey;
use crate::nat::connection::{Phase, lifetime};
use crate::nat::segment::Segment;
use crate::stages::incoming;
use crate::stages::isolate::is_bridge;
use crate::tables::Claimant;
use crate::verdict::{PassReason, Stop};
use crate::wire::Protocol;

/// How long what was seen need not be renewed, in nanoseconds.
const RENEWED: u64 = 1_000_000_000;

/// Whether a connection of the kernel's that was `seen` then is one still: as long as connection tracking would know one that is established.
#[inline(always)]
const fn is_fresh(seen: u64, now: u64, protocol: u8) -> bool {
    now.saturating_sub(seen) < lifetime(Protocol(protocol), Phase::Established)
}

/// Whether a connection of the kernel's has the tuple whose answers have the tuple `answer`.
#[inline(always)]
pub fn holds<T: Tables>(answer: &TupleKey, now: u64, tables: &T) -> bool {
    let own = tables.claimed(Claimant::Own, answer).unwrap_or_default();
    let masqueraded = tables.claimed(Claimant::Masqueraded, answer).unwrap_or_default();
    let seen = if own > masqueraded { own } else { masqueraded };
    // Verifier: one question for both; at 0 the machine was started.
    seen != 0 && is_fresh(seen, now, answer.protocol)
}

/// The same for a packet of the connection, which renews its claim.
#[inline(always)]
pub fn renew<T: Tables>(by: Claimant, answer: &TupleKey, now: u64, tables: &T) -> bool {
    let Some(seen) = tables.claimed(by, answer) else { return false };
    let is_fresh = is_fresh(seen, now, answer.protocol);
    if is_fresh && now.saturating_sub(seen) >= RENEWED {
        tables.claim(by, answer, now);
    }
    is_fresh
}

/// Lets a packet from outside to a host port on, of no connection so far, if nothing of the kernel's has asked for it.
///
/// # Errors
/// Passes a datagram that answers one of the node's own, or one that the kernel has masqueraded.
#[inline(always)]
pub fn check<T: Tables>(segment: &Segment, tables: &T) -> Result<(), Stop> {
    if segment.is_datagram() && holds(&segment.key, tables.boot_time(), tables) {
        return Err(Stop::Pass(PassReason::Claimed));
    }
    Ok(())
}

/// The same of one that came by the bridge `here`, from a container or by an uplink: no program sees what the node sends there claim a tuple,
/// and its flows of datagrams are known.
///
/// # Errors
/// Passes a datagram that answers one which the node has sent or routed.
#[inline(always)]
pub fn check_within<T: Tables>(segment: &Segment, here: u32, tables: &T) -> Result<(), Stop> {
    if !segment.is_datagram() || !is_bridge(here, tables) {
        return Ok(());
    }
    let mut flow = segment.flow();
    flow.bridge = here;
    if incoming::is_answered(&flow, tables) {
        return Err(Stop::Pass(PassReason::Claimed));
    }
    Ok(())
}
