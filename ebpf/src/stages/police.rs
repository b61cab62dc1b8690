//! police: does a container send more than it may, or flood more than it may?
//!
//! What a limited container sends waits in a queue on its own end. It can take that away, and a packet socket can go past
//! it. What has waited always conforms here, because this is a little wider than the queue: it is felt by those only
//! who did not wait.
//!
//! The algorithm is virtual scheduling (ITU-T I.371, annex A). Packets come on many CPUs, and none waits for another: what
//! is charged is added atomically, so that it is not lost; two packets that both find nothing due may both begin anew, and
//! one of them is free.

use crate::abi::policer::{PRICED, Policer, Storm, SubnetKey, storm_slot};
use crate::abi::{PORT_POLICED, PORT_STORM, PORT_SUBNETS, Port};
use crate::verdict::{DropReason, Stop};
use crate::wire::Frame;
use crate::wire::packet::Packet;
use crate::{Tables, wire};

/// Bytes of the longer of both IP headers.
const IP_BYTES: u32 = 40;

/// Charges a packet to its port. Nothing is looked up for a port without a limit.
///
/// # Errors
/// Drops what does not conform, which then costs nothing.
#[inline(always)]
pub fn rate<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    tables: &T,
) -> Result<(), Stop> {
    if port.flags & PORT_POLICED == 0 || !is_limited(packet, frame, port, tables) {
        return Ok(());
    }
    conforming(port, packet.length(), tables)
}

/// Charges `bytes` bytes to a limited port.
///
/// # Errors
/// Drops what does not conform, which then costs nothing.
#[inline(always)]
pub fn conforming<T: Tables>(port: &Port, bytes: u32, tables: &T) -> Result<(), Stop> {
    let Some(policer) = tables.policer(port.slot) else { return Ok(()) };
    if conforms(port.slot, &policer, cost(&policer, bytes), tables) {
        return Ok(());
    }
    Err(Stop::Drop(DropReason::RateExceeded))
}

/// Charges a frame that its port floods, by the packet. Nothing is looked up for a port without such a limit.
///
/// # Errors
/// Drops what does not conform.
#[inline(always)]
pub fn flood<T: Tables>(frame: &Frame, port: &Port, tables: &T) -> Result<(), Stop> {
    if port.flags & PORT_STORM == 0 || !frame.destination.is_group() {
        return Ok(());
    }
    let storm = if frame.destination.is_broadcast() { Storm::Broadcast } else { Storm::Multicast };
    let slot = storm_slot(port.slot, storm);
    let Some(policer) = tables.policer(slot).filter(|policer| policer.price != 0) else { return Ok(()) };
    if conforms(slot, &policer, policer.price, tables) {
        return Ok(());
    }
    Err(Stop::Drop(DropReason::StormControl))
}

/// Whether a limit is one of what goes where this packet does. What cannot be read goes nowhere that is free.
#[inline(always)]
fn is_limited<P: Packet, T: Tables>(packet: &mut P, frame: &Frame, port: &Port, tables: &T) -> bool {
    if port.flags & PORT_SUBNETS == 0 {
        return true;
    }
    // Verifier: always, because a second attempt would be one more state of all that comes behind.
    if !packet.linearize(frame.payload + IP_BYTES) {
        return true;
    }
    wire::destination(packet, frame)
        .map_or(true, |address| tables.is_limited(&SubnetKey { slot: port.slot, address }))
}

/// Whether what costs `cost` conforms; then it is charged.
#[inline(always)]
fn conforms<T: Tables>(slot: u32, policer: &Policer, cost: u64, tables: &T) -> bool {
    let now = tables.now();
    if policer.due.saturating_sub(now) > policer.tolerance {
        return false;
    }
    if policer.due < now {
        tables.begin(slot, now + cost);
    } else {
        tables.charge(slot, cost);
    }
    true
}

/// How long `bytes` bytes take at the rate, in nanoseconds.
#[inline(always)]
fn cost(policer: &Policer, bytes: u32) -> u64 {
    u64::from(bytes).wrapping_mul(policer.price) / PRICED
}
