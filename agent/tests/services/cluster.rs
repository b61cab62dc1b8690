//! A node with three containers and one Service, whose endpoint is the second.

use std::net::{IpAddr, SocketAddr};

use shunt_lab::{Conversation, Echo, Lab, Network, Node, Protocol, Sandbox};

use crate::rules::{ENDPOINT_PORT, Mode, SERVICE_PORT, VIRTUAL};

/// Fields are dropped in their order.
pub(crate) struct Cluster {
    /// Answers for the Service, and by its own address.
    pub(crate) echo: Echo,
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) network: Network,
    pub(crate) node: Node,
    pub(crate) lab: Lab,
}

impl Cluster {
    /// With the rules of `mode`, on a node whose bridges call iptables, as on every Kubernetes node.
    pub(crate) fn start(mode: Mode) -> Self {
        Self::start_with(mode, false)
    }

    /// The same; a bridge port must be a hairpin for its container to reach itself.
    pub(crate) fn start_with(mode: Mode, hairpin: bool) -> Self {
        let lab = Lab::new().unwrap();
        let node = Node::start(&lab, "node").unwrap();
        node.namespace().sysctl("net/bridge/bridge-nf-call-iptables", "1").unwrap();
        let network = node.network("pods", "cni0", &["10.77.0.0/24"]).with("hairpinMode", hairpin.into());
        let add = |id| Sandbox::start(&lab, &node, &network, id).unwrap();
        let sandboxes: Vec<_> = ["client", "endpoint", "other"].map(add).into();
        let endpoint = sandboxes[1].attachment().ipv4().unwrap();
        mode.install(node.namespace(), endpoint);
        let echo = sandboxes[1].echo(endpoint.into(), ENDPOINT_PORT).unwrap();
        Self { echo, sandboxes, network, node, lab }
    }

    /// From the container `from` to the Service's virtual address.
    pub(crate) fn to_service(&self, from: usize, protocol: Protocol) -> Conversation {
        let service = SocketAddr::new(IpAddr::V4(VIRTUAL), SERVICE_PORT);
        Conversation::open(self.sandboxes[from].namespace(), protocol, service).unwrap()
    }

    /// From the container `from` to the endpoint's own address.
    pub(crate) fn direct(&self, from: usize, protocol: Protocol) -> Conversation {
        self.sandboxes[from].talk_to(protocol, &self.echo).unwrap()
    }

    /// Fast and all packets that `container` has sent.
    pub(crate) fn sent(&self, container: &str) -> [u64; 2] {
        let from = self.node.agent().port(container).unwrap().from;
        [from.fast, from.fast + from.kernel + from.dropped]
    }

    /// How many TCP segments the container `of` had to send again.
    pub(crate) fn sent_again(&self, of: usize) -> u64 {
        let read = || std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let counters = self.sandboxes[of].namespace().enter(read).unwrap();
        let mut lines = counters.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let place = names.split(' ').position(|name| name == "RetransSegs").unwrap();
        values.split(' ').nth(place).unwrap().parse().unwrap()
    }

    /// Adds one more container.
    pub(crate) fn add(&mut self, id: &str) {
        self.sandboxes.push(Sandbox::start(&self.lab, &self.node, &self.network, id).unwrap());
    }
}
