//! The rules for destinations that see containers' own addresses.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use shunt_agent_api::BridgePort;

use crate::nft::UnmasqueradedRule;

/// The rules of all ports: one for a network's prefix where all of its containers agree, else one for each address. Prefixes of two
/// networks that are the same are told apart by nobody's rules.
pub(crate) fn unmasqueraded<'a>(
    ports: impl Iterator<Item = &'a BridgePort> + Clone,
) -> BTreeSet<UnmasqueradedRule> {
    if ports.clone().all(|port| port.unmasqueraded.is_empty()) {
        return BTreeSet::new();
    }
    let mut members: BTreeMap<(&str, IpNet), Vec<&BridgePort>> = BTreeMap::new();
    for port in ports {
        for prefix in port.masquerade.iter().filter_map(|prefix| prefix.parse::<IpNet>().ok()) {
            members.entry((&port.key.network, prefix.trunc())).or_default().push(port);
        }
    }
    members.iter().flat_map(|((network, prefix), ports)| of_prefix(network, *prefix, ports)).collect()
}

fn of_prefix(network: &str, prefix: IpNet, ports: &[&BridgePort]) -> Vec<UnmasqueradedRule> {
    let rule = |source: IpNet, port: &BridgePort| {
        let destinations: BTreeSet<_> = destinations(port, &prefix);
        let network = network.to_owned();
        (!destinations.is_empty()).then_some(UnmasqueradedRule { network, source, destinations })
    };
    let agree = ports.windows(2).all(|pair| pair[0].unmasqueraded == pair[1].unmasqueraded);
    match ports.first() {
        Some(port) if agree => rule(prefix, port).into_iter().collect(),
        _ => {
            let of_port = |port: &&BridgePort| {
                let own = port.ips.iter().filter(|ip| prefix.contains(*ip)).copied();
                own.filter_map(|ip| rule(ip.into(), port)).collect::<Vec<_>>()
            };
            ports.iter().flat_map(of_port).collect()
        }
    }
}

/// A port's destinations of the family of `like`.
fn destinations(port: &BridgePort, like: &IpNet) -> BTreeSet<IpNet> {
    let all = port.unmasqueraded.iter().filter_map(|to| to.parse::<IpNet>().ok());
    all.filter(|to| to.addr().is_ipv4() == like.addr().is_ipv4()).map(|to| to.trunc()).collect()
}
