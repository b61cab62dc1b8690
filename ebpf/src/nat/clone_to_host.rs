//! share: what comes back for an echo of a container's may be the node's as well.
//!
//! No program can ask which identifiers the node's own sockets have, and a ping of the node's, or one that the kernel masquerades,
//! may ask the same one under the same identifier. So the node's stack is given a copy before the first edit; what it has no
//! socket for it ignores without a word. The copy comes in once more by the same interface, and is known by its sender: the very
//! address that it is for. No frame that another station sends has that, and no mark could be relied on: a filter in front of ours
//! may set it, and a copy that is not known is copied for ever. What comes in bare has no addresses to tell its copy by, and is the
//! node's alone: no echo of a container's goes out where replies are bare.

use crate::verdict::{PassReason, Stop};
use crate::wire::address::Mac;
use crate::wire::packet::Packet;
use crate::wire::{Frame, Protocol};

/// Lets on what is not such a copy; `protocol` is that of the connection which it belongs to.
///
/// # Errors
/// Passes the copy.
#[inline(always)]
pub fn unless_copied(frame: &Frame, protocol: Protocol) -> Result<(), Stop> {
    if protocol.is_icmp() && frame.source.is(frame.destination) {
        return Err(Stop::Pass(PassReason::Copied));
    }
    Ok(())
}

/// Gives the node's stack a copy of an echo's that came in by `here`. Everything loaded before may have moved, and whoever sends
/// it on writes the Ethernet addresses.
#[inline(always)]
pub fn with_node<P: Packet>(packet: &mut P, protocol: Protocol, here: u32) {
    if protocol.is_icmp() {
        packet.edit(0, |[destination, source]: &mut [Mac; 2]| *source = *destination);
        packet.copy_in(here);
    }
}
