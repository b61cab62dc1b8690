//! admit: may a frame come from its port at all?

use crate::abi::{PORT_MAC_CHECK, PORT_SHARED, Port};
use crate::verdict::{DropReason, PassReason, Stop};
use crate::wire::Frame;

/// Lets a frame in if it comes from the container's own address.
///
/// # Errors
/// Drops frames from a group or from none, as the kernel's bridge does. What comes from any other address is dropped on a
/// checked port, and elsewhere is a station behind the container or a container that has changed its address: replies
/// to it will take the kernel's way, so it takes that way too.
#[inline(always)]
pub fn source(frame: &Frame, port: &Port) -> Result<(), Stop> {
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

/// Lets a frame of a port in VLANs in: also that of a station behind the container, to which replies are flooded.
///
/// # Errors
/// Drops frames from a group or from none, and on a checked port from any address but the container's.
#[inline(always)]
pub fn member(frame: &Frame, port: &Port) -> Result<(), Stop> {
    match source(frame, port) {
        Err(Stop::Pass(_)) | Ok(()) => Ok(()),
        Err(drop) => Err(drop),
    }
}

/// Lets a frame in if nobody but us looks at what the port sends.
///
/// # Errors
/// Passes what other filters on the interface are to see: a verdict of ours would take it past them.
#[inline(always)]
pub fn alone(port: &Port) -> Result<(), Stop> {
    if port.flags & PORT_SHARED != 0 {
        return Err(Stop::Pass(PassReason::Shared));
    }
    Ok(())
}
