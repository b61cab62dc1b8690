//! What came by host ports that are gone, where their figures are summed: a sum does not fall when a host port goes.
//!
//! The agent's thread does not count connections, so the last figure that was told of a host port is what is kept of it.

use std::collections::{BTreeMap, HashMap};

use shunt_agent_api::{MappingReport, Volume};

use crate::departed::MAX_NAMESPACES;

/// What came by host ports of one namespace, from the container and to it.
pub(super) type Volumes = [Volume; 2];

/// The sums, and the last figures of the host ports that there are.
#[derive(Debug, Default)]
pub(super) struct GoneHostPorts {
    last: HashMap<HostPort, (String, Volumes)>,
    gone: BTreeMap<String, Volumes>,
}

/// Network, container, and the host port as its container has it.
type HostPort = (String, String, String);

impl GoneHostPorts {
    /// Compares with what there was, and answers what those that are gone had, by namespace. Of too many namespaces without any host port
    /// the first ones become one, the nameless.
    pub(super) fn see(&mut self, mappings: &[MappingReport]) -> &BTreeMap<String, Volumes> {
        let mut before = std::mem::take(&mut self.last);
        for mapping in mappings {
            let (key, now) = (key(mapping), [mapping.from, mapping.to]);
            // The next one of the same name begins anew.
            if let Some((namespace, last)) = before.remove(&key)
                && (namespace != mapping.namespace || has_fallen(last, now))
            {
                add(self.gone.entry(namespace).or_default(), last);
            }
            self.last.insert(key, (mapping.namespace.clone(), now));
        }
        for (namespace, last) in before.into_values() {
            add(self.gone.entry(namespace).or_default(), last);
        }
        while self.gone.len() > MAX_NAMESPACES {
            let is_living = |name: &str| mappings.iter().any(|mapping| mapping.namespace == name);
            let first = self.gone.keys().find(|name| !name.is_empty() && !is_living(name)).cloned();
            let Some(volumes) = first.and_then(|name| self.gone.remove(&name)) else { break };
            add(self.gone.entry(String::new()).or_default(), volumes);
        }
        &self.gone
    }
}

fn key(mapping: &MappingReport) -> HostPort {
    let MappingReport { network, container, ifname, proto, host_ip, host_port, .. } = mapping;
    (network.clone(), container.clone(), format!("{ifname} {proto} {host_ip:?} {host_port}"))
}

fn has_fallen(last: Volumes, now: Volumes) -> bool {
    last.iter().zip(now).any(|(last, now)| now.packets < last.packets || now.bytes < last.bytes)
}

fn add(sum: &mut Volumes, more: Volumes) {
    for (sum, more) in sum.iter_mut().zip(more) {
        sum.packets = sum.packets.saturating_add(more.packets);
        sum.bytes = sum.bytes.saturating_add(more.bytes);
    }
}

#[cfg(test)]
mod tests {
    use shunt_agent_api::Protocol;

    use super::*;

    fn mapping(container: &str, namespace: &str, packets: u64) -> MappingReport {
        MappingReport {
            proto: Protocol::Tcp,
            host_ip: None,
            host_port: 8080,
            network: "net".into(),
            container: container.into(),
            ifname: "eth0".into(),
            namespace: namespace.into(),
            pod: String::new(),
            container_ips: Vec::new(),
            container_port: 80,
            kernel: false,
            connections: 0,
            from: Volume { packets, bytes: 100 * packets },
            to: Volume::default(),
        }
    }

    #[test]
    fn what_is_gone_or_begins_anew_is_kept_once() {
        let mut kept = GoneHostPorts::default();
        let mut gone =
            |mappings: &[MappingReport]| kept.see(mappings).get("team").map_or(0, |[from, _]| from.packets);
        assert_eq!(gone(&[mapping("a", "team", 5), mapping("b", "team", 1)]), 0);
        assert_eq!(gone(&[mapping("a", "team", 7)]), 1, "b is gone");
        assert_eq!(gone(&[mapping("a", "team", 2)]), 8, "another one of its name");
        assert_eq!(gone(&[]), 10);
        assert_eq!(gone(&[]), 10);
    }

    #[test]
    fn namespaces_are_bounded_and_nothing_of_them_is_lost() {
        let mut kept = GoneHostPorts::default();
        for number in 0..2 * MAX_NAMESPACES {
            kept.see(&[mapping("a", &format!("ns-{number}"), 1)]);
        }
        let gone = kept.see(&[]);
        assert!(gone.len() <= MAX_NAMESPACES + 1, "{}", gone.len());
        assert_eq!(gone.values().map(|[from, _]| from.packets).sum::<u64>(), 2 * MAX_NAMESPACES as u64);
    }
}
