//! parse: the Ethernet header, and no more; later stages read what they need.

use crate::verdict::{DropReason, Stop};
use crate::wire::{self, Frame, Readable};

/// The frame's header.
///
/// # Errors
/// Drops a frame that ends inside the header or inside a tag.
#[inline(always)]
pub fn frame<P: Readable>(packet: &P) -> Result<Frame, Stop> {
    wire::frame(packet).map_err(|_| Stop::Drop(DropReason::Truncated))
}
