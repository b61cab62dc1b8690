//! A node with a link to a host outside, and three containers, of which `two` has host ports: with shunt, or with the reference's `bridge` and `portmap`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Echo, Lab, Namespace, Network, Node, Sandbox, patience};

use crate::tellers::Tellers;
use crate::trial::PRELUDE;

/// The node's addresses on its link to the outside, and the host's there.
pub(crate) const NODE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
pub(crate) const OUTSIDE: [&str; 2] = ["192.0.2.9", "2001:db8::9"];

/// Host ports, and where they lead: to `two`. At the last one nobody listens.
pub(crate) const PORTS: [(u16, u16); 2] = [(8000, 7000), (8001, 7001)];
pub(crate) const CLOSED: (u16, u16) = (8002, 7002);

/// Anybody may ask for echoes, and no error is left out for its rate.
const SETTINGS: [(&str, &str); 3] = [
    ("net/ipv4/ping_group_range", "0 2147483647"),
    ("net/ipv4/icmp_ratelimit", "0"),
    ("net/ipv6/icmp/ratelimit", "0"),
];

/// The containers, by their place.
pub(crate) const NAMES: [&str; 3] = ["one", "two", "three"];

/// How long a table that somebody has taken away may be gone, and how long the agent may take to change who opens.
const RETURN: Duration = Duration::from_secs(5);

/// The reference's rules, as its `portmap` has made them, by legacy iptables: there no `nft flush ruleset` takes them away.
const BY_LEGACY: &str = "for it in iptables ip6tables; do
    saved=$($it-nft-save -t nat); $it-nft -t nat -F; echo \"$saved\" | $it-legacy-restore; done; nft flush ruleset";

/// Gives the link between a node and a host outside its addresses.
fn address(node: &Namespace, outside: &Namespace) {
    for (namespace, ifname, addresses) in [(node, "up0", NODE), (outside, "eth0", OUTSIDE)] {
        for (address, length) in addresses.into_iter().zip(["24", "64"]) {
            let address = format!("{address}/{length}");
            let mut arguments = vec!["address", "add", &address, "dev", ifname];
            arguments.extend(address.contains(':').then_some("nodad"));
            namespace.command("ip", &arguments).unwrap();
        }
    }
}

/// The network with the host ports of [`PORTS`] and [`CLOSED`].
fn mapped(network: &Network, is_ours: bool) -> Network {
    let of = |(host, inner): &(u16, u16)| {
        ["tcp", "udp", "sctp"].map(|it| json!({ "hostPort": host, "containerPort": inner, "protocol": it }))
    };
    let mappings: Vec<_> = PORTS.iter().chain([&CLOSED]).flat_map(of).collect();
    let config = json!({ "portMappings": mappings });
    if is_ours {
        return network.clone().with("runtimeConfig", config);
    }
    let capabilities = json!({ "portMappings": true });
    network.clone().then(json!({ "type": "portmap", "capabilities": capabilities, "runtimeConfig": config }))
}

/// A node, a host outside, and containers. Fields are dropped in their order.
pub(crate) struct Side {
    echoes: Vec<Echo>,
    tellers: Vec<Tellers>,
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) network: Network,
    pub(crate) outside: Namespace,
    pub(crate) node: Node,
    is_ours: bool,
    lab: Lab,
}

impl Side {
    /// With this file for the agent; the reference without one.
    pub(crate) fn start(file: Option<&str>) -> Self {
        Self::of(file, false)
    }

    /// The same of a network that is masqueraded.
    pub(crate) fn masqueraded(file: Option<&str>) -> Self {
        Self::of(file, true)
    }

    fn of(file: Option<&str>, is_masqueraded: bool) -> Self {
        let is_ours = file.is_some();
        let lab = Lab::new().unwrap();
        let subnets = ["10.77.0.0/24", "fd77::/64"];
        let (node, network) = if let Some(file) = file {
            let node = Node::start_by(&lab, "node", file).unwrap();
            let network = node.network("pods", "cni0", &subnets);
            (node, network)
        } else {
            let node = Node::bare(&lab, "node").unwrap();
            let network = node.reference_network("pods", "cni0", &subnets);
            (node, network)
        };
        let network = network.with("ipMasq", json!(is_masqueraded));
        let outside = lab.namespace("outside").unwrap();
        node.namespace().pair("up0", &outside, "eth0").unwrap();
        address(node.namespace(), &outside);
        let mapped = mapped(&network, is_ours);
        let sandboxes: Vec<_> = NAMES
            .into_iter()
            .zip([&network, &mapped, &network])
            .map(|(id, network)| Sandbox::start(&lab, &node, network, id).unwrap())
            .collect();
        node.settle().unwrap();
        let (echoes, tellers) = (Vec::new(), Vec::new());
        let side = Self { echoes, tellers, sandboxes, network: mapped, outside, node, is_ours, lab };
        side.allow_echoes_and_errors();
        if !is_ours {
            side.run(BY_LEGACY);
        }
        side
    }

    fn allow_echoes_and_errors(&self) {
        for name in [&NAMES[..], &["node", "outside"]].concat() {
            SETTINGS.iter().for_each(|(setting, value)| self.client(name).sysctl(setting, value).unwrap());
        }
    }

    /// The same, and where the host ports lead everything is sent back.
    pub(crate) fn with_echoes(mut self) -> Self {
        let two = &self.sandboxes[1];
        let ports = two.addresses().into_iter().flat_map(|ip| PORTS.map(|(_, inner)| (ip, inner)));
        self.echoes.extend(ports.map(|(ip, port)| two.echo(ip, port).unwrap()));
        self
    }

    /// The same, and whoever asks there or the host outside is told as whom.
    pub(crate) fn with_tellers(mut self) -> Self {
        let two = &self.sandboxes[1];
        let ports = PORTS.map(|(_, inner)| inner);
        self.tellers.push(Tellers::start(two.namespace(), &two.addresses(), &ports));
        let beyond: [IpAddr; 2] = OUTSIDE.map(|ip| ip.parse().unwrap());
        self.tellers.push(Tellers::start(&self.outside, &beyond, &ports));
        self
    }

    /// Runs a shell's script in the node, and waits until what is ours is there.
    pub(crate) fn run(&self, script: &str) {
        self.run_alone(script);
        let begun = Instant::now();
        while self.is_ours && !self.leads() {
            assert!(begun.elapsed() < patience(RETURN), "{}", self.node.agent().log_tail());
            sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn run_alone(&self, script: &str) {
        let mut script = format!("IPT=nft; {PRELUDE}{script}");
        for (at, name) in NAMES.into_iter().enumerate() {
            let [v4, v6] = <[IpAddr; 2]>::try_from(self.sandboxes[at].addresses()).expect("two addresses");
            for (word, value) in [("4", v4.to_string()), ("6", v6.to_string()), ("", self.host_end(at))] {
                script = script.replace(&format!("@{name}{word}"), &value);
            }
        }
        let run = || Command::new("sh").args(["-ec", &script]).output().expect("a shell runs");
        let done = self.node.namespace().enter(run).unwrap();
        assert!(done.status.success(), "{script}\n{}", String::from_utf8_lossy(&done.stderr));
    }

    /// The name of a container's interface in the node.
    fn host_end(&self, at: usize) -> String {
        let result = &self.sandboxes[at].attachment().result;
        let mut ends = result["interfaces"].as_array().expect("interfaces").iter();
        let is_host = |it: &&Value| it["sandbox"].as_str().is_none_or(str::is_empty) && it["name"] != "cni0";
        ends.find(is_host).and_then(|it| it["name"].as_str()).expect("a host end").to_owned()
    }

    /// Whether our rules are there.
    pub(crate) fn leads(&self) -> bool {
        let listed = self.node.namespace().command("nft", &["list", "chain", "inet", "shunt", "prerouting"]);
        listed.is_ok_and(|listed| listed.contains("dnat"))
    }

    /// Waits until all host ports are opened by the kernel, or none.
    pub(crate) fn until_opened(&self, by_kernel: bool) {
        let begun = Instant::now();
        loop {
            let mappings = self.node.agent().ask("mappings").unwrap();
            let all = mappings.as_array().expect("mappings");
            if all.iter().all(|mapping| mapping["kernel"] == by_kernel) {
                return;
            }
            assert!(begun.elapsed() < patience(RETURN), "{mappings}\n{}", self.node.agent().log_tail());
            sleep(Duration::from_millis(20));
        }
    }

    /// The path of a file.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.lab.root().join(name)
    }

    /// One more namespace.
    pub(crate) fn namespace(&self, name: &str) -> Namespace {
        self.lab.namespace(name).unwrap()
    }

    /// A container by its name, the node, or the host outside.
    pub(crate) fn client(&self, name: &str) -> &Namespace {
        match NAMES.into_iter().position(|it| it == name) {
            Some(at) => self.sandboxes[at].namespace(),
            None if name == "node" => self.node.namespace(),
            None => &self.outside,
        }
    }
}
