//! Host ports that lead to a container.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Deserializer, Serialize};

/// One host port of an attachment (CNI conventions, `portMappings`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortMapping {
    /// The protocol on both sides.
    pub protocol: Protocol,
    /// The node's address; none: every address that the node has, of each family that the container has. An IPv4 one is read
    /// as one, also where it is written as IPv6 does (RFC 4291 section 2.5.5.2).
    #[serde(default, deserialize_with = "canonical", skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
    /// The node's port.
    pub host_port: u16,
    /// The container's port.
    pub container_port: u16,
    /// Whether the container sees the node instead of its clients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masquerade: bool,
}

/// One address has one entry in the maps, so it has one value here, and whoever compares two of them is right.
fn canonical<'de, D: Deserializer<'de>>(from: D) -> Result<Option<IpAddr>, D::Error> {
    Ok(Option::<IpAddr>::deserialize(from)?.map(|ip| ip.to_canonical()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_address_is_one_however_it_is_written() {
        for host_ip in ["192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201"] {
            let text =
                format!(r#"{{"protocol":"tcp","host_ip":"{host_ip}","host_port":8080,"container_port":80}}"#);
            let mapping: PortMapping = serde_json::from_str(&text).unwrap();
            assert_eq!(mapping.host_ip, Some(IpAddr::from([192, 0, 2, 1])), "{host_ip}");
        }
    }
}
