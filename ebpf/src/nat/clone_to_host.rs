//! clone to host: the node gets a clone of a packet that belongs to a container's echo.
//!
//! No program can ask which echo identifiers the node's own sockets have, so a ping of the node's, or one that the kernel
//! masquerades, may have the same destination and identifier. The node's stack gets a clone before the first edit; it ignores
//! silently what it has no socket for. The clone comes in again by the same interface, and is recognized by its source address: the
//! destination's own. No other station's frame has that. A mark would not do: a filter in front of ours may set it, and an
//! unrecognized clone would be cloned for ever. A bare packet has no addresses, and is the node's alone: containers' echoes do
//! not leave by interfaces whose replies are bare.

use crate::verdict::{PassReason, Stop};
use crate::wire::address::Mac;
use crate::wire::packet::Packet;
use crate::wire::{Frame, Protocol};

/// Lets on what is no clone; `protocol` is the connection's.
///
/// # Errors
/// Passes a clone.
#[inline(always)]
pub fn unless_clone(frame: &Frame, protocol: Protocol) -> Result<(), Stop> {
    if protocol.is_icmp() && frame.source.is(frame.destination) {
        return Err(Stop::Pass(PassReason::Copied));
    }
    Ok(())
}

/// Clones an echo's packet, which came in by `here`, to the node's stack. Invalidates everything loaded before; the caller has to write
/// the Ethernet addresses.
#[inline(always)]
pub fn clone<P: Packet>(packet: &mut P, protocol: Protocol, here: u32) {
    if protocol.is_icmp() {
        packet.edit(0, |[destination, source]: &mut [Mac; 2]| *source = *destination);
        packet.copy_in(here);
    }
}
