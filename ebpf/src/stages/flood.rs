//! flood: a frame to a group, or to a station that nobody knows, goes to every other member of its VLAN.

use super::classify::Vlan;
use super::retag::{self, Form};
use crate::Tables;
use crate::abi::vlan::{MAX_BRIDGE_PORTS, MemberKey};
use crate::abi::{PORT_ALONE, PORT_ISOLATED, PORT_WIRE, Port, PortKey};
use crate::tables::Lane;
use crate::wire::packet::{Packet, Tag};

/// Sends copies of a frame that came in by `port`, the interface `here`. Answers how many.
///
/// They go through the ports' own tc egress hooks, marked as judged: a redirect into the peer is for one receiver only.
#[inline(always)]
pub fn everywhere<P: Packet, T: Tables>(
    packet: &mut P,
    vlan: Vlan,
    port: &Port,
    here: u32,
    tables: &T,
) -> u32 {
    let bytes = packet.length();
    let mut now = vlan.came;
    let mut copies = 0;
    packet.mark_judged();
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
            && let Some(form) = retag::at(vlan.vid, &receiver, there, tables)
            && copy(packet, vlan, &mut now, form, there)
        {
            copies += 1;
            tables.count(receiver.slot, Lane::ToFast, bytes);
        }
        true
    });
    copies
}

#[inline(always)]
fn copy<P: Packet>(packet: &mut P, vlan: Vlan, now: &mut Option<Tag>, form: Form, there: u32) -> bool {
    match retag::bring(packet, vlan, *now, form) {
        Ok(tag) => {
            *now = tag;
            packet.copy_to(there)
        }
        Err(_) => false,
    }
}
