//! classify: in which VLAN is a frame, and may its port send there?

use crate::abi::{Port, PortKey};
use crate::verdict::{DropReason, Stop};
use crate::wire::Frame;
use crate::wire::packet::{Readable, Tag};
use crate::{Tables, wire};

/// The bits of a tag that are no VLAN: priority and drop eligibility.
const PRIORITY: u16 = 0xf000;

/// A frame's VLAN, and what it carries of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// Its number.
    pub vid: u16,
    /// The priority bits of the tag that it came with, where they stand in a tag.
    pub priority: u16,
    /// The tag that it came with, all of it.
    pub came: Option<Tag>,
}

impl Vlan {
    /// The tag that it has to leave with where it leaves tagged.
    #[inline(always)]
    pub const fn tci(self) -> u16 {
        self.priority | self.vid
    }
}

/// The VLAN of a frame that came in by `port`, the interface `here`: its tag's, else, or where the tag holds a priority
/// only, that of the port's untagged frames.
///
/// # Errors
/// Drops what is in no VLAN that the port may send in, service tags, and tags within tags: taking the outer one off would turn the
/// inner one into another VLAN's.
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
