//! form: does a port get frames of a VLAN, and do they carry a tag there?

use super::classify::Vlan;
use crate::Tables;
use crate::abi::vlan::DEFAULT_VID;
use crate::abi::{PORT_DEFAULT_VLAN, Port, PortKey};
use crate::verdict::{DropReason, Stop};
use crate::wire::packet::{Packet, Tag};

/// How frames of a VLAN leave by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Without a tag.
    Untagged,
    /// With the VLAN's tag.
    Tagged,
}

/// How frames of the VLAN `vid` leave by `port`, the interface `there`; none if it is not in that VLAN.
#[inline(always)]
pub fn at<T: Tables>(vid: u16, port: &Port, there: u32, tables: &T) -> Option<Form> {
    if vid == port.vid || (vid == DEFAULT_VID && port.flags & PORT_DEFAULT_VLAN != 0) {
        return Some(Form::Untagged);
    }
    tables.is_tagged(&PortKey { ifindex: there }, vid).then_some(Form::Tagged)
}

/// Brings a frame that has the tag `now` into a form. Answers the tag that it has then. What is right already is not
/// touched.
///
/// # Errors
/// Drops a frame that the kernel will not tag.
#[inline(always)]
pub fn bring<P: Packet>(
    packet: &mut P,
    vlan: Vlan,
    now: Option<Tag>,
    form: Form,
) -> Result<Option<Tag>, Stop> {
    let wanted = match form {
        Form::Untagged => None,
        Form::Tagged => Some(Tag::customer(vlan.tci())),
    };
    if now == wanted {
        return Ok(now);
    }
    if now.is_some() && !packet.pop_tag() {
        return Err(Stop::Drop(DropReason::NotTagged));
    }
    if form == Form::Tagged && !packet.push_tag(vlan.tci()) {
        return Err(Stop::Drop(DropReason::NotTagged));
    }
    Ok(wanted)
}
