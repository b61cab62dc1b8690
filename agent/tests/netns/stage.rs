//! A node with three containers, for every test its own.

use std::time::Duration;

use shunt_lab::{Echo, Inventory, Lab, Network, Node, Protocol, Sandbox};

/// How long the agent may take to tidy up.
const PATIENCE: Duration = Duration::from_secs(3);

/// Fields are dropped in their order: containers before the node, the lab last.
pub(crate) struct Stage {
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) network: Network,
    pub(crate) node: Node,
    /// The node before its first container.
    pub(crate) empty: Inventory,
    pub(crate) lab: Lab,
}

impl Stage {
    /// A node whose network has an IPv4 and an IPv6 range, and no containers.
    pub(crate) fn empty() -> Self {
        Self::empty_with(&[])
    }

    /// The same, and the agent leaves alone what is wrong: for tests of what finds it.
    pub(crate) fn empty_without_repairs() -> Self {
        Self::empty_with(&["--no-repairs"])
    }

    /// The same, and the agent has these arguments.
    pub(crate) fn empty_with(arguments: &[&str]) -> Self {
        let lab = Lab::new().unwrap();
        let node = Node::start_with(&lab, "node", arguments).unwrap();
        Self::of(lab, node)
    }

    /// The same, and the agent has this configuration file.
    pub(crate) fn empty_by(file: &str) -> Self {
        let lab = Lab::new().unwrap();
        let node = Node::start_by(&lab, "node", file).unwrap();
        Self::of(lab, node)
    }

    /// The same with a lab and a node that are there.
    pub(crate) fn of(lab: Lab, node: Node) -> Self {
        let network = node.network("pods", "cni0", &["10.77.0.0/24", "fd77::/64"]);
        let empty = node.inventory().unwrap();
        Self { sandboxes: Vec::new(), network, node, empty, lab }
    }

    /// The same with three containers.
    pub(crate) fn set() -> Self {
        let mut stage = Self::empty();
        for id in ["one", "two", "three"] {
            stage.add(id);
        }
        stage
    }

    pub(crate) fn add(&mut self, id: &str) -> &Sandbox {
        let sandbox = Sandbox::start(&self.lab, &self.node, &self.network, id);
        let log = || self.node.agent().log_tail();
        self.sandboxes.push(sandbox.unwrap_or_else(|error| panic!("{error:#}\n{}", log())));
        self.sandboxes.last().unwrap()
    }

    /// An echo server on the `index`th container's IPv4 address.
    pub(crate) fn echo(&self, index: usize, port: u16) -> Echo {
        let sandbox = &self.sandboxes[index];
        sandbox.echo(sandbox.addresses()[0], port).unwrap()
    }

    /// A new conversation from one container to another works, over IPv4 and IPv6, TCP and UDP.
    pub(crate) fn assert_talk(&self, client: usize, server: usize) {
        for address in self.sandboxes[server].addresses() {
            let echo = self.sandboxes[server].echo(address, 7100).unwrap();
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                let talk =
                    self.sandboxes[client].talk_to(protocol, &echo).and_then(|mut talk| talk.chat(20, 1200));
                talk.unwrap_or_else(|error| panic!("{client} to {server} over {protocol:?}: {error:#}"));
            }
        }
    }

    /// What the node has that it had not before its first container. The bridge with its addresses and routes stays, as with
    /// the reference plugin.
    pub(crate) fn left(&self) -> Vec<String> {
        self.node.left_since(&self.empty, PATIENCE, &["cni0"]).unwrap()
    }
}
