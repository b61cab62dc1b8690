//! police: whether a container exceeds its rate, or its rate of flooded frames.
//!
//! A tbf on the container's own end queues what a limited container sends. The container can remove it, and a packet socket
//! can bypass it. Traffic shaped by the tbf never hits this policer, which is a little wider; only traffic that bypasses it does.
//!
//! The algorithm is virtual scheduling (ITU-T I.371, annex A). Packets come on many CPUs without a lock: charges are added
//! atomically and not lost; of two packets that both find nothing due, one may be free.

use crate::abi::policer::{PRICED, Policer, Storm, SubnetKey, storm_slot};
use crate::abi::{PORT_POLICED, PORT_STORM, PORT_SUBNETS, Port};
use crate::verdict::{DropReason, Stop};
use crate::wire::Frame;
use crate::wire::packet::Packet;
use crate::{Tables, wire};

/// Bytes of the longer of both IP headers.
const IP_BYTES: u32 = 40;

/// Charges a packet to its port. A port without a limit costs no look-up.
///
/// # Errors
/// Drops a packet that does not conform; it is not charged.
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
/// Drops what does not conform; it is not charged.
#[inline(always)]
pub fn conforming<T: Tables>(port: &Port, bytes: u32, tables: &T) -> Result<(), Stop> {
    let Some(policer) = tables.policer(port.slot) else { return Ok(()) };
    if conforms(port.slot, &policer, cost(&policer, bytes), tables) {
        return Ok(());
    }
    Err(Stop::Drop(DropReason::RateExceeded))
}

/// Charges a frame to a group by the packet (`stormControl`). A port without such a limit costs no look-up.
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

/// Whether the limit covers the packet's destination (`shapedSubnets`). A packet that cannot be read is covered.
#[inline(always)]
fn is_limited<P: Packet, T: Tables>(packet: &mut P, frame: &Frame, port: &Port, tables: &T) -> bool {
    if port.flags & PORT_SUBNETS == 0 {
        return true;
    }
    // Verifier: always. A second attempt would double the states of all that follows.
    if !packet.linearize(frame.payload + IP_BYTES) {
        return true;
    }
    wire::destination(packet, frame)
        .map_or(true, |address| tables.is_limited(&SubnetKey { slot: port.slot, address }))
}

/// Whether a packet that costs `cost` conforms. Charges it if it does.
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

/// The time that `bytes` bytes take at the rate, in nanoseconds.
#[inline(always)]
fn cost(policer: &Policer, bytes: u32) -> u64 {
    u64::from(bytes).wrapping_mul(policer.price) / PRICED
}
