//! Two nodes, one wire between them.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Inventory, Lab, Lacking, Network, Node, Protocol, Sandbox, patience, skip};

/// How long the agent may take to tidy up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who puts tags on and takes them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Kernel,
    Programs,
}

impl By {
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Programs => "ebpf",
        }
    }
}

/// The interface on both nodes that leads to the other.
pub(crate) const MASTER: &str = "uplink";

/// Fields are dropped in their order: the lab last.
pub(crate) struct Stage {
    pub(crate) here: Node,
    pub(crate) there: Node,
    pub(crate) empty: Inventory,
    pub(crate) lab: Lab,
}

impl Stage {
    pub(crate) fn set() -> Self {
        let lab = Lab::new().unwrap();
        let [here, there] = ["here", "there"].map(|name| Node::start(&lab, name).unwrap());
        here.namespace().pair(MASTER, there.namespace(), MASTER).unwrap();
        for node in [&here, &there] {
            node.namespace().command("ip", &["link", "set", MASTER, "up"]).unwrap();
        }
        let empty = here.inventory().unwrap();
        Self { here, there, empty, lab }
    }

    /// The same where the kernel has VLAN devices; else none, having said so.
    pub(crate) fn set_by(by: By) -> Option<Self> {
        let stage = Self::set();
        if by == By::Kernel && !stage.has_devices() {
            skip(Lacking::Kernel("VLAN devices (CONFIG_VLAN_8021Q)"));
            return None;
        }
        Some(stage)
    }

    pub(crate) fn has_devices(&self) -> bool {
        let probe = ["link", "add", "probe", "link", MASTER, "type", "vlan", "id", "4000"];
        let is_there = self.here.namespace().command("ip", &probe).is_ok();
        if is_there {
            self.here.namespace().command("ip", &["link", "del", "probe"]).unwrap();
        }
        is_there
    }

    /// A VLAN of the master's. Both nodes have the same subnets, and each its own part of them.
    pub(crate) fn network(&self, node: &Node, vid: u16, by: By) -> Network {
        let config = json!({
            "type": "shunt-vlan",
            "master": MASTER,
            "vlanId": vid,
            "dataplane": by.key(),
            "agentSocket": node.agent().socket(),
            "ipam": self.ipam(node, vid),
        });
        Network::new(&format!("vlan{vid}"), node.plugins(), config)
    }

    /// Addresses of a VLAN, `10.VID.0.0/16` and `fdVID::/64`.
    pub(crate) fn ipam(&self, node: &Node, vid: u16) -> Value {
        let part = if node.name() == self.here.name() { 1 } else { 2 };
        json!({
            "type": "shunt-ipam",
            "dataDir": node.leases(),
            "ranges": [
                [{ "subnet": format!("10.{vid}.0.0/16"), "rangeStart": format!("10.{vid}.{part}.1"), "rangeEnd": format!("10.{vid}.{part}.250") }],
                [{ "subnet": format!("fd{vid}::/64"), "rangeStart": format!("fd{vid}::{part}:1"), "rangeEnd": format!("fd{vid}::{part}:ff") }],
            ],
        })
    }

    pub(crate) fn start(&self, node: &Node, network: &Network, id: &str) -> Sandbox {
        let sandbox = Sandbox::start(&self.lab, node, network, id);
        let sandbox = sandbox.unwrap_or_else(|error| panic!("{error:#}\n{}", node.agent().log_tail()));
        self.check(node, network, &sandbox);
        sandbox
    }

    pub(crate) fn check(&self, node: &Node, network: &Network, sandbox: &Sandbox) {
        let result = &sandbox.attachment().result;
        let checked = network.check(node.namespace(), sandbox.container(), result);
        checked.unwrap_or_else(|error| panic!("CHECK of {}: {error:#}", sandbox.id()));
    }

    /// Both reach each other by their `which`th addresses, over TCP and UDP.
    pub(crate) fn assert_talk(&self, one: &Sandbox, other: &Sandbox, which: &[usize]) {
        for (client, server) in [(one, other), (other, one)] {
            for which in which {
                self.assert_served(client, server, server.addresses()[*which]);
            }
        }
    }

    /// A container reaches another at one of its addresses, over TCP and UDP.
    pub(crate) fn assert_served(&self, client: &Sandbox, server: &Sandbox, address: IpAddr) {
        let echo = server.echo(address, 7100).unwrap();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let talked = client.talk_to(protocol, &echo).and_then(|mut talk| talk.chat(20, 1200));
            talked.unwrap_or_else(|error| {
                let (from, to) = (client.id(), server.id());
                panic!("{from} to {to} at {address} over {protocol:?}: {error:#}\n{}", self.describe())
            });
        }
    }

    fn describe(&self) -> String {
        [&self.here, &self.there]
            .map(|node| format!("{:?}\n{:?}", node.agent().ports(), node.agent().drops()))
            .join("\n")
    }

    /// What the first node has that it had not at first, once its agent has had a moment.
    pub(crate) fn left(&self) -> Vec<String> {
        // The bridge stays, and programs that are not every port's are loaded when they are first needed.
        let stays = ["cni0", "pin v2/interfaces/", "pin v2/members/", "pin v2/restricted/"];
        self.here.left_since(&self.empty, PATIENCE, &stays).unwrap()
    }

    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.left(), Vec::<String>::new());
        assert_eq!(self.here.agent().status().unwrap().attachments, 0);
    }
}

/// Waits until `is_so`.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < patience(PATIENCE), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
