//! A node whose first uplink leads to a host outside, and what fills it.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use shunt_agent_api::BridgePort;
use shunt_lab::Namespace;

use crate::cluster::Cluster;
use crate::traffic::{Flood, sink};

/// What the claim has, bits a second, and what the uplink sends at most.
pub(crate) const CLAIM: f64 = 300e6;
pub(crate) const UPLINK: f64 = 1e9;

pub(crate) const GUARANTEE: &str = "guarantee = true";

/// A node whose first uplink leads to a host outside.
pub(crate) struct Full {
    pub(crate) cluster: Cluster,
    pub(crate) outside: Namespace,
}

impl Full {
    pub(crate) fn new(of_uplink: &str) -> Self {
        let cluster = Cluster::start_of("", of_uplink);
        let outside = cluster.rig.lab.namespace("outside").unwrap();
        cluster.rig.ip(&["link", "set", "peer1", "netns", outside.path().to_str().unwrap()]);
        cluster.rig.ip(&["addr", "add", "192.0.2.1/24", "dev", "eth1"]);
        for arguments in [
            &["addr", "add", "192.0.2.2/24", "dev", "peer1"][..],
            &["link", "set", "peer1", "up"],
            &["route", "add", "10.88.0.0/24", "via", "192.0.2.1"],
        ] {
            outside.command("ip", arguments).unwrap();
        }
        cluster.rig.node.sysctl("net/ipv4/ip_forward", "1").unwrap();
        Self { cluster, outside }
    }

    /// A container of a pod with a way out; masqueraded by the programs, or routed by the kernel.
    pub(crate) fn container(&mut self, number: u8, pod: &str, is_masqueraded: bool) -> BridgePort {
        let mut port = self.cluster.container(number, pod);
        let namespace = self.cluster.rig.containers.last().unwrap();
        namespace.command("ip", &["route", "add", "default", "via", "10.88.0.1"]).unwrap();
        if is_masqueraded {
            port.masquerade = vec!["10.88.0.0/24".into()];
        }
        self.cluster.rig.attach(&port).unwrap();
        port
    }

    pub(crate) fn claimed(&mut self, is_masqueraded: bool) -> BridgePort {
        self.cluster.prepared("wire", "web", ["300M", "300M"]);
        self.container(2, "web", is_masqueraded)
    }

    pub(crate) fn inside(&self, which: usize) -> &Namespace {
        &self.cluster.rig.containers[which]
    }

    pub(crate) fn at(&self, port: u16) -> (&Namespace, SocketAddr) {
        (&self.outside, SocketAddr::from(([192, 0, 2, 2], port)))
    }

    /// Two unlimited containers and the node itself send more than the uplink takes.
    pub(crate) fn fill(&mut self, is_masqueraded: bool) -> (UdpSocket, Vec<Flood>) {
        let sink = sink(&self.outside, 9);
        for (number, pod) in [(3, "one"), (4, "two")] {
            if self.cluster.rig.containers.len() < usize::from(number) - 1 {
                self.container(number, pod, is_masqueraded);
            }
        }
        let of = [self.inside(1), self.inside(2), &self.cluster.rig.node];
        (sink, of.map(|from| Flood::start(from, self.at(9).1, 600_000_000)).into())
    }

    /// What arrives outside, bits of frames a second.
    pub(crate) fn arriving(&self) -> f64 {
        let bytes = || {
            let text = self.outside.command("ip", &["-j", "-s", "link", "show", "dev", "peer1"]);
            let shown: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
            shown[0]["stats64"]["rx"]["bytes"].as_u64().unwrap()
        };
        let (before, begun) = (bytes(), std::time::Instant::now());
        std::thread::sleep(Duration::from_secs(2));
        (bytes() - before) as f64 * 8.0 / begun.elapsed().as_secs_f64()
    }

    pub(crate) fn nft(&self, command: &str) -> String {
        self.cluster.rig.node.command("nft", &[command]).unwrap()
    }

    /// The class of the only claim.
    pub(crate) fn claimed_class(&self) -> String {
        self.sent().into_keys().find(|class| !class.contains("fff")).unwrap()
    }

    /// Packets that each class has sent.
    pub(crate) fn sent(&self) -> BTreeMap<String, u64> {
        let shown = self.tc(&["-s", "class", "show", "dev", "eth1"]);
        let mut words = shown.split_whitespace().skip_while(|word| *word != "htb");
        let mut sent = BTreeMap::new();
        while let (Some("htb"), Some(class)) = (words.next(), words.next()) {
            let mut rest = words.by_ref().skip_while(|word| *word != "bytes").skip(1);
            sent.insert(class.to_owned(), rest.next().unwrap().parse().unwrap());
            words.by_ref().find(|word| *word == "class");
        }
        sent
    }

    pub(crate) fn tc(&self, arguments: &[&str]) -> String {
        self.cluster.rig.node.command("tc", arguments).unwrap()
    }

    /// The classes in order, without what the kernel numbers as it likes.
    pub(crate) fn classes(&self) -> String {
        let shown = self.tc(&["class", "show", "dev", "eth1"]);
        let numbered = |word: &&str| word.ends_with(':') || *word == "leaf";
        let without = |line: &str| {
            let words = line.split_whitespace().filter(|word| !numbered(word));
            words.collect::<Vec<_>>().join(" ")
        };
        let mut lines: Vec<_> = shown.lines().map(without).collect();
        lines.sort();
        lines.join("\n")
    }

    pub(crate) fn root(&self) -> String {
        self.tc(&["qdisc", "show", "dev", "eth1", "root"])
    }
}
