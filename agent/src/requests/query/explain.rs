//! Predicts a packet's path: the programs that it meets, one after the other.
//!
//! A container's packet meets `from_container`. If that leaves it to the kernel, it meets `from_mapped` where the container has host ports
//! or is masqueraded, then `from_wire` of the bridge if the node is the destination, or `to_container` if another container is.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::time::ClockId;
use shunt_agent_api::{Explanation, Kind, Origin, Question, StageReport};
use shunt_dataplane::abi::vlan::VID_ANY;
use shunt_dataplane::abi::{STATION_HOST, STATION_ISOLATED, Station, StationKey};
use shunt_dataplane::wire::address::Mac;
use shunt_dataplane::wire::packet::Packet as _;
use shunt_dataplane::{Delivery, DropReason, PassReason, Verdict, Way};
use shunt_netlink::{Connection, fdb};

use crate::datapath::attach::hook::{Hook, Program, ProgramSet};
use crate::datapath::maps::lookup;
use crate::datapath::{encode, in_map, programs};
use crate::explain::frame::Frame;
use crate::explain::live_tables::{LiveTables, Times};
use crate::explain::synthetic_frame::{self, Ends, Place};
use crate::explain::{self, Travelled};
use crate::kernel::KernelError;
use crate::registry::Attachment;
use crate::resources::clock::nanoseconds;
use crate::resources::{Node, Refusal};

/// The source of a packet from outside if none is given: documentation addresses (RFC 5737, RFC 3849).
const OUTSIDE_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const OUTSIDE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const OUTSIDE_MAC: Mac = Mac::new([2, 0, 0, 0, 0xe7, 1]);

/// A walk: the start, the programs, the resulting frame.
struct Walk {
    frame: Frame,
    names: HashMap<u32, String>,
    routes: Connection,
    stages: Vec<StageReport>,
}

impl Node {
    /// Walks a packet through the live maps. Nothing is sent and nothing is changed.
    ///
    /// # Errors
    /// There is no such place, or the maps cannot be read.
    pub(crate) fn explain(&mut self, from: &Origin, question: &Question) -> Result<Explanation, Refusal> {
        let routes = Connection::open().map_err(KernelError::from)?;
        let (hook, bytes, host) = self.beginning(from, question)?;
        let frame = Frame::new(bytes, hook.ifindex, host);
        let mut walk = Walk { frame, names: self.names(), routes, stages: Vec::new() };
        let first = walk.frame.clone();
        let mut verdict = self.step(&mut walk, &hook)?;
        if let (Program::FromContainer, Verdict::Pass(reason)) = (hook.program, verdict) {
            verdict = self.by_the_kernels_way(&mut walk, &hook, &first, reason)?;
        }
        Ok(walk.explanation(&verdict))
    }

    /// The programs after `from_container` has left a frame to the kernel. `from_container`'s reason is
    /// reported unless a later program decides.
    fn by_the_kernels_way(
        &self,
        walk: &mut Walk,
        sender: &Hook,
        first: &Frame,
        reason: PassReason,
    ) -> Result<Verdict, Refusal> {
        let Some(attachment) = self.registry.by_host(sender.ifindex) else {
            return Ok(Verdict::Pass(reason));
        };
        let reason = match self.by_translation(walk, sender, attachment, first, reason)? {
            Verdict::Pass(reason) => reason,
            end => return Ok(end),
        };
        walk.frame = first.clone();
        let Some(destination) = destination(&walk.frame.on_the_wire()) else {
            return Ok(Verdict::Pass(reason));
        };
        let bridge = attachment.port.bridge.index;
        let Some(station) = self.station_at(bridge, destination)? else { return Ok(Verdict::Pass(reason)) };
        let place = walk.routes.get(fdb::station(bridge, destination.octets())).map_err(KernelError::from)?;
        let elsewhere = if place.is_some_and(|place| !place.own && place.port != station.ifindex) {
            Some("the station was heard at another port: the bridge sends it there")
        } else {
            // A bridge hears the source before it looks up the destination.
            let is_heard =
                source(&walk.frame.on_the_wire()) == Some(destination) && !attachment.settings.deaf;
            is_heard.then_some("the frame itself says that the station is at its sender's port")
        };
        if let Some((decision, why)) = ended(attachment, &station, elsewhere, reason) {
            walk.stages.push(StageReport {
                stage: "bridge".to_owned(),
                decision: decision.to_owned(),
                detail: why.to_owned(),
                program: "kernel".to_owned(),
                ifname: attachment.port.bridge.name.clone(),
            });
            return Ok(Verdict::Pass(reason));
        }
        let Some(hook) = self.first_of_receiver(bridge, &station, sender) else {
            return Ok(Verdict::Pass(reason));
        };
        walk.frame = Frame::new(first.on_the_wire(), sender.ifindex, destination);
        match self.step(walk, &hook)? {
            Verdict::Pass(_) => Ok(Verdict::Pass(reason)),
            end => Ok(end),
        }
    }

    /// `from_mapped`, where the sender has host ports or is masqueraded. Its reason to pass counts where `from_container` found the
    /// node to be the destination.
    fn by_translation(
        &self,
        walk: &mut Walk,
        sender: &Hook,
        attachment: &Attachment,
        first: &Frame,
        reason: PassReason,
    ) -> Result<Verdict, Refusal> {
        if !(attachment.is_translated() && matches!(reason, PassReason::ToHost | PassReason::Shared)) {
            return Ok(Verdict::Pass(reason));
        }
        let hook = Hook { program: Program::FromMapped, set: ProgramSet::Open, ..sender.clone() };
        walk.frame = first.clone();
        // A restricted port's program has set the mark.
        walk.frame.mark_checked();
        match self.step(walk, &hook)? {
            Verdict::Pass(_) if reason != PassReason::ToHost => Ok(Verdict::Pass(reason)),
            verdict => Ok(verdict),
        }
    }

    /// The program that a frame meets which the bridge forwards to a station.
    fn first_of_receiver(&self, bridge: u32, station: &Station, sender: &Hook) -> Option<Hook> {
        if station.flags & STATION_HOST != 0 {
            return self.nat_ingress.hooks.get(&bridge).cloned();
        }
        let receiver =
            self.registry.by_host(station.ifindex).filter(|_| station.ifindex != sender.ifindex)?;
        programs::of_port(receiver).into_iter().find(|hook| hook.program == Program::ToContainer)
    }

    fn station_at(&self, bridge: u32, mac: Mac) -> Result<Option<Station>, Refusal> {
        for vid in [0, VID_ANY] {
            let found = lookup(&self.datapath.maps.stations, &StationKey { bridge, vid, mac });
            let found = found.map_err(in_map("FDB"))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let mut ports = self.registry.of_bridge(bridge);
        Ok(ports.find(|attachment| attachment.mac == mac).map(encode::station))
    }

    fn step(&self, walk: &mut Walk, hook: &Hook) -> Result<Verdict, Refusal> {
        let times = Times {
            boot: nanoseconds(ClockId::CLOCK_BOOTTIME),
            monotonic: nanoseconds(ClockId::CLOCK_MONOTONIC),
        };
        let tables = LiveTables::new(&self.datapath.maps, &walk.names, hook.ifindex, times, &mut walk.routes);
        let Travelled { verdict, stages } = explain::travel(&mut walk.frame, hook, tables)?;
        walk.stages.extend(stages);
        Ok(verdict)
    }

    /// The first program, the frame's bytes, and the address of the interface that it meets.
    fn beginning(&mut self, from: &Origin, question: &Question) -> Result<(Hook, Vec<u8>, Mac), Refusal> {
        let called = match from {
            Origin::Container(key) => key.to_string(),
            Origin::Uplink(name) => name.clone(),
            Origin::Host => "host".to_owned(),
        };
        let nowhere = |reason| Refusal::Malformed { field: "from", value: called.clone(), reason };
        match from {
            Origin::Container(key) => {
                let sender = self.registry.get(key).ok_or_else(|| Refusal::NotAttached(key.clone()))?;
                let bytes = self.bytes(question, |to| self.ends_of(sender, to))?;
                let is_first =
                    |hook: &Hook| matches!(hook.program, Program::FromContainer | Program::FromVlan);
                let hook = programs::of_port(sender).into_iter().find(is_first);
                Ok((hook.ok_or_else(|| nowhere("has no program"))?, bytes, Mac::default()))
            }
            Origin::Uplink(name) => {
                let of_bridges = self.registry.uplinks.values().flat_map(programs::of_uplink);
                let of_bridges = of_bridges.filter(|hook| hook.program == Program::FromUplink);
                let mut hooks = of_bridges.chain(self.nat_ingress.hooks.values().cloned());
                let wire = hooks.find(|hook| hook.ifname == *name).ok_or_else(|| {
                    nowhere("has no program: it is no uplink, or no host port leads anywhere")
                })?;
                let link = self.kernel.link(wire.ifindex)?;
                let host = link.and_then(|link| link.mac).map(Mac::new).unwrap_or_default();
                let is_bare = wire.program == Program::FromTunnel;
                let source_mac = if is_bare { Mac::default() } else { OUTSIDE_MAC };
                let bytes = self.bytes(question, |to| {
                    let source = self.outside_of(to);
                    Some(Ends { source_mac, destination_mac: host, source, destination: to })
                })?;
                let is_packet = is_bare && matches!(question, Question::Frame(_));
                Ok((wire, if is_packet { synthetic_frame::framed(&bytes) } else { bytes }, host))
            }
            Origin::Host => {
                let receiver =
                    self.receiver(question).ok_or_else(|| nowhere("sends to no container that is known"))?;
                let bridge = self.registry.bridge(receiver.port.bridge.index);
                let bridge = bridge.cloned().ok_or_else(|| nowhere("has no bridge there"))?;
                let (to_mac, from_mac) = (receiver.mac, bridge.link.mac.map(Mac::new).unwrap_or_default());
                let subnets = self.kernel.subnets(bridge.link.index)?;
                let bytes = self.bytes(question, |to| {
                    let source = subnets.iter().map(|prefix| prefix.addr());
                    let source = source.into_iter().find(|source| source.is_ipv4() == to.is_ipv4())?;
                    Some(Ends { source_mac: from_mac, destination_mac: to_mac, source, destination: to })
                })?;
                Ok((programs::of_bridge(&bridge), bytes, Mac::default()))
            }
        }
    }

    /// An address of the documentation's that is not the node's own (RFC 5737, RFC 3849).
    fn outside_of(&self, to: IpAddr) -> IpAddr {
        let numbered = |number: u8| -> IpAddr {
            match to {
                IpAddr::V4(_) => Ipv4Addr::from(u32::from(OUTSIDE_V4) + u32::from(number)).into(),
                IpAddr::V6(_) => Ipv6Addr::from(u128::from(OUTSIDE_V6) + u128::from(number)).into(),
            }
        };
        (0..200).map(numbered).find(|ip| !self.is_own_address(*ip)).unwrap_or_else(|| numbered(0))
    }

    fn bytes(
        &self,
        question: &Question,
        ends: impl FnOnce(IpAddr) -> Option<Ends>,
    ) -> Result<Vec<u8>, Refusal> {
        let (kind, to, port, place) = match question {
            Question::Frame(bytes) => return Ok(bytes.clone()),
            Question::Begins(kind, to, port) => (kind, to, port, Place::First),
            Question::Continues(kind, to, port, from) => (kind, to, port, Place::Later(*from)),
        };
        let frame = ends(*to).and_then(|ends| synthetic_frame::frame(*kind, &ends, *port, place));
        frame.ok_or_else(|| Refusal::Malformed {
            field: "packet",
            value: to.to_string(),
            reason: "is of a family that the sender has no address of",
        })
    }

    fn ends_of(&self, sender: &Attachment, to: IpAddr) -> Option<Ends> {
        let bridge = sender.port.bridge.index;
        let neighbor = self.registry.of_bridge(bridge).find(|known| known.port.ips.contains(&to));
        let gateway = || self.registry.bridge(bridge).and_then(|bridge| bridge.link.mac).map(Mac::new);
        Some(Ends {
            source_mac: sender.mac,
            destination_mac: neighbor.map(|known| known.mac).or_else(gateway)?,
            source: sender.port.ips.iter().copied().find(|ip| ip.is_ipv4() == to.is_ipv4())?,
            destination: to,
        })
    }

    /// The container that a packet of the node's is for.
    fn receiver(&self, question: &Question) -> Option<&Attachment> {
        let mut known = self.registry.attachments();
        match question {
            Question::Begins(Kind::Arp, ..) => None,
            Question::Begins(_, to, _) | Question::Continues(_, to, ..) => {
                known.find(|known| known.port.ips.contains(to))
            }
            Question::Frame(bytes) => {
                let mac = destination(bytes)?;
                known.find(|known| known.mac.is(mac))
            }
        }
    }
}

impl Walk {
    fn explanation(self, verdict: &Verdict) -> Explanation {
        let name = |ifindex: &u32| self.names.get(ifindex).cloned().unwrap_or_else(|| ifindex.to_string());
        let to = match verdict {
            // The translated packet is another frame.
            Verdict::Deliver(Delivery { way: Way::Back, .. }) => Vec::new(),
            Verdict::Deliver(Delivery { ifindex, .. }) => vec![name(ifindex)],
            Verdict::Flooded(_) => self.frame.copies.iter().map(name).collect(),
            Verdict::Pass(_) | Verdict::Drop(_) => Vec::new(),
        };
        Explanation {
            verdict: explain::word(verdict).to_owned(),
            reason: match verdict {
                Verdict::Pass(reason) => reason.name(),
                Verdict::Drop(reason) => reason.name(),
                Verdict::Deliver(Delivery { way: Way::Back, .. }) => DropReason::TooBig.name(),
                Verdict::Deliver(_) | Verdict::Flooded(_) => "",
            }
            .to_owned(),
            to,
            packet: self.frame.on_the_wire().iter().map(|byte| format!("{byte:02x}")).collect(),
            stages: self.stages,
        }
    }
}

/// What the kernel's bridge decides where the frame does not go on to the station's port, and why.
fn ended(
    sender: &Attachment,
    station: &Station,
    elsewhere: Option<&'static str>,
    reason: PassReason,
) -> Option<(&'static str, &'static str)> {
    if sender.port.restrictions.isolated && station.flags & STATION_ISOLATED != 0 {
        return Some(("drop", "both ports are isolated"));
    }
    if let Some(why) = elsewhere {
        return Some(("pass", why));
    }
    (reason == PassReason::TooBig).then_some(("drop", "larger than the port's MTU"))
}

fn destination(bytes: &[u8]) -> Option<Mac> {
    bytes.first_chunk().copied().map(Mac::new)
}

fn source(bytes: &[u8]) -> Option<Mac> {
    bytes.get(6..)?.first_chunk().copied().map(Mac::new)
}
