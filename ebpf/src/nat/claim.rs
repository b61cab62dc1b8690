//! claim: tuples outside of the node whose connections are the kernel's: the node's own, and those that the kernel masquerades. `to_wire` sees
//! them leave and records them in `CLAIMS`. No container gets such a tuple, and an answer to one is none to a host port.
//!
//! Of the node's own only datagrams need it: its TCP sockets can be asked for.

use crate::Tables;
use crate::abi::translation::{OUTSIDE, TupleKey};
use crate::nat::connection::{Phase, lifetime};
use crate::nat::segment::Segment;
use crate::verdict::{PassReason, Stop};
use crate::wire::Protocol;

/// How long a claim need not be renewed, in nanoseconds.
const RENEWED: u64 = 1_000_000_000;

/// Whether a connection of the kernel's has the tuple whose answers have the tuple `answer` at `now`: as long as connection tracking would know
/// one that is answered.
#[inline(always)]
pub fn holds<T: Tables>(answer: &TupleKey, now: u64, tables: &T) -> bool {
    let longest = lifetime(Protocol(answer.protocol), Phase::Established);
    tables.claimed(answer).is_some_and(|seen| now.saturating_sub(seen) < longest)
}

/// The same for a packet of the connection, which renews its claim.
#[inline(always)]
pub fn renew<T: Tables>(answer: &TupleKey, now: u64, tables: &T) -> bool {
    let longest = lifetime(Protocol(answer.protocol), Phase::Established);
    let Some(seen) = tables.claimed(answer) else { return false };
    let age = now.saturating_sub(seen);
    if age >= RENEWED && age < longest {
        tables.claim(answer, now);
    }
    age < longest
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

/// The same of one from a container.
///
/// # Errors
/// Passes a datagram that answers one which has come to the container by the node.
#[inline(always)]
pub fn check_within<T: Tables>(segment: &Segment, tables: &T) -> Result<(), Stop> {
    let is_within = segment.is_datagram() && segment.key.domain != OUTSIDE;
    if is_within && tables.is_incoming_flow(&segment.flow()) {
        return Err(Stop::Pass(PassReason::Claimed));
    }
    Ok(())
}
