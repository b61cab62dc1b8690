//! What the agent reports about translated connections and host ports; the field names are the contract of `--json`.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Protocol;

/// The protocols that are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// Echoes of ICMP for IPv4.
    Icmp,
    /// The same of ICMP for IPv6.
    Icmpv6,
}

impl FlowProtocol {
    /// Every protocol.
    pub const ALL: [Self; 5] = [Self::Tcp, Self::Udp, Self::Sctp, Self::Icmp, Self::Icmpv6];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
            Self::Icmp => "icmp",
            Self::Icmpv6 => "icmpv6",
        }
    }
}

impl fmt::Display for FlowProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `shunt-agent flows`: one translated connection, as its opener's packets come in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Its protocol.
    pub proto: FlowProtocol,
    /// From whom.
    pub src: IpAddr,
    /// From which port; of an echo, its identifier.
    pub sport: u16,
    /// To whom: by a host port, to the node.
    pub dst: IpAddr,
    /// To which port; of an echo, 0.
    pub dport: u16,
    /// The same, as the receiver sees it.
    pub translated: FlowEnds,
    /// `opening`, `established`, `closing`, `closed` or `reset`.
    pub state: String,
    /// Whether the kernel has opened it, behind others' rules; the programs carry it, and ask again while it lasts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel: bool,
    /// When it is forgotten, if nothing comes any more.
    pub expires_seconds: u64,
    /// The namespace of the container's pod, as far as the runtime says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The pod's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// How many packets of both directions were translated.
    pub packets: u64,
    /// How many bytes they had, Ethernet headers included.
    pub bytes: u64,
}

/// Both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEnds {
    /// From whom.
    pub src: IpAddr,
    /// From which port.
    pub sport: u16,
    /// To whom.
    pub dst: IpAddr,
    /// To which port.
    pub dport: u16,
}

/// `shunt-agent mappings`: one port of the node that leads to a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingReport {
    /// Its protocol.
    pub proto: Protocol,
    /// The node's address; none: any.
    pub host_ip: Option<IpAddr>,
    /// The node's port.
    pub host_port: u16,
    /// The container's network.
    pub network: String,
    /// The container.
    pub container: String,
    /// Its interface.
    pub ifname: String,
    /// The pod's namespace, as far as the runtime says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The pod's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// The container's addresses that it leads to, one of each family at most.
    pub container_ips: Vec<IpAddr>,
    /// The container's port.
    pub container_port: u16,
    /// Whether the kernel opens and carries its connections, as others' rules are asked: these are not counted here.
    #[serde(default)]
    pub kernel: bool,
    /// How many connections there are.
    pub connections: u64,
    /// What the container answered.
    #[serde(default)]
    pub from: Volume,
    /// What came to the container.
    #[serde(default)]
    pub to: Volume,
}

/// One direction of what came by a host port, connections that are over included: since the agent's start, and before it of those
/// that were there then. What a connection had that made room for another in a full table is lost: the figures then wait for
/// as much to come, and never fall. What the node's own sockets send is led and not translated, and is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// How many packets were translated (a GSO packet is one).
    pub packets: u64,
    /// How many bytes they had, Ethernet headers included.
    pub bytes: u64,
}
