//! Which of the node's ports lead to the container: the runtime's `portMappings`, as the portmap plugin takes them.

use std::net::IpAddr;

use shunt_agent_api::{PortMapping as HostPort, Protocol, find_overlap};

use super::error::ConfigError;
use super::network::PortMapping;

const KEY: &str = "runtimeConfig.portMappings";

/// Whom a container sees that is asked by a host port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clients {
    /// Its clients, but for its neighbours and itself the node.
    Routed,
    /// Its clients, its neighbours too.
    All,
    /// The node.
    None,
}

/// Decides. An unspecified address of the node means any of its family; a repeated mapping is a mistake. The container sees `clients`.
///
/// # Errors
/// [`ConfigError::Invalid`].
pub(super) fn of(mappings: &[PortMapping], clients: Clients) -> Result<Vec<HostPort>, ConfigError> {
    let (masquerade, keeps_source) = (clients == Clients::None, clients == Clients::All);
    let read = |mapping| Ok(HostPort { masquerade, keeps_source, ..read(mapping)? });
    let ports = mappings.iter().map(read).collect::<Result<Vec<_>, ConfigError>>()?;
    match find_overlap(&ports) {
        Some(port) => Err(invalid(format!("host port {port} is asked for twice"))),
        None => Ok(ports),
    }
}

/// Those that one of `ips` can answer: a mapping of the other family is skipped, as the reference plugin skips it.
pub(super) fn answered_by(ports: Vec<HostPort>, ips: &[IpAddr]) -> Vec<HostPort> {
    let is_answered = |port: &HostPort| ips.iter().any(|ip| port.is_of_family(*ip));
    ports.into_iter().filter(is_answered).collect()
}

fn read(mapping: &PortMapping) -> Result<HostPort, ConfigError> {
    let PortMapping { host_port, container_port, protocol, host_ip } = mapping;
    for (key, port) in [("hostPort", *host_port), ("containerPort", *container_port)] {
        if port == 0 {
            return Err(invalid(format!("{key} is not between 1 and 65535")));
        }
    }
    let protocol = match protocol.to_ascii_lowercase().as_str() {
        "tcp" | "" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "sctp" => Protocol::Sctp,
        _ => return Err(invalid(format!("protocol `{protocol}` is none of tcp, udp, sctp"))),
    };
    let host_ip = match host_ip.as_str() {
        "" => None,
        text => Some(text.parse::<IpAddr>().map_err(|_| invalid(format!("hostIP `{text}` is no address")))?),
    };
    // An IPv4 address may be written as IPv6 does, and is one all the same.
    let host_ip = host_ip.map(|ip| ip.to_canonical());
    if host_ip.is_some_and(|ip| ip.is_multicast()) {
        return Err(invalid("a hostIP is no group's".to_owned()));
    }
    let (host_port, container_port) = (*host_port, *container_port);
    Ok(HostPort { protocol, host_ip, host_port, container_port, masquerade: false, keeps_source: false })
}

fn invalid(why: String) -> ConfigError {
    ConfigError::Invalid { key: KEY, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(host_port: u16, protocol: &str, host_ip: &str) -> PortMapping {
        PortMapping { host_port, container_port: 80, protocol: protocol.into(), host_ip: host_ip.into() }
    }

    #[test]
    fn an_unspecified_address_means_any_of_its_family_and_a_protocol_comes_in_any_case() {
        let [v4, v6] = [IpAddr::from([0; 4]), IpAddr::from([0; 16])];
        for (protocol, host_ip, means) in [
            ("TCP", "", None),
            ("tcp", "0.0.0.0", Some(v4)),
            ("", "::ffff:0.0.0.0", Some(v4)),
            ("", "::", Some(v6)),
        ] {
            let ports = of(&[mapping(8080, protocol, host_ip)], Clients::None).unwrap();
            let wanted = HostPort {
                protocol: Protocol::Tcp,
                host_ip: means,
                host_port: 8080,
                container_port: 80,
                masquerade: true,
                keeps_source: false,
            };
            assert_eq!(ports, [wanted], "{protocol} {host_ip}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let container = PortMapping { container_port: 0, ..mapping(8080, "tcp", "") };
        let wrong = [
            vec![mapping(0, "tcp", "")],
            vec![container],
            vec![mapping(8080, "icmp", "")],
            vec![mapping(8080, "tcp", "10.0.0.300")],
            vec![mapping(8080, "tcp", "ff02::1")],
            vec![mapping(8080, "tcp", "::ffff:224.0.0.1")],
            vec![mapping(8080, "tcp", ""), mapping(8080, "tcp", "10.0.0.1")],
            vec![mapping(8080, "tcp", "10.0.0.1"), mapping(8080, "tcp", "::ffff:10.0.0.1")],
        ];
        for mappings in wrong {
            assert!(
                matches!(of(&mappings, Clients::Routed), Err(ConfigError::Invalid { .. })),
                "{mappings:?}"
            );
        }
        let several =
            [mapping(8080, "tcp", "10.0.0.2"), mapping(8080, "tcp", "10.0.0.1"), mapping(8080, "udp", "")];
        of(&several, Clients::Routed).unwrap();
        let [v4, v6] = ["0.0.0.0", "::"].map(|ip| mapping(8080, "tcp", ip));
        of(
            &[v4.clone(), v6.clone(), mapping(8081, "tcp", "0.0.0.0"), mapping(8081, "tcp", "2001:db8::1")],
            Clients::Routed,
        )
        .unwrap();
        of(&[v4.clone(), PortMapping { container_port: 81, ..v6 }], Clients::Routed).unwrap();
        assert!(matches!(of(&[v4.clone(), v4], Clients::Routed), Err(ConfigError::Invalid { .. })));
    }

    #[test]
    fn a_mapping_of_the_other_family_is_skipped() {
        let mappings = [(8080, "2001:db8::1"), (8081, ""), (8082, "::ffff:10.0.0.1")]
            .map(|(port, ip)| mapping(port, "tcp", ip));
        let left = answered_by(of(&mappings, Clients::Routed).unwrap(), &[IpAddr::from([10, 0, 0, 5])]);
        assert_eq!(left.iter().map(|port| port.host_port).collect::<Vec<_>>(), [8081, 8082]);
    }
}
