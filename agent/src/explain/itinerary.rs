//! In which order a program's stages are met, and which of them asks what.
//!
//! The journeys do not say where they are: the programs have no time for it. What they ask is enough to tell, and this
//! is the table that tells it; a test holds it against every golden packet.

use super::asked::Asked;
use crate::bpf::hook::{Program, ProgramSet};

/// The stages of a program, in their order.
pub const fn stages(program: Program, set: ProgramSet) -> &'static [&'static str] {
    match (program, set) {
        (Program::FromContainer, ProgramSet::Members) => &[
            "port", "parse", "vouch", "admit", "classify", "police", "answer", "find", "isolate", "form",
            "deliver",
        ],
        (Program::FromContainer, _) => {
            &["port", "parse", "police", "vouch", "admit", "answer", "find", "isolate", "path", "deliver"]
        }
        (Program::ToContainer, ProgramSet::Members) => &["port", "deliver"],
        (Program::ToContainer, _) => &["port", "parse", "reach", "notice", "deliver"],
        (Program::FromHost, _) => &["port", "parse", "answer", "find", "isolate", "notice", "deliver"],
        (Program::FromMapped, _) => &["port", "guard", "parse", "admit", "find", "translate", "deliver"],
        (Program::FromWire | Program::FromTunnel, _) => &["parse", "translate", "find", "isolate", "deliver"],
        (Program::FromVlan, _) => {
            &["port", "parse", "admit", "classify", "police", "find", "form", "deliver"]
        }
        (Program::FromTrunk | Program::ToTrunk, _) => &["parse", "find", "form", "deliver"],
        (Program::FromUplink, _) => {
            &["port", "parse", "admit", "classify", "find", "path", "form", "deliver"]
        }
        (Program::ToUplink, _) => &["port", "parse", "reach", "notice", "deliver"],
        (Program::GuardFrom | Program::GuardTo, _) => &["guard", "port"],
    }
}

/// The stage of a program that asks this.
pub const fn asker(program: Program, set: ProgramSet, asked: Asked) -> &'static str {
    match (asked, program) {
        (Asked::Here, Program::FromWire | Program::FromTunnel) | (Asked::Translation, _) => "translate",
        (Asked::Here, _) => "port",
        (Asked::Port | Asked::Station, Program::ToContainer | Program::ToUplink)
        | (Asked::Learned, Program::ToUplink) => "reach",
        (Asked::Port, Program::FromHost) => "isolate",
        (Asked::Owner | Asked::KernelFlow, Program::ToContainer | Program::FromHost | Program::ToUplink) => {
            "notice"
        }
        (Asked::Port, Program::FromContainer) if matches!(set, ProgramSet::Members) => "form",
        (Asked::Port | Asked::Station | Asked::Learned, _) => "find",
        (Asked::Owner, _) => "vouch",
        (Asked::Resident, Program::FromWire | Program::FromTunnel) => "find",
        (Asked::Resident, _) => "answer",
        (Asked::TaggedHere, _) => "classify",
        (Asked::Tagged, _) => "form",
        (Asked::KernelFlow, Program::FromMapped) => "translate",
        (Asked::KernelFlow, _) => "path",
        (Asked::Policer, _) => "police",
        (Asked::Member | Asked::Route | Asked::Outlet, _) => "deliver",
    }
}

/// The stage that a reason is given by in a program: the reason's own, but for reasons that two stages share.
pub fn decider(program: Program, stage: &'static str) -> &'static str {
    match (program, stage) {
        (Program::FromHost, "path") => "notice",
        (Program::ToContainer, "isolate") => "reach",
        (Program::ToContainer, "path") => "notice",
        // What says that its sender is no container is the FDB.
        (Program::FromUplink, "reach") => "find",
        (Program::FromMapped, "path") | (Program::FromWire | Program::FromTunnel, "port") => "find",
        _ => stage,
    }
}

/// What a stage says where it had nothing to ask.
pub fn idle(stage: &str) -> &'static str {
    match stage {
        "police" => "the port has no limit",
        "vouch" => "the port's addresses are not checked",
        "admit" => "the source address is admitted",
        "answer" => "asks for nobody's address",
        "classify" => "in the VLAN of the port's untagged frames",
        "isolate" => "not both ends are isolated",
        "path" => "no flow of this port is the kernel's",
        "notice" => "no flow of the kernel's",
        "find" => "not for a station",
        "form" => "not another form than it has",
        "reach" => "the port is not restricted",
        "guard" => "a program of the port's has seen it",
        _ => "",
    }
}
