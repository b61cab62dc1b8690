//! classify: the VLAN of a frame, and whether its port may send there.

use crate::abi::{Port, PortKey};
use crate::verdict::{DropReason, PassReason, Stop};
use crate::wire::Frame;
use crate::wire::packet::{Readable, Tag};
use crate::{Tables, wire};

/// The VLAN id in a tag.
pub const VID: u16 = 0x0fff;

/// The rest of it: priority and drop eligibility.
const PRIORITY: u16 = 0xf000;

/// A frame's VLAN, and the tag that it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// The VLAN id.
    pub vid: u16,
    /// The priority bits of the tag that it came with, at their place in a tag.
    pub priority: u16,
    /// The whole tag that it came with.
    pub came: Option<Tag>,
}

impl Vlan {
    /// The tag that it leaves with where it leaves tagged.
    #[inline(always)]
    pub const fn tci(self) -> u16 {
        self.priority | self.vid
    }
}

/// The VLAN of a frame that came in by `port`, the interface `here`: its tag's, or that of the port's untagged frames where it has
/// no tag or a priority tag.
///
/// # Errors
/// Drops a frame in a VLAN that the port may not send in, service tags, and tags within tags: without the outer one the inner one
/// would put the frame into another VLAN.
#[inline(always)]
pub fn classify<P: Readable, T: Tables>(
    packet: &P,
    frame: &Frame,
    port: &Port,
    here: u32,
    tables: &T,
) -> Result<Vlan, Stop> {
    let Some(tag) = wire::outermost(packet, frame) else {
        return untagged(port, 0, None);
    };
    if tag.is_service() {
        return Err(Stop::Drop(DropReason::ServiceTag));
    }
    if frame.inline_tags > u32::from(frame.tag.is_none()) {
        return Err(Stop::Drop(DropReason::StackedTags));
    }
    let vid = tag.tci() & !PRIORITY;
    if vid == 0 {
        return untagged(port, tag.tci() & PRIORITY, Some(tag));
    }
    if vid != port.vid && !tables.is_tagged(&PortKey { ifindex: here }, vid) {
        return Err(Stop::Drop(DropReason::NotMember));
    }
    Ok(Vlan { vid, priority: tag.tci() & PRIORITY, came: Some(tag) })
}

#[inline(always)]
fn untagged(port: &Port, priority: u16, came: Option<Tag>) -> Result<Vlan, Stop> {
    if port.vid == 0 {
        return Err(Stop::Drop(DropReason::NotMember));
    }
    Ok(Vlan { vid: port.vid, priority, came })
}

/// The header of a frame with a customer tag, and that tag's control information.
///
/// # Errors
/// Passes any other frame.
#[inline(always)]
pub fn customer_tag<P: Readable>(packet: &P) -> Result<(Frame, u16), Stop> {
    let other = Stop::Pass(PassReason::NoInterface);
    let frame = wire::frame(packet).map_err(|_| other)?;
    match wire::outermost(packet, &frame) {
        Some(tag) if !tag.is_service() => Ok((frame, tag.tci())),
        _ => Err(other),
    }
}
