//! flood: a frame for a group, or for an unknown station, goes to every other port of its VLAN.

use super::classify::Vlan;
use super::retag::{self, Form};
use crate::Tables;
use crate::abi::vlan::{MAX_BRIDGE_PORTS, MemberKey};
use crate::abi::{PORT_ALONE, PORT_ISOLATED, PORT_WIRE, Port, PortKey};
use crate::tables::Lane;
use crate::verdict::Delivery;
use crate::wire::Packet;

/// The destination of a frame in a VLAN.
pub enum Destination {
    /// One port.
    One(Delivery),
    /// Every other member of the VLAN.
    Vlan(Vlan),
}

/// Sends copies of a frame that came in by `port`, the interface `here`, to the other members of its VLAN. Returns how many.
///
/// Copies go through the ports' own tc egress hooks, marked as judged: a redirect to the peer has one receiver only.
#[inline(always)]
pub fn to_members<P: Packet, T: Tables>(
    packet: &mut P,
    vlan: Vlan,
    port: &Port,
    here: u32,
    tables: &T,
) -> u32 {
    let bytes = packet.length();
    let mut copies = 0;
    packet.mark_judged();
    // At tc ingress the tag is beside the frame; what is in it, as in a test run, is put there.
    if let Some(tag) = vlan.came
        && packet.tag().is_none()
        && !(packet.pop_tag() && retag::tag(packet, tag.tci()).is_ok())
    {
        return 0;
    }
    tables.repeat(MAX_BRIDGE_PORTS, |position| {
        let Some(member) = tables.member(&MemberKey { bridge: port.bridge, position }) else {
            return false;
        };
        let there = member.ifindex;
        if there == here {
            return true;
        }
        // A hole in the list has no port either.
        if let Some(receiver) = tables.port(&PortKey { ifindex: there })
            && port.flags & receiver.flags & PORT_ISOLATED == 0
            && (port.flags | receiver.flags) & (PORT_ALONE | PORT_WIRE) != PORT_ALONE
            && let Some(form) = retag::form_at(vlan.vid, &receiver, there, tables)
            && copy(packet, vlan, form, there)
        {
            copies += 1;
            tables.count(receiver.slot, Lane::ToFast, bytes);
        }
        true
    });
    copies
}

#[inline(always)]
fn copy<P: Packet>(packet: &mut P, vlan: Vlan, form: Form, there: u32) -> bool {
    // Verifier: the frame knows its tag; to remember it would take room on the stack.
    retag::retag(packet, vlan, packet.tag(), form).is_ok() && packet.copy_to(there)
}

/// Sends copies of an untagged frame that came in by `here` to the other VLAN interfaces in a VLAN of `master`.
#[inline(always)]
pub fn to_vlan_interfaces<P: Packet, T: Tables>(
    packet: &mut P,
    master: u32,
    vid: u16,
    here: u32,
    tables: &T,
) {
    let bytes = packet.length();
    tables.repeat(MAX_BRIDGE_PORTS, |position| {
        let Some(member) = tables.member(&MemberKey { bridge: master, position }) else {
            return false;
        };
        let there = member.ifindex;
        // A hole in the list has no port.
        if there != here
            && let Some(receiver) = tables.port(&PortKey { ifindex: there })
            && receiver.vid == vid
            && packet.copy_to(there)
        {
            tables.count(receiver.slot, Lane::ToFast, bytes);
        }
        true
    });
}
