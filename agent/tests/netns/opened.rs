//! Host ports that the kernel opens, as others' rules are asked who may use them: a node with a host outside, and a container with a host port.

use std::net::{IpAddr, SocketAddr};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Agent, Conversation, Namespace, Network, Protocol, Sandbox, patience};

use crate::heeded::nft;
use crate::stage::Stage;

/// The agent's file by which the kernel opens host ports whoever has rules.
pub(crate) const HEED: &str = "filters = 'heed'\nfilter_host_ports = true";

/// The node's addresses on its link to the outside, and the host's there.
pub(crate) const NODE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
pub(crate) const OUTSIDE: [&str; 2] = ["192.0.2.9", "2001:db8::9"];

/// The host port, and the container's port.
pub(crate) const HOST_PORT: u16 = 8000;
pub(crate) const INNER_PORT: u16 = 7000;

/// How long the agent may take to notice something.
pub(crate) const NOTICED: Duration = Duration::from_secs(5);

pub(crate) const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];

/// The network with a host port, of TCP and UDP.
pub(crate) fn published(network: &Network, host: u16, inner: u16) -> Network {
    let mappings =
        ["tcp", "udp"].map(|it| json!({ "hostPort": host, "containerPort": inner, "protocol": it }));
    network.clone().with("runtimeConfig", json!({ "portMappings": mappings }))
}

/// Two containers, the second of them with the host port.
pub(crate) struct Opened {
    pub(crate) stage: Stage,
    pub(crate) published: Network,
    pub(crate) outside: Namespace,
}

impl Opened {
    pub(crate) fn set(file: &str) -> Self {
        let mut opened = Self::without_host_port(file);
        opened.add("two");
        opened.stage.node.settle().unwrap();
        opened
    }

    /// The same of a network that is masqueraded.
    pub(crate) fn masqueraded(file: &str) -> Self {
        let mut stage = Stage::empty_by(file);
        stage.network = stage.network.with("ipMasq", json!(true));
        let mut opened = Self::on(stage);
        opened.add("two");
        opened.stage.node.settle().unwrap();
        opened
    }

    /// Only the first container.
    pub(crate) fn without_host_port(file: &str) -> Self {
        Self::on(Stage::empty_by(file))
    }

    fn on(mut stage: Stage) -> Self {
        let outside = stage.lab.namespace("outside").unwrap();
        stage.node.namespace().pair("up0", &outside, "eth0").unwrap();
        for (namespace, ifname, addresses) in
            [(stage.node.namespace(), "up0", NODE), (&outside, "eth0", OUTSIDE)]
        {
            for (address, length) in addresses.into_iter().zip(["24", "64"]) {
                let address = format!("{address}/{length}");
                let mut arguments = vec!["address", "add", &address, "dev", ifname];
                arguments.extend(address.contains(':').then_some("nodad"));
                namespace.command("ip", &arguments).unwrap();
            }
        }
        let published = published(&stage.network, HOST_PORT, INNER_PORT);
        stage.add("one");
        Self { stage, published, outside }
    }

    /// Adds a container with the host port.
    pub(crate) fn add(&mut self, id: &str) {
        let network = self.published.clone();
        self.add_to(&network, id);
    }

    /// Adds a container to a network.
    pub(crate) fn add_to(&mut self, network: &Network, id: &str) {
        let Stage { lab, node, sandboxes, .. } = &mut self.stage;
        let added = Sandbox::start(lab, node, network, id);
        sandboxes.push(added.unwrap_or_else(|error| panic!("{error:#}\n{}", node.agent().log_tail())));
    }

    pub(crate) fn talk(&self, from: &Namespace, protocol: Protocol, to: &str) -> Option<Conversation> {
        let to = SocketAddr::new(to.parse().unwrap(), HOST_PORT);
        Conversation::open(from, protocol, to).ok()
    }

    /// Whether one that asks is answered.
    pub(crate) fn is_answered(&self, from: &Namespace, protocol: Protocol, to: &str) -> bool {
        self.talk(from, protocol, to).is_some_and(|mut talk| talk.chat(1, 100).is_ok())
    }

    /// Whether our rules lead packets.
    pub(crate) fn is_led(&self) -> bool {
        let listed =
            self.stage.node.namespace().command("nft", &["list", "chain", "inet", "shunt", "prerouting"]);
        listed.is_ok_and(|listed| listed.contains("dnat ip"))
    }

    /// Waits until the kernel opens the host port, or the programs do.
    pub(crate) fn until_opened(&self, by_kernel: bool) {
        let is_so = |agent: &Agent| {
            let mappings = agent.ask("mappings").unwrap();
            mappings.as_array().expect("mappings").iter().all(|mapping| mapping["kernel"] == by_kernel)
        };
        self.until("who opens", || is_so(self.stage.node.agent()) && self.is_led() == by_kernel);
    }

    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        self.until_within(NOTICED, what, is_so);
    }

    /// The same of what is looked at each fifth second only.
    pub(crate) fn until_later(&self, what: &str, is_so: impl Fn() -> bool) {
        self.until_within(3 * NOTICED, what, is_so);
    }

    fn until_within(&self, time: Duration, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < patience(time), "{what}: {}", self.stage.node.agent().log_tail());
            sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.stage.node.agent().status().unwrap().warnings
    }

    pub(crate) fn v4(&self, index: usize) -> IpAddr {
        self.stage.sandboxes[index].addresses()[0]
    }
}

/// An operator's own translation of the host port, at the priority that they are at by custom, from outside and from the node.
fn operators(to: IpAddr) -> String {
    let rule = format!("meta l4proto {{ tcp, udp }} th dport {HOST_PORT} dnat ip to {to}:7009");
    format!(
        "table ip operator {{ chain pre {{ type nat hook prerouting priority -100; {rule}; }};
            chain out {{ type nat hook output priority -100; {rule}; }}; }}"
    )
}

#[test]
fn an_operators_own_translation_of_a_host_port_wins_and_is_named() {
    let mut opened = Opened::without_host_port(HEED);
    let one = opened.v4(0);
    nft(&opened.stage, &operators(one));
    let _theirs = opened.stage.sandboxes[0].echo(one, 7009).unwrap();
    opened.add("two");
    opened.stage.node.settle().unwrap();
    opened.until_opened(true);
    let theirs = "the chain pre of the table operator may translate host ports before shunt does";
    assert!(opened.warnings().iter().any(|warning| warning.contains(theirs)), "{:?}", opened.warnings());
    let log = opened.stage.node.agent().log_tail();
    assert!(log.contains(theirs), "the ADD names it: {log}");
    for protocol in BOTH {
        for from in [&opened.outside, opened.stage.node.namespace()] {
            assert!(opened.is_answered(from, protocol, NODE[0]), "{protocol:?}: by theirs alone");
        }
    }
    nft(&opened.stage, "delete table ip operator");
    assert_eq!(opened.warnings(), Vec::<String>::new());
    let _ours = opened.stage.sandboxes[1].echo(opened.v4(1), INNER_PORT).unwrap();
    for protocol in BOTH {
        for from in [&opened.outside, opened.stage.node.namespace()] {
            assert!(opened.is_answered(from, protocol, NODE[0]), "{protocol:?}: by ours");
        }
    }
}
