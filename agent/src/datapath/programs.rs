//! Which programs each resource has, and where.

use shunt_agent_api::Interface;

use super::attach::hook::{Hook, Program, ProgramSet};
use crate::registry::{Attachment, Bridge, Trunk, Uplink};

/// The programs of an attachment's host end.
pub fn of_port(attachment: &Attachment) -> Vec<Hook> {
    let on_port = on_port(attachment).into_iter();
    on_port.map(|(program, set)| hook(program, set, &attachment.port.host)).collect()
}

/// The same without where that is: what a look at all attachments goes through makes no copy of any name.
pub fn on_port(attachment: &Attachment) -> Vec<(Program, ProgramSet)> {
    if attachment.port.vlan.is_some() {
        return vec![(Program::FromVlan, ProgramSet::Interfaces)];
    }
    let set = match (&attachment.port.restrictions.vlans, attachment.is_restricted()) {
        (Some(_), _) => ProgramSet::Members,
        (None, true) => ProgramSet::Restricted,
        (None, false) => ProgramSet::Open,
    };
    let behind = attachment.is_translated().then_some((Program::FromMapped, ProgramSet::Open));
    let guards = Program::GUARDS.into_iter().filter(|_| attachment.is_guarded());
    let before = Program::OF_PORTS.into_iter().map(|program| (program, set));
    before.chain(behind).chain(guards.map(|program| (program, set))).collect()
}

/// The program of a port with host ports or masquerading, behind the others. Packets that a restricted port
/// drops do not reach it, so one set is enough.
pub fn of_translation(attachment: &Attachment) -> Hook {
    hook(Program::FromMapped, ProgramSet::Open, &attachment.port.host)
}

/// The program of a bridge device.
pub fn of_bridge(bridge: &Bridge) -> Hook {
    let Bridge { link, .. } = bridge;
    let device = Interface { name: link.name.clone(), index: link.index };
    hook(Program::FromHost, ProgramSet::Open, &device)
}

/// The program of a trunk.
pub fn of_trunk(trunk: &Trunk) -> Hook {
    of_vlans(if trunk.within { Program::ToTrunk } else { Program::FromTrunk }, &trunk.link)
}

/// The programs of an uplink.
pub fn of_uplink(uplink: &Uplink) -> [Hook; 2] {
    Program::OF_UPLINKS.map(|program| hook(program, ProgramSet::Uplinks, &uplink.link))
}

fn of_vlans(program: Program, link: &Interface) -> Hook {
    hook(program, ProgramSet::Interfaces, link)
}

fn hook(program: Program, set: ProgramSet, at: &Interface) -> Hook {
    Hook { program, set, ifindex: at.index, ifname: at.name.clone() }
}
