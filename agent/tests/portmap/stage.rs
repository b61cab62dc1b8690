//! A node with an uplink, somebody behind it, and containers that host ports lead to.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Agent, Container, Conversation, Echo, Lab, Namespace, Network, Node, Protocol, Sandbox};

/// The node's addresses on the uplink, IPv4 first.
pub(crate) const NODE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
/// The gateways of the containers' network, which are addresses of the node, too: what a container sees in place of its neighbours.
pub(crate) const GATEWAY: [&str; 2] = ["10.77.0.1", "fd77::1"];
/// The addresses of the host outside.
pub(crate) const OUTSIDE: [&str; 2] = ["192.0.2.9", "2001:db8::9"];

/// How long anything may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Fields are dropped in their order.
pub(crate) struct Stage {
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) network: Network,
    pub(crate) node: Node,
    /// A host that knows the node's link and no way to the containers.
    pub(crate) outside: Namespace,
    pub(crate) lab: Lab,
}

/// One entry of `portMappings`.
pub(crate) fn mapping(host_port: u16, container_port: u16, protocol: &str) -> Value {
    json!({ "hostPort": host_port, "containerPort": container_port, "protocol": protocol })
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(Lab::with_all_programs().unwrap(), &[])
    }

    /// The same with more arguments for the agent.
    pub(crate) fn with(lab: Lab, arguments: &[&str]) -> Self {
        let node = Node::start_with(&lab, "node", arguments).unwrap();
        let outside = lab.namespace("outside").unwrap();
        join(&node, "up0", &outside, "eth0");
        for (namespace, ifname, addresses) in [(node.namespace(), "up0", NODE), (&outside, "eth0", OUTSIDE)] {
            for (address, length) in addresses.into_iter().zip(["24", "64"]) {
                give(namespace, ifname, &format!("{address}/{length}"));
            }
        }
        let network = node.network("pods", "cni0", &["10.77.0.0/24", "fd77::/64"]);
        Self { sandboxes: Vec::new(), network, node, outside, lab }
    }

    /// The network as a runtime asks for it that wants these `mappings`.
    pub(crate) fn mapped(&self, mappings: &[Value]) -> Network {
        self.network.clone().with("runtimeConfig", json!({ "portMappings": mappings }))
    }

    /// Adds a container that these `mappings` lead to.
    pub(crate) fn add(&mut self, id: &str, mappings: &[Value]) -> &Sandbox {
        let network = self.mapped(mappings);
        let sandbox = Sandbox::start(&self.lab, &self.node, &network, id);
        let log = || self.node.agent().log_tail();
        self.sandboxes.push(sandbox.unwrap_or_else(|error| panic!("{error:#}\n{}", log())));
        self.node.settle().unwrap();
        self.sandboxes.last().unwrap()
    }

    /// The code and message with which an ADD is refused.
    pub(crate) fn refused(&self, network: &Network, id: &str) -> (u64, String) {
        let container = Container::create(&self.lab, id).unwrap();
        let error = network.add(self.node.namespace(), &container).expect_err("this ADD cannot work");
        let refusal = error.downcast::<shunt_lab::cni::Refusal>().expect("the plugin's own refusal");
        (refusal.code, refusal.message)
    }

    /// Echo servers on each of the `index`th container's addresses.
    pub(crate) fn echo(&self, index: usize, port: u16) -> Vec<Echo> {
        let sandbox = &self.sandboxes[index];
        sandbox.addresses().into_iter().map(|address| sandbox.echo(address, port).unwrap()).collect()
    }

    /// A conversation from `client` with a port of the node.
    pub(crate) fn open(&self, client: &Namespace, protocol: Protocol, to: &str, port: u16) -> Conversation {
        let to = SocketAddr::new(address(to), port);
        Conversation::open(client, protocol, to)
            .unwrap_or_else(|error| panic!("{error:#}\n{}", self.node.agent().log_tail()))
    }

    /// Waits until something holds.
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&Agent) -> bool) {
        let begun = Instant::now();
        while !holds(self.node.agent()) {
            assert!(begun.elapsed() < PATIENCE, "{what}\n{}", self.node.agent().log_tail());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The interfaces that `from_wire` runs on.
    pub(crate) fn wires(&self) -> Vec<String> {
        let programs = self.node.agent().status().unwrap().programs.into_iter();
        let mut names: Vec<_> =
            programs.filter(|program| program.name == "from_wire").map(|program| program.ifname).collect();
        names.sort();
        names
    }
}

/// A pair of Ethernet ends, up.
pub(crate) fn join(node: &Node, here: &str, outside: &Namespace, there: &str) {
    node.namespace().pair(here, outside, there).unwrap();
}

/// Gives an interface an address.
pub(crate) fn give(namespace: &Namespace, ifname: &str, address: &str) {
    let mut arguments = vec!["address", "add", address, "dev", ifname];
    if address.contains(':') {
        arguments.push("nodad");
    }
    namespace.command("ip", &arguments).unwrap();
}

pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}
