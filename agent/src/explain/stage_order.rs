//! The stage of a program that made a look-up, or that gave a reason.
//!
//! The programs do not record their stages: they have no time for it. Their look-ups tell them, in the order of
//! [`Pipeline::stages`]; a test checks this table against every golden packet.

use shunt_dataplane::Stage;
use shunt_dataplane::programs::order::Pipeline;

use super::asked::Asked;
use crate::datapath::attach::hook::{Program, ProgramSet};

/// The pipeline of a program.
pub const fn pipeline(program: Program, set: ProgramSet) -> Pipeline {
    match (program, set) {
        (Program::FromContainer, ProgramSet::Members) => Pipeline::FromMember,
        (Program::FromContainer, _) => Pipeline::FromContainer,
        (Program::ToContainer, ProgramSet::Members) => Pipeline::ToMember,
        (Program::ToContainer, _) => Pipeline::ToContainer,
        (Program::FromHost, _) => Pipeline::FromHost,
        (Program::FromMapped, _) => Pipeline::FromMapped,
        (Program::FromWire, _) => Pipeline::FromWire,
        (Program::FromTunnel, _) => Pipeline::FromTunnel,
        (Program::ToWire, _) => Pipeline::ToWire,
        (Program::ToTunnel, _) => Pipeline::ToTunnel,
        (Program::FromVlan, _) => Pipeline::FromVlan,
        (Program::FromTrunk, _) => Pipeline::FromTrunk,
        (Program::ToTrunk, _) => Pipeline::ToTrunk,
        (Program::FromUplink, _) => Pipeline::FromUplink,
        (Program::ToUplink, _) => Pipeline::ToUplink,
        (Program::GuardFrom, _) => Pipeline::GuardFrom,
        (Program::GuardTo, _) => Pipeline::GuardTo,
    }
}

/// The stage of a pipeline that makes a look-up.
pub const fn asker(pipeline: Pipeline, asked: Asked) -> Stage {
    match (asked, pipeline) {
        (
            Asked::Owner | Asked::KernelFlow | Asked::IncomingFlow | Asked::Translation,
            Pipeline::ToContainer | Pipeline::FromHost | Pipeline::ToUplink,
        ) => Stage::TrackKernelFlow,
        (Asked::Translation, Pipeline::FromContainer) => Stage::FlowAffinity,
        (Asked::Here | Asked::Outlet, Pipeline::FromWire | Pipeline::FromTunnel)
        | (Asked::Outlet, Pipeline::ToWire | Pipeline::ToTunnel)
        | (Asked::Station, Pipeline::ToWire | Pipeline::ToTunnel)
        | (Asked::Translation | Asked::IncomingFlow, _) => Stage::Translate,
        (Asked::Here, _) => Stage::Port,
        (Asked::Port | Asked::Station, Pipeline::ToContainer | Pipeline::ToUplink)
        | (Asked::Learned, Pipeline::ToUplink) => Stage::OriginCheck,
        (Asked::Port, Pipeline::ToWire | Pipeline::ToTunnel) => Stage::Port,
        (Asked::Port, Pipeline::FromHost) => Stage::Isolate,
        (Asked::Port, Pipeline::FromMember) => Stage::Retag,
        (Asked::Port | Asked::Station | Asked::Learned, _)
        | (Asked::Owner | Asked::Announced, Pipeline::FromUplink)
        | (Asked::Owner, Pipeline::FromMapped | Pipeline::FromWire | Pipeline::FromTunnel) => Stage::Find,
        (Asked::Owner, _) => Stage::SourceGuard,
        (Asked::Resident, Pipeline::FromWire | Pipeline::FromTunnel) => Stage::Find,
        // Whose share of what others' rules have let through it takes.
        (Asked::Resident, Pipeline::ToWire | Pipeline::ToTunnel) => Stage::Accept,
        (Asked::Resident, _) | (Asked::Announced, Pipeline::FromHost) => Stage::NeighborProxy,
        (Asked::Announced, _) => Stage::MacFilter,
        (Asked::TaggedHere, _) => Stage::Classify,
        (Asked::Tagged, _) => Stage::Retag,
        (Asked::KernelFlow, Pipeline::FromMapped) => Stage::Translate,
        (Asked::KernelFlow, _) => Stage::FlowAffinity,
        (Asked::Accepted, _) => Stage::Accept,
        (Asked::Policer, _) => Stage::Police,
        (Asked::Member | Asked::Route | Asked::Outlet, _) => Stage::Deliver,
    }
}

/// The stage of a pipeline that gives a reason: the reason's own, except for reasons that two stages share.
pub const fn decider(pipeline: Pipeline, stage: Stage) -> Stage {
    match (pipeline, stage) {
        (Pipeline::FromHost | Pipeline::ToContainer, Stage::FlowAffinity) => Stage::TrackKernelFlow,
        (Pipeline::ToContainer, Stage::Isolate | Stage::Find) => Stage::OriginCheck,
        // The FDB says that the source address is a container's.
        (Pipeline::FromUplink, Stage::OriginCheck) => Stage::Find,
        (Pipeline::FromMapped, Stage::FlowAffinity)
        | (Pipeline::FromWire | Pipeline::FromTunnel, Stage::Port) => Stage::Find,
        _ => stage,
    }
}

/// The detail of a stage that made no look-up.
pub const fn idle(stage: Stage) -> &'static str {
    match stage {
        Stage::Police => "the port has no limit",
        Stage::SourceGuard => "the port's addresses are not checked",
        Stage::MacFilter => "the source address is the container's",
        Stage::NeighborProxy => "asks for nobody's address",
        Stage::Classify => "in the VLAN of the port's untagged frames",
        Stage::Isolate => "not both ends are isolated",
        Stage::FlowAffinity => "no flow of this port is the kernel's",
        Stage::Accept => "others' rules are not asked for the port",
        Stage::TrackKernelFlow => "no flow of the kernel's",
        Stage::Find => "not for a station",
        Stage::Retag => "not another form than it has",
        Stage::OriginCheck => "the port is not restricted",
        Stage::Guard => "a program of the port's has seen it",
        Stage::Port | Stage::Parse | Stage::Translate | Stage::Deliver => "",
    }
}
