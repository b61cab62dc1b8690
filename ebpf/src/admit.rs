//! admit: may a frame come from its port at all?

use crate::abi::{PORT_MAC_CHECK, Port};
use crate::parse::Frame;
use crate::verdict::{DropReason, Stop};

/// Lets a frame in if its source address is one that its port may send from.
///
/// # Errors
/// Drops frames from a group or from none, as the kernel's bridge does, and on a checked port all that do not come from
/// the container's own address.
#[inline(always)]
pub fn source(frame: &Frame, port: &Port) -> Result<(), Stop> {
    if !frame.source.is_valid_source() {
        return Err(Stop::Drop(DropReason::SourceInvalid));
    }
    if port.flags & PORT_MAC_CHECK != 0 && !frame.source.is(port.mac) {
        return Err(Stop::Drop(DropReason::SourceSpoofed));
    }
    Ok(())
}
