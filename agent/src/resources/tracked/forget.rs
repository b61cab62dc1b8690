//! Has connection tracking forget connections to host ports that lead elsewhere now. It would send them on as before for as long as their packets come:
//! datagrams to whom they went before, and a connection to a container that is gone into nothing, instead of a reset from the node.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use shunt_agent_api::{PortMapping, Protocol};
use shunt_netlink::NetlinkError;
use shunt_netlink::conntrack::{TrackedConnection, Which, forget, walk};

use crate::datapath::encode::protocol_number;
use crate::registry::Attachment;

/// Connections that are forgotten at a time, and how often that many: more than connection tracking has by default.
const TOGETHER: usize = 4096;
const TIMES: usize = 256;

/// How long one look may take.
const LOOK: Duration = Duration::from_secs(10);

/// What is to be forgotten.
#[derive(Debug)]
pub(crate) struct Forget {
    /// Host ports whose datagrams go elsewhere now, wherever they went before.
    pub(crate) datagrams: Vec<PortMapping>,
    /// Where connections of any protocol were led, and are not any more.
    pub(crate) ended: HashSet<Led>,
    /// The node's addresses.
    pub(crate) own: HashSet<IpAddr>,
}

/// A host port, and a container's port to which it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Led {
    /// IP protocol number.
    protocol: u8,
    host_port: u16,
    to: SocketAddr,
}

impl Led {
    /// Where the host ports of a container lead.
    pub(crate) fn all_of(attachment: &Attachment) -> impl Iterator<Item = Self> {
        attachment.port.mappings.iter().flat_map(move |mapping| {
            attachment.mapped_ips(mapping).map(move |ip| Self {
                protocol: protocol_number(mapping.protocol),
                host_port: mapping.host_port,
                to: SocketAddr::new(ip, mapping.container_port),
            })
        })
    }
}

impl Forget {
    pub(super) fn work(&self) {
        match self.forget() {
            Ok(0) => {}
            Ok(forgotten) => tracing::debug!(forgotten, "forgot where connections to host ports went before"),
            Err(error) => tracing::warn!(%error, "connections to host ports may go where they went before"),
        }
    }

    /// In parts: what is forgotten is not found again.
    fn forget(&self) -> Result<usize, NetlinkError> {
        // Datagrams may have gone to the node itself.
        let which = if self.datagrams.is_empty() { Which::Redirected } else { Which::All };
        let mut forgotten = 0;
        for _ in 0..TIMES {
            let mut found = Vec::new();
            let is_all = walk(which, Instant::now() + LOOK, |connection| {
                found.extend(self.is_meant(&connection).then_some(connection.original));
                if found.len() < TOGETHER { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            forgotten += forget(&found)?;
            if is_all {
                return Ok(forgotten);
            }
            if found.len() < TOGETHER {
                break;
            }
        }
        tracing::warn!(
            forgotten,
            "some connections to host ports may go where they went before: there are too many"
        );
        Ok(forgotten)
    }

    fn is_meant(&self, TrackedConnection { original, reply, .. }: &TrackedConnection) -> bool {
        let to = original.destination;
        let led = Led { protocol: original.protocol, host_port: to.port(), to: reply.source };
        let is_one = |port: &PortMapping| port.host_port == to.port() && port.is_at(to.ip());
        let is_datagram = original.protocol == protocol_number(Protocol::Udp);
        self.own.contains(&to.ip())
            && (is_datagram && self.datagrams.iter().any(is_one)
                || to != reply.source && self.ended.contains(&led))
    }
}

#[cfg(test)]
mod tests {
    use shunt_netlink::conntrack::Tuple;

    use super::*;

    const UDP: u8 = 17;
    const TCP: u8 = 6;

    fn connection(protocol: u8, to: &str, answers: &str) -> TrackedConnection {
        let client: SocketAddr = "192.0.2.9:4000".parse().unwrap();
        let [to, answers] = [to, answers].map(|text| text.parse().unwrap());
        TrackedConnection {
            original: Tuple { protocol, source: client, destination: to },
            reply: Tuple { protocol, source: answers, destination: client },
            is_assured: true,
            is_established: true,
            timeout: 0,
        }
    }

    #[test]
    fn only_what_was_led_by_the_host_port_and_datagrams_to_it_are_forgotten() {
        let mapping = PortMapping {
            protocol: Protocol::Udp,
            host_ip: None,
            host_port: 8000,
            container_port: 7000,
            masquerade: false,
            keeps_source: false,
        };
        let led = Led { protocol: TCP, host_port: 8000, to: "10.77.0.3:7000".parse().unwrap() };
        let forget = Forget {
            datagrams: vec![mapping],
            ended: HashSet::from([led]),
            own: HashSet::from([IpAddr::from([192, 0, 2, 1])]),
        };
        for (protocol, to, answers, is_meant) in [
            (TCP, "192.0.2.1:8000", "10.77.0.3:7000", true),
            (TCP, "192.0.2.1:8000", "10.77.0.4:7000", false),
            (TCP, "192.0.2.1:8001", "10.77.0.3:7000", false),
            (TCP, "10.96.0.1:8000", "10.77.0.3:7000", false),
            (TCP, "192.0.2.1:8000", "192.0.2.1:8000", false),
            (UDP, "192.0.2.1:8000", "192.0.2.1:8000", true),
            (UDP, "192.0.2.1:8000", "10.77.0.4:7000", true),
            (UDP, "192.0.2.1:8001", "192.0.2.1:8001", false),
            (UDP, "192.0.2.7:8000", "192.0.2.7:8000", false),
        ] {
            assert_eq!(forget.is_meant(&connection(protocol, to, answers)), is_meant, "{to} by {answers}");
        }
    }
}
