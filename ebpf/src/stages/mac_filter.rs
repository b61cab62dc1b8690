//! mac filter: whether a frame may have its source MAC address on its port. Reports call the stage `admit`.

use crate::abi::{PORT_MAC_CHECK, Port};
use crate::verdict::{DropReason, PassReason, Stop};
use crate::wire::Frame;

/// Lets a frame on if it has the container's own source address.
///
/// # Errors
/// Drops a frame with a group or zero source address, as the kernel's bridge does. Any other source address is dropped on a
/// checked port (`macspoofchk`). Elsewhere it is a station behind the container, or a container that has changed its address:
/// replies to it take the kernel's path, so the frame is passed.
#[inline(always)]
pub fn check(frame: &Frame, port: &Port) -> Result<(), Stop> {
    if !frame.source.is_valid_source() {
        return Err(Stop::Drop(DropReason::SourceInvalid));
    }
    if !frame.source.is(port.mac) {
        return Err(if port.flags & PORT_MAC_CHECK != 0 {
            Stop::Drop(DropReason::SourceSpoofed)
        } else {
            Stop::Pass(PassReason::ForeignSource)
        });
    }
    Ok(())
}

/// The same on a port in VLANs, where frames of stations behind the container go on: replies to them are flooded.
///
/// # Errors
/// Drops as [`check`].
#[inline(always)]
pub fn check_member(frame: &Frame, port: &Port) -> Result<(), Stop> {
    match check(frame, port) {
        Err(Stop::Pass(_)) | Ok(()) => Ok(()),
        Err(drop) => Err(drop),
    }
}
