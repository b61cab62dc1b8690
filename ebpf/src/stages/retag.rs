//! retag: the tag that a frame leaves a port with. Reports call the stage `form`.

use super::classify::Vlan;
use super::deliver;
use crate::Tables;
use crate::abi::vlan::DEFAULT_VID;
use crate::abi::{PORT_DEFAULT_VLAN, Port, PortKey, Station};
use crate::verdict::{DropReason, Stop};
use crate::wire::Packet;
use crate::wire::packet::Tag;

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
pub fn form_at<T: Tables>(vid: u16, port: &Port, there: u32, tables: &T) -> Option<Form> {
    if vid == port.vid || (vid == DEFAULT_VID && port.flags & PORT_DEFAULT_VLAN != 0) {
        return Some(Form::Untagged);
    }
    tables.is_tagged(&PortKey { ifindex: there }, vid).then_some(Form::Tagged)
}

/// Pops and pushes tags until a frame, which has the tag `now`, has a form. Returns the tag that it has then. Leaves a frame
/// alone that has the form already.
///
/// # Errors
/// Drops a frame whose tag the kernel does not change.
#[inline(always)]
pub fn retag<P: Packet>(
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
    if form == Form::Tagged {
        tag(packet, vlan.tci())?;
    }
    Ok(wanted)
}

/// Pushes a tag. No other stage does.
///
/// # Errors
/// Drops a frame to which the kernel gives none.
#[inline(always)]
pub fn tag<P: Packet>(packet: &mut P, tci: u16) -> Result<(), Stop> {
    if packet.push_tag(tci) { Ok(()) } else { Err(Stop::Drop(DropReason::NotTagged)) }
}

/// Pops the tag of a frame for `station`.
///
/// # Errors
/// Drops a frame that does not fit, or whose tag the kernel does not pop.
#[inline(always)]
pub fn strip<P: Packet>(packet: &mut P, station: &Station) -> Result<(), Stop> {
    deliver::fits_tagged(packet, station).map_err(|_| Stop::Drop(DropReason::TooBig))?;
    if packet.pop_tag() { Ok(()) } else { Err(Stop::Drop(DropReason::NotTagged)) }
}
