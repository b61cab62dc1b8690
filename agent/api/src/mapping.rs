//! Host ports that lead to a container.

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Deserializer, Serialize};

/// One host port of an attachment (CNI conventions, `portMappings`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortMapping {
    /// The protocol on both sides.
    pub protocol: Protocol,
    /// The node's address; the unspecified one: every address of its family; none: every address that the node has, of each
    /// family that the container has. An IPv4 one is read as one, also where it is written as IPv6 does (RFC 4291 section
    /// 2.5.5.2).
    #[serde(default, deserialize_with = "canonical", skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
    /// The node's port.
    pub host_port: u16,
    /// The container's port.
    pub container_port: u16,
    /// Whether the container sees the node instead of its clients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masquerade: bool,
    /// Whether it sees its clients' own addresses, its neighbours' too (portmap's `snat: false`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_source: bool,
}

impl PortMapping {
    /// The one address of the node's that it is at; none: each of a family, or of both.
    pub fn address(&self) -> Option<IpAddr> {
        self.host_ip.filter(|ip| !ip.is_unspecified())
    }

    /// Whether it is at addresses of the family of `ip`.
    pub fn is_of_family(&self, ip: IpAddr) -> bool {
        self.host_ip.is_none_or(|host| host.is_ipv4() == ip.is_ipv4())
    }

    /// Whether it is at `ip`, if that is an address of the node's.
    pub fn is_at(&self, ip: IpAddr) -> bool {
        self.is_of_family(ip) && self.address().is_none_or(|own| own == ip)
    }

    /// Whether a packet may ask for both: then two containers cannot have them.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_at_same = match (self.address(), other.address()) {
            (Some(one), _) => other.is_at(one),
            (None, Some(one)) => self.is_at(one),
            (None, None) => self.host_ip.is_none_or(|ip| other.is_of_family(ip)),
        };
        (self.protocol, self.host_port) == (other.protocol, other.host_port) && is_at_same
    }
}

/// The first of these host ports that one before it overlaps.
pub fn find_overlap(mappings: &[PortMapping]) -> Option<&PortMapping> {
    let (mut ports, mut families, mut places) = (HashSet::new(), HashSet::new(), HashSet::new());
    mappings.iter().find(|mapping| {
        let port = (mapping.protocol, mapping.host_port);
        let is_taken = |ip: Option<IpAddr>| places.contains(&(port, ip));
        let any_of = |ip: IpAddr| match ip {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let overlaps = match mapping.host_ip {
            None => ports.contains(&port),
            Some(ip) if ip.is_unspecified() => is_taken(None) || families.contains(&(port, ip.is_ipv4())),
            Some(ip) => is_taken(None) || is_taken(Some(any_of(ip))) || is_taken(Some(ip)),
        };
        ports.insert(port);
        families.extend(mapping.host_ip.map(|ip| (port, ip.is_ipv4())));
        places.insert((port, mapping.host_ip));
        overlaps
    })
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

    /// TCP 8080, leading to 80.
    fn at(host_ip: &str) -> PortMapping {
        let host_ip = (!host_ip.is_empty()).then(|| host_ip.parse().unwrap());
        PortMapping {
            protocol: Protocol::Tcp,
            host_ip,
            host_port: 8080,
            container_port: 80,
            masquerade: false,
            keeps_source: false,
        }
    }

    #[test]
    fn an_unspecified_address_is_every_one_of_its_family() {
        for (host_ip, v4, v6) in [("", true, true), ("0.0.0.0", true, false), ("::", false, true)] {
            let mapping = at(host_ip);
            assert_eq!(mapping.address(), None);
            let is_at = ["192.0.2.1", "2001:db8::1"].map(|ip| mapping.is_at(ip.parse().unwrap()));
            assert_eq!(is_at, [v4, v6], "{host_ip}");
        }
    }

    #[test]
    fn an_overlap_among_many_is_the_one_that_each_pair_shows() {
        let places = ["", "0.0.0.0", "::", "192.0.2.1", "192.0.2.2", "2001:db8::1"];
        for one in places {
            for other in places {
                let pair = [at(one), at(other)];
                let found = find_overlap(&pair).is_some();
                assert_eq!(found, pair[0].overlaps(&pair[1]), "{one} {other}");
            }
        }
        let many: Vec<_> = (0..100_000u32)
            .map(|number| PortMapping { host_ip: Some(IpAddr::V4(number.into())), ..at("192.0.2.1") })
            .skip(1)
            .collect();
        assert_eq!(find_overlap(&many), None);
    }

    #[test]
    fn ports_overlap_where_a_packet_may_ask_for_both() {
        for (one, other, overlap) in [
            ("", "", true),
            ("", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("0.0.0.0", "192.0.2.1", true),
            ("0.0.0.0", "2001:db8::1", false),
            ("::", "2001:db8::1", true),
            ("::", "192.0.2.1", false),
            ("", "::", true),
            ("0.0.0.0", "::", false),
            ("::", "::", true),
        ] {
            assert_eq!(at(one).overlaps(&at(other)), overlap, "{one} {other}");
            assert_eq!(at(other).overlaps(&at(one)), overlap, "{other} {one}");
        }
        assert!(!at("").overlaps(&PortMapping { host_port: 81, ..at("") }));
    }
}
