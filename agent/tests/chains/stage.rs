//! A node with our plugin beside the reference plugins, and somebody outside of it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_agent_api::PortReport;
use shunt_lab::{
    Conversation, Echo, Inventory, Lab, Lacking, Namespace, Network, Node, Protocol, Sandbox, skip,
};

/// Debian's directory of the reference plugins.
pub(crate) const REFERENCE: &str = "/usr/lib/cni";

/// The bridge of every network here.
pub(crate) const BRIDGE: &str = "cni0";

/// The node's address on the way out, and that of the peer there.
pub(crate) const UPLINK: [&str; 2] = ["198.51.100.1", "198.51.100.2"];

/// The port that containers serve.
pub(crate) const PORT: u16 = 7000;

/// Fields are dropped in their order: the lab last.
pub(crate) struct Stage {
    pub(crate) outside: Namespace,
    pub(crate) node: Node,
    pub(crate) lab: Lab,
}

impl Stage {
    /// None, having said so, where the reference plugins are not installed.
    pub(crate) fn set() -> Option<Self> {
        Self::set_by("")
    }

    /// The same, where the agent's file has this.
    pub(crate) fn set_by(file: &str) -> Option<Self> {
        if !Path::new(REFERENCE).join("portmap").is_file() {
            skip(Lacking::Package("containernetworking-plugins"));
            return None;
        }
        let lab = Lab::new().unwrap();
        let node = Node::start_by(&lab, "node", file).unwrap();
        for plugin in std::fs::read_dir(REFERENCE).unwrap().flatten() {
            std::os::unix::fs::symlink(plugin.path(), node.plugins().join(plugin.file_name())).unwrap();
        }
        let outside = lab.namespace("outside").unwrap();
        let there = outside.path().to_str().unwrap();
        let words = ["link", "add", "uplink", "type", "veth", "peer", "name", "eth0", "netns", there];
        node.namespace().command("ip", &words).unwrap();
        for (namespace, link, address) in
            [(node.namespace(), "uplink", UPLINK[0]), (&outside, "eth0", UPLINK[1])]
        {
            namespace.command("ip", &["address", "add", &format!("{address}/24"), "dev", link]).unwrap();
            namespace.command("ip", &["link", "set", link, "up"]).unwrap();
        }
        outside.command("ip", &["route", "add", "default", "via", UPLINK[0]]).unwrap();
        Some(Self { outside, node, lab })
    }

    /// The network whose first plugin is shunt.
    pub(crate) fn shunt(&self) -> Network {
        self.node.network("pods", BRIDGE, &["10.77.0.0/24", "fd77::/64"])
    }

    /// What shunt is told after another plugin.
    pub(crate) fn shunt_second(&self) -> Value {
        json!({ "type": "shunt", "agentSocket": self.node.agent().socket() })
    }

    /// A network of the reference plugin `kind` and host-local.
    pub(crate) fn reference(&self, kind: &str) -> Network {
        let ipam = json!({
            "type": "host-local",
            "dataDir": self.node.leases(),
            "ranges": [[{ "subnet": "10.77.0.0/24" }]],
            "routes": [{ "dst": "0.0.0.0/0" }],
        });
        Network::new("pods", self.node.plugins(), json!({ "type": kind, "ipam": ipam }))
    }

    /// Adds a container, and asks every plugin of the chain whether it finds everything in place.
    pub(crate) fn add(&self, network: &Network, id: &str) -> Sandbox {
        let sandbox = self.start(network, id);
        self.check(network, &sandbox);
        sandbox
    }

    /// Adds a container.
    pub(crate) fn start(&self, network: &Network, id: &str) -> Sandbox {
        let sandbox = Sandbox::start(&self.lab, &self.node, network, id);
        sandbox.unwrap_or_else(|error| panic!("{error:#}\n{}", self.describe()))
    }

    /// CHECK, along `network`'s chain.
    pub(crate) fn check(&self, network: &Network, sandbox: &Sandbox) {
        let result = &sandbox.attachment().result;
        let checked = network.check(self.node.namespace(), sandbox.container(), result);
        checked.unwrap_or_else(|error| panic!("CHECK of {}: {error:#}\n{}", sandbox.id(), self.describe()));
    }

    /// Deletes a container, twice as runtimes do. The reference `sbr` does not like it the second time.
    pub(crate) fn remove(&self, network: &Network, sandbox: &Sandbox) {
        sandbox.delete(&self.node, network).unwrap();
        drop(sandbox.delete(&self.node, network));
    }

    /// What is on the node after one container has come and gone: bridges stay, and so do the reference plugins' empty
    /// chains.
    pub(crate) fn before(&self, network: &Network) -> Inventory {
        let sandbox = self.start(network, "before");
        self.remove(network, &sandbox);
        self.node.inventory().unwrap()
    }

    /// Nothing of any container is left. Pins go after the link that they are for, beside the agent's other work.
    pub(crate) fn assert_clean(&self, before: &Inventory) {
        let left = || self.node.inventory().unwrap().since(before);
        let begun = Instant::now();
        while !left().is_empty() && begun.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(left(), Vec::<String>::new());
        assert_eq!(self.node.agent().status().unwrap().attachments, 0);
    }

    /// Both reach each other over TCP and UDP.
    pub(crate) fn assert_talk(&self, one: &Sandbox, other: &Sandbox) {
        for (client, server) in [(one, other), (other, one)] {
            let address = server.attachment().ipv4().unwrap().into();
            self.assert_served(client.namespace(), server, SocketAddr::new(address, PORT));
        }
    }

    /// A client in `namespace` that asks for `address` gets `server`, over TCP and UDP.
    pub(crate) fn assert_served(&self, namespace: &Namespace, server: &Sandbox, address: SocketAddr) {
        let _echo = listen(server);
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let talk = Conversation::open(namespace, protocol, address);
            let talked = talk.and_then(|mut talk| talk.chat(20, 1200));
            talked.unwrap_or_else(|error| {
                panic!("{} by {address} over {protocol:?}: {error:#}\n{}", server.id(), self.describe())
            });
        }
    }

    /// Of 300 UDP messages and their answers, how many packets of `client`'s went the fast way, and how many there were.
    pub(crate) fn fast_of(&self, client: &Sandbox, server: &Sandbox) -> [u64; 2] {
        let echo = listen(server);
        let mut talk = client.talk_to(Protocol::Udp, &echo).unwrap();
        talk.say(100).unwrap();
        let before = self.port(client).from;
        talk.chat(300, 500).unwrap();
        let after = self.port(client).from;
        let fast = after.fast - before.fast;
        [fast, fast + after.kernel - before.kernel]
    }

    /// Packets between the two take the fast path, both ways.
    pub(crate) fn assert_fast(&self, one: &Sandbox, other: &Sandbox) {
        for (client, server) in [(one, other), (other, one)] {
            let [fast, all] = self.fast_of(client, server);
            assert!(all >= 300 && fast * 100 >= all * 99, "{fast} of {all} from {}", client.id());
        }
    }

    /// What the agent reports of a container.
    pub(crate) fn port(&self, sandbox: &Sandbox) -> PortReport {
        self.node.agent().port(sandbox.id()).unwrap()
    }

    fn describe(&self) -> String {
        let rules = self.node.namespace().command("nft", &["list", "ruleset"]).unwrap_or_default();
        format!("{:?}\n{rules}\n{}", self.node.agent().ports(), self.node.agent().log_tail())
    }
}

/// An echo server on [`PORT`]. A process that another test begins has our sockets too until it runs its program, so the
/// port may seem to be in use for a moment after an earlier server has gone.
pub(crate) fn listen(server: &Sandbox) -> Echo {
    let own = server.attachment().ipv4().unwrap().into();
    let begun = Instant::now();
    loop {
        match server.echo(own, PORT) {
            Ok(echo) => return echo,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(2), "{error:#}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
