//! Reports of host ports: the agent knows the ports, and a walk of the table what came by them.

use shunt_agent_api::{MappingReport, Pod, Reply};
use shunt_dataplane::wire::address::Address;

use crate::datapath::{encode, in_map};
use crate::resources::connection::Tallies;
use crate::resources::connection::volumes::{Place, Volumes};
use crate::resources::{Node, Refusal};

/// A host port whose figures are not read yet.
#[derive(Debug)]
pub(crate) struct HostPort {
    report: MappingReport,
    places: Vec<Place>,
}

impl Node {
    /// Every host port, in the order of the attachments.
    pub(crate) fn host_ports(&self) -> Vec<HostPort> {
        let mut ports = Vec::new();
        for attachment in self.registry.attachments() {
            for mapping in &attachment.port.mappings {
                let ips: Vec<_> = attachment.mapped_ips(mapping).collect();
                let place = |ip| (encode::mapping_key(mapping, ip), Address::from(ip));
                let places = ips.iter().copied().map(place).collect();
                let Volumes { from, to } = Volumes::default();
                let (namespace, pod) = Pod::names(attachment.port.pod.as_ref());
                let report = MappingReport {
                    proto: mapping.protocol,
                    host_ip: mapping.host_ip,
                    host_port: mapping.host_port,
                    network: attachment.port.key.network.clone(),
                    container: attachment.port.key.container.clone(),
                    ifname: attachment.port.key.ifname.clone(),
                    namespace,
                    pod,
                    container_ips: ips,
                    container_port: mapping.container_port,
                    kernel: attachment.opened,
                    connections: 0,
                    from,
                    to,
                };
                ports.push(HostPort { report, places });
            }
        }
        ports
    }
}

/// A [`MappingReport`] of each host port.
pub(crate) fn reports(tallies: &Tallies, ports: Vec<HostPort>) -> Reply {
    let tally = match tallies.tally().map_err(in_map("FLOWS")) {
        Ok(tally) => tally,
        Err(error) => return Reply::Error(Refusal::from(error).into()),
    };
    let report = |HostPort { report, places }| {
        let (connections, Volumes { from, to }) = tallies.figures(&tally, &places);
        MappingReport { connections, from, to, ..report }
    };
    Reply::Mappings(ports.into_iter().map(report).collect())
}
