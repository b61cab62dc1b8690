//! Reports of translated connections and of host ports.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use shunt_agent_api::{FlowEnds, FlowProtocol, FlowReport, MappingReport};
use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::nat::connection::Phase;
use shunt_dataplane::wire::Protocol;
use shunt_dataplane::wire::address::Address;

use crate::datapath::{encode, in_map};
use crate::resources::clock::boot_time;
use crate::resources::connection::pairs::{self, Connection, Flows};
use crate::resources::connection::volumes::{self, Place, Volumes};
use crate::resources::connection::{lock, read};
use crate::resources::{Node, Refusal};

impl Node {
    /// A [`FlowReport`] per translated connection.
    ///
    /// # Errors
    /// The map cannot be read.
    pub(crate) fn flows(&self) -> Result<Vec<FlowReport>, Refusal> {
        let flows = self.read_flows()?;
        let now = boot_time();
        let mut reports: Vec<_> =
            pairs::connections(&flows).map(|connection| flow_report(&connection, now)).collect();
        reports.sort_by(|one, other| {
            (one.dport, one.src, one.sport).cmp(&(other.dport, other.src, other.sport))
        });
        Ok(reports)
    }

    /// A [`MappingReport`] per host port, in the order of the attachments.
    ///
    /// # Errors
    /// The map cannot be read.
    pub(crate) fn mapping_reports(&self) -> Result<Vec<MappingReport>, Refusal> {
        let mut volumes = lock(&self.sweeping.counters).swept();
        let flows = self.read_flows()?;
        let known: HashSet<_> = self
            .registry
            .attachments()
            .flat_map(|attachment| encode::mappings(attachment).into_keys())
            .collect();
        let place = |key, flow| volumes::place(key, flow, |own| known.contains(own));
        for (key, flow) in &flows {
            if let Some(place) = place(key, flow) {
                *volumes.entry(place).or_default() += Volumes::of(flow);
            }
        }
        let mut counts: HashMap<Place, u64> = HashMap::new();
        for connection in pairs::connections(&flows) {
            if let Some(place) = place(connection.request, connection.opener) {
                *counts.entry(place).or_default() += 1;
            }
        }
        let mut counters = lock(&self.sweeping.counters);
        let mut reports = Vec::new();
        for attachment in self.registry.attachments() {
            for mapping in &attachment.port.mappings {
                let ips: Vec<_> = attachment.mapped_ips(mapping).collect();
                let places = ips.iter().map(|ip| (encode::mapping_key(mapping, *ip), Address::from(*ip)));
                let (mut volume, mut connections) = (Volumes::default(), 0);
                for place in places {
                    volume += counters.tell(place, volumes.get(&place).copied().unwrap_or_default());
                    connections += counts.get(&place).copied().unwrap_or_default();
                }
                reports.push(MappingReport {
                    proto: mapping.protocol,
                    host_ip: mapping.host_ip,
                    host_port: mapping.host_port,
                    network: attachment.port.key.network.clone(),
                    container: attachment.port.key.container.clone(),
                    ifname: attachment.port.key.ifname.clone(),
                    container_ips: ips,
                    container_port: mapping.container_port,
                    connections,
                    from: volume.from,
                    to: volume.to,
                });
            }
        }
        Ok(reports)
    }

    fn read_flows(&self) -> Result<Flows, Refusal> {
        Ok(read(&self.datapath.maps.flows).map_err(in_map("FLOWS"))?)
    }
}

fn flow_report(connection: &Connection<'_>, now: u64) -> FlowReport {
    let Connection { request, opener, answerer } = connection;
    let ends = |tuple: &TupleKey| FlowEnds {
        src: ip(tuple.source),
        sport: tuple.source_port.number(),
        dst: ip(tuple.destination),
        dport: tuple.destination_port.number(),
    };
    FlowReport {
        proto: match Protocol(request.protocol) {
            Protocol::UDP => FlowProtocol::Udp,
            Protocol::SCTP => FlowProtocol::Sctp,
            Protocol::ICMP => FlowProtocol::Icmp,
            Protocol::ICMPV6 => FlowProtocol::Icmpv6,
            _ => FlowProtocol::Tcp,
        },
        src: ip(request.source),
        sport: request.source_port.number(),
        dst: ip(request.destination),
        dport: request.destination_port.number(),
        translated: ends(&opener.becomes),
        state: match connection.phase() {
            Phase::Opening => "opening",
            Phase::Established => "established",
            Phase::Closing => "closing",
            Phase::Closed => "closed",
            Phase::Reset => "reset",
        }
        .to_owned(),
        expires_seconds: connection.remaining(now).as_secs(),
        packets: opener.packets + answerer.packets,
        bytes: opener.bytes + answerer.bytes,
    }
}

fn ip(address: Address) -> IpAddr {
    IpAddr::from(address.octets()).to_canonical()
}
