//! Which labels figures of containers have: with coarser ones the figures of several containers are one sum.

use std::collections::HashMap;

use shunt_agent_api::{Allocation, DropReport, MappingReport, PortReport};

use crate::config::MetricsLabels;

/// Names and values, in the order in which they are written.
pub(super) type Labels = Vec<(&'static str, String)>;

/// What tells the containers apart.
#[derive(Debug)]
pub(super) struct Grouping<'a> {
    labels: MetricsLabels,
    /// The ports' pods by host interface.
    by_host: HashMap<&'a str, &'a PortReport>,
    /// The same by key.
    by_key: HashMap<[&'a str; 3], &'a PortReport>,
}

impl<'a> Grouping<'a> {
    pub(super) fn new(labels: MetricsLabels, ports: &'a [PortReport]) -> Self {
        let key = |port: &'a PortReport| [&*port.network, &*port.container, &*port.ifname];
        Self {
            labels,
            by_host: ports.iter().map(|port| (&*port.host_ifname, port)).collect(),
            by_key: ports.iter().map(|port| (key(port), port)).collect(),
        }
    }

    /// Of a port's figure; `more` is what the figure is about.
    pub(super) fn of_port(&self, port: &PortReport, more: &[(&'static str, &str)]) -> Labels {
        let own = || {
            [
                ("network", &port.network),
                ("container", &port.container),
                ("interface", &port.ifname),
                ("host_interface", &port.host_ifname),
            ]
        };
        self.labels(own, more, (&port.namespace, &port.pod))
    }

    /// Of a host port's.
    pub(super) fn of_mapping(&self, mapping: &MappingReport, more: &[(&'static str, &str)]) -> Labels {
        let address = mapping.host_ip.map(|ip| ip.to_string()).unwrap_or_default();
        let (protocol, port) = (mapping.proto.to_string(), mapping.host_port.to_string());
        let own = || {
            [
                ("network", &mapping.network),
                ("container", &mapping.container),
                ("protocol", &protocol),
                ("host_address", &address),
                ("host_port", &port),
            ]
        };
        self.labels(own, more, (&mapping.namespace, &mapping.pod))
    }

    /// Of what was dropped at an interface, a container's or another one.
    pub(super) fn of_drop(&self, drop: &DropReport) -> Labels {
        let more = [("stage", &*drop.stage), ("reason", &*drop.reason)];
        let own = || [("host_interface", &drop.port)];
        match self.by_host.get(&*drop.port) {
            Some(port) => self.labels(own, &more, (&port.namespace, &port.pod)),
            None => pairs(own()).chain(owned(&more)).collect(),
        }
    }

    /// Of what an attachment has of an uplink.
    pub(super) fn of_allocation(&self, uplink: &str, allocation: &Allocation, way: &str) -> Labels {
        let Allocation { network, container, ifname, .. } = allocation;
        let port = self.by_key.get(&[&**network, &**container, &**ifname]);
        let pod = port.map_or(("", ""), |port| (&*port.namespace, &*port.pod));
        let own = || [("network", network), ("container", container), ("interface", ifname)];
        let uplink = ("uplink", uplink.to_owned());
        [uplink].into_iter().chain(self.labels(own, &[("direction", way)], pod)).collect()
    }

    /// Of a namespace's figure, where there are sums.
    pub(super) fn of_namespace(&self, namespace: &str, more: &[(&'static str, &str)]) -> Labels {
        self.labels(|| [], more, (namespace, ""))
    }

    /// What is not known is left out, but for the namespace that a sum is of.
    fn labels<'b, const N: usize>(
        &self,
        own: impl FnOnce() -> [(&'static str, &'b String); N],
        more: &[(&'static str, &str)],
        (namespace, pod): (&str, &str),
    ) -> Labels {
        let whose = [("namespace", namespace), ("pod", pod)];
        match self.labels {
            MetricsLabels::Pod => {
                let known = whose.iter().filter(|(_, name)| !name.is_empty());
                pairs(own()).chain(owned(more)).chain(owned(known)).collect()
            }
            MetricsLabels::Namespace => owned(more).chain(owned(&whose[..1])).collect(),
            MetricsLabels::Node => owned(more).collect(),
        }
    }
}

fn pairs<const N: usize>(
    labels: [(&'static str, &String); N],
) -> impl Iterator<Item = (&'static str, String)> {
    labels.into_iter().map(|(name, value)| (name, value.clone()))
}

fn owned<'a>(
    labels: impl IntoIterator<Item = &'a (&'static str, &'a str)>,
) -> impl Iterator<Item = (&'static str, String)> {
    labels.into_iter().map(|(name, value)| (*name, (*value).to_owned()))
}
