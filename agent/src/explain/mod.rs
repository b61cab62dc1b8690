//! Explains what the programs do with a packet: runs their code in user space, over the live maps.
//!
//! [`travel`] runs one program: [`frame::Frame`] is the packet, [`live_tables::LiveTables`] the maps, which are read and never
//! written. The look-ups tell the stages ([`stage_order`]). The agent runs the programs that a packet meets one after the
//! other.

pub mod asked;
pub mod frame;
pub mod live_tables;
pub mod lookup_error;
pub mod stage_order;
pub mod synthetic_frame;

use shunt_agent_api::StageReport;

use shunt_dataplane::abi::HandedOn;
use shunt_dataplane::programs::order::Pipeline;
use shunt_dataplane::programs::{
    from_container, from_host, from_mapped, from_member, from_trunk, from_uplink, from_vlan, from_wire,
    guard_from, guard_to, to_container, to_member, to_trunk, to_uplink, to_wire,
};
use shunt_dataplane::stages::port::Missing;
use shunt_dataplane::wire::packet::{Packet as _, Readable as _};
use shunt_dataplane::wire::{self, Network};
use shunt_dataplane::{Delivery, DropReason, Stage, Verdict, Way};

use self::frame::Frame;
use self::live_tables::LiveTables;
use self::lookup_error::LookupError;
use crate::datapath::attach::hook::{Hook, Program, ProgramSet};
use crate::mac;

/// What became of a frame in one program.
#[derive(Debug)]
pub struct Travelled {
    /// The end.
    pub verdict: Verdict,
    /// The stages up to it.
    pub stages: Vec<StageReport>,
}

/// Takes a frame through a program.
///
/// # Errors
/// A map could not be read.
pub fn travel(packet: &mut Frame, hook: &Hook, tables: LiveTables<'_>) -> Result<Travelled, LookupError> {
    packet.is_bare = matches!(hook.program, Program::FromTunnel | Program::ToTunnel);
    let described = describe(packet);
    let missing = if hook.set == ProgramSet::Open { Missing::Pass } else { Missing::Drop };
    let here = hook.ifindex;
    let pipeline = stage_order::pipeline(hook.program, hook.set);
    let verdict = match pipeline {
        Pipeline::FromContainer => from_container::run(packet, here, missing, &tables),
        Pipeline::FromMember => from_member::run(packet, here, &tables),
        Pipeline::ToContainer => to_container::run(packet, here, missing, &tables),
        Pipeline::ToMember => to_member::run(packet, here, &tables),
        Pipeline::FromHost => from_host::run(packet, here, &tables),
        Pipeline::FromMapped => from_mapped::run(packet, here, &tables, &mut HandedOn::default()),
        Pipeline::FromWire | Pipeline::FromTunnel => from_wire::run(packet, here, &tables),
        Pipeline::ToWire | Pipeline::ToTunnel => to_wire::run(packet, here, &tables),
        Pipeline::FromVlan => from_vlan::run(packet, here, &tables),
        Pipeline::FromTrunk => from_trunk::run(packet, here, &tables),
        Pipeline::ToTrunk => to_trunk::run(packet, here, &tables),
        // A driver's program decides nothing that `from_uplink` would not.
        Pipeline::FromNic | Pipeline::FromUplink => from_uplink::run(packet, here, &tables),
        Pipeline::ToUplink => to_uplink::run(packet, here, &tables),
        Pipeline::GuardFrom => guard_from::run(packet, here, &tables),
        Pipeline::GuardTo => guard_to::run(packet, here, &tables),
    };
    let end = end(&verdict, packet, &tables);
    let mut details: Vec<(Stage, Vec<String>)> =
        pipeline.stages().iter().map(|stage| (*stage, Vec::new())).collect();
    for (asked, text) in tables.into_asked()? {
        entry(&mut details, stage_order::asker(pipeline, asked)).push(text);
    }
    if let Some((_, texts)) = details.iter_mut().find(|(stage, _)| *stage == Stage::Parse) {
        texts.push(described);
    }
    let last = stage_order::decider(pipeline, end.stage);
    entry(&mut details, last).extend((!end.text.is_empty()).then_some(end.text));
    Ok(Travelled { verdict, stages: reports(details, (last, &end.decision), hook) })
}

/// The stages up to the last one, and those behind it that made a look-up.
fn reports(
    details: Vec<(Stage, Vec<String>)>,
    (last, decision): (Stage, &str),
    hook: &Hook,
) -> Vec<StageReport> {
    let decided = details.iter().position(|(stage, _)| *stage == last).unwrap_or_default();
    let met = details.into_iter().enumerate().filter(|(at, (_, texts))| *at <= decided || !texts.is_empty());
    let reports = met.map(|(_, (stage, texts))| StageReport {
        stage: stage.name().to_owned(),
        decision: if stage == last { decision.to_owned() } else { "on".to_owned() },
        detail: if texts.is_empty() { stage_order::idle(stage).to_owned() } else { texts.join("; ") },
        program: hook.program.name().to_owned(),
        ifname: hook.ifname.clone(),
    });
    reports.collect()
}

/// The texts of a stage; one that is not in the pipeline's order comes last.
fn entry(details: &mut Vec<(Stage, Vec<String>)>, stage: Stage) -> &mut Vec<String> {
    let at = details.iter().position(|(known, _)| *known == stage).unwrap_or_else(|| {
        details.push((stage, Vec::new()));
        details.len() - 1
    });
    &mut details[at].1
}

/// The last stage, and what is reported of it.
struct End {
    stage: Stage,
    decision: String,
    text: String,
}

fn end(verdict: &Verdict, packet: &Frame, tables: &LiveTables<'_>) -> End {
    let (stage, text) = match verdict {
        Verdict::Pass(reason) => (reason.stage(), reason.name().to_owned()),
        Verdict::Drop(reason) => (reason.stage(), reason.name().to_owned()),
        Verdict::Deliver(Delivery { ifindex, way, .. }) => {
            let name = tables.name(*ifindex);
            let text = match way {
                Way::Peer => format!("into the peer of {name}"),
                Way::Port => format!("out of {name}"),
                Way::Neighbor(_) => format!("out of {name}, to the next hop"),
                Way::Wire => format!("out of {name}, tagged"),
                Way::Into => format!("in by {name}"),
                Way::Onward => format!("on by the kernel, with another port at {name}"),
                Way::Back => {
                    let reason = DropReason::TooBig.name();
                    format!("{reason}; its sender is told of {} bytes, out of {name}", packet.note())
                }
            };
            (Stage::Deliver, if packet.is_nodes_too { text + ", and to the node" } else { text })
        }
        Verdict::Flooded(count) => {
            let names: Vec<_> = packet.copies.iter().map(|copy| tables.name(*copy)).collect();
            (Stage::Deliver, format!("{count} copies, out of {}", names.join(", ")))
        }
    };
    End { stage, decision: word(verdict).to_owned(), text }
}

/// A verdict as reports have it.
pub fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        // What goes back is not the packet.
        Verdict::Deliver(Delivery { way: Way::Back, .. }) | Verdict::Drop(_) => "drop",
        Verdict::Deliver(_) => "deliver",
        Verdict::Pass(_) => "pass",
        Verdict::Flooded(_) => "flood",
    }
}

/// A frame in one line.
fn describe(packet: &Frame) -> String {
    let Ok(frame) = wire::frame(packet) else { return "no Ethernet header".to_owned() };
    let tag = match wire::outermost(packet, &frame) {
        Some(tag) if tag.is_service() => format!(", service tag {}", tag.tci() & 0xfff),
        Some(tag) => format!(", VLAN {} priority {}", tag.tci() & 0xfff, tag.tci() >> 13),
        None => String::new(),
    };
    let carries = match wire::network(packet, &frame) {
        Ok(Network::Ip(ip)) if ip.source.is_v4() => format!("IPv4 protocol {}", ip.protocol.0),
        Ok(Network::Ip(ip)) => format!("IPv6 protocol {}", ip.protocol.0),
        Ok(Network::Arp(_)) => "ARP".to_owned(),
        Ok(Network::Other) => format!("type {:#06x}", frame.ether_type.0),
        Err(_) => format!("type {:#06x}, unreadable", frame.ether_type.0),
    };
    let (source, destination) = (mac::format(frame.source), mac::format(frame.destination));
    format!("{source} to {destination}{tag}, {carries}, {} bytes", packet.length())
}
