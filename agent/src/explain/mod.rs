//! A packet's way through the live maps, in user space and by the very code that the programs are made of.
//!
//! [`travel`] takes a frame through one program: [`frame::Frame`] is the packet, [`live_tables::LiveTables`] the maps,
//! which are read and not written. What was asked of them tells the stages ([`itinerary`]). The agent puts the programs
//! that a packet meets one after the other.

pub mod asked;
pub mod frame;
pub mod itinerary;
pub mod live_tables;
pub mod lookup_error;
pub mod sketch;

use shunt_agent_api::StageReport;
use shunt_dataplane::stages::port::Missing;
use shunt_dataplane::stages::{guard, neighbor_proxy};
use shunt_dataplane::wire::Network;
use shunt_dataplane::wire::packet::{Packet as _, Readable as _};
use shunt_dataplane::{Delivery, DropReason, Verdict, Way, errors, journey, vlan, wire};

use self::frame::Frame;
use self::live_tables::LiveTables;
use self::lookup_error::LookupError;
use crate::bpf::hook::{Hook, Program, ProgramSet};
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
    packet.is_bare = hook.program == Program::FromTunnel;
    let described = describe(packet);
    let missing = if hook.set == ProgramSet::Open { Missing::Pass } else { Missing::Drop };
    let here = hook.ifindex;
    let verdict = match (hook.program, hook.set) {
        (Program::FromContainer, ProgramSet::Members) => vlan::from_member(packet, here, &tables),
        (Program::ToContainer, ProgramSet::Members) => vlan::to_member(packet, here, &tables),
        (Program::FromContainer, _) => neighbor_proxy::whole_from_container(packet, here, missing, &tables),
        (Program::ToContainer, _) => journey::to_container(packet, here, missing, &tables),
        (Program::FromHost, _) => neighbor_proxy::whole_from_host(packet, here, &tables),
        (Program::FromMapped, _) => errors::whole_from_mapped(packet, here, &tables),
        (Program::FromWire | Program::FromTunnel, _) => errors::whole_from_wire(packet, here, &tables),
        (Program::FromVlan, _) => vlan::from_interface(packet, here, &tables),
        (Program::FromTrunk, _) => vlan::from_trunk(packet, here, &tables),
        (Program::ToTrunk, _) => vlan::to_trunk(packet, here, &tables),
        (Program::FromUplink, _) => vlan::from_uplink(packet, here, &tables),
        (Program::ToUplink, _) => vlan::to_uplink(packet, here, &tables),
        (Program::GuardFrom, _) => guard::from_container(packet, here, &tables),
        (Program::GuardTo, _) => guard::to_container(packet, here, &tables),
    };
    let end = end(&verdict, packet, &tables);
    let asked = tables.into_asked()?;
    let mut details: Vec<(&str, Vec<String>)> =
        itinerary::stages(hook.program, hook.set).iter().map(|stage| (*stage, Vec::new())).collect();
    for (asked, text) in asked {
        let stage = itinerary::asker(hook.program, hook.set, asked);
        entry(&mut details, stage).push(text);
    }
    if let Some((_, texts)) = details.iter_mut().find(|(stage, _)| *stage == "parse") {
        texts.push(described);
    }
    let last = itinerary::decider(hook.program, end.stage);
    entry(&mut details, last).extend((!end.text.is_empty()).then_some(end.text));
    let decided = details.iter().position(|(stage, _)| *stage == last).unwrap_or_default();
    // A stage behind the one that decided was met only if it asked.
    let met = details.into_iter().enumerate().filter(|(at, (_, texts))| *at <= decided || !texts.is_empty());
    let stages = met.map(|(_, (stage, texts))| StageReport {
        stage: stage.to_owned(),
        decision: if stage == last { end.decision.clone() } else { "on".to_owned() },
        detail: if texts.is_empty() { itinerary::idle(stage).to_owned() } else { texts.join("; ") },
        program: hook.program.name().to_owned(),
        ifname: hook.ifname.clone(),
    });
    Ok(Travelled { verdict, stages: stages.collect() })
}

/// The texts of a stage; one that is not in the itinerary comes last.
fn entry<'a>(details: &'a mut Vec<(&'static str, Vec<String>)>, stage: &'static str) -> &'a mut Vec<String> {
    let at = details.iter().position(|(known, _)| *known == stage).unwrap_or_else(|| {
        details.push((stage, Vec::new()));
        details.len() - 1
    });
    &mut details[at].1
}

/// Where a journey ended, and what is said there.
struct End {
    stage: &'static str,
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
                Way::Back => {
                    let reason = DropReason::TooBig.name();
                    format!("{reason}; its sender is told of {} bytes, out of {name}", packet.note())
                }
            };
            ("deliver", if packet.is_nodes_too { text + ", and to the node" } else { text })
        }
        Verdict::Flooded(count) => {
            let names: Vec<_> = packet.copies.iter().map(|copy| tables.name(*copy)).collect();
            ("deliver", format!("{count} copies, out of {}", names.join(", ")))
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
