//! Host ports that lead to a container.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// One host port of an attachment (CNI conventions, `portMappings`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortMapping {
    /// The protocol on both sides.
    pub protocol: Protocol,
    /// The node's address; none: every address that the node has, of each family that the container has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
    /// The node's port.
    pub host_port: u16,
    /// The container's port.
    pub container_port: u16,
    /// Whether the container sees the node instead of its clients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masquerade: bool,
}

impl fmt::Display for PortMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host_ip {
            Some(ip) => write!(f, "{}/{}", SocketAddr::new(ip, self.host_port), self.protocol),
            None => write!(f, "{}/{}", self.host_port, self.protocol),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        })
    }
}

/// The protocols that have ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}
