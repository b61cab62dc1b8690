//! Host ports under others' rules: the same questions to a node with shunt, whose agent heeds rules, and to one with the reference's `bridge` and `portmap`, from
//! outside, from a neighbour, from the node itself and from the container that the port leads to.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Conversation, Echo, Lab, Namespace, Network, Node, Protocol, Sandbox, patience};

use crate::rules::published::{self, REFUSES};
use crate::rules::{engines, iptables, states, who};
use crate::same::lacks_reference;
use crate::trial::{PRELUDE, RuleSet};

/// The node's addresses on its link to the outside, and the host's there.
const NODE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
const OUTSIDE: [&str; 2] = ["192.0.2.9", "2001:db8::9"];

/// Host ports, and where they lead: to `two`.
const PORTS: [(u16, u16); 2] = [(8000, 7000), (8001, 7001)];

/// Who asks: the containers by their place, the node, and a host outside.
const CLIENTS: [&str; 4] = ["one", "two", "node", "outside"];

/// How long an answer may take; what is refused is waited for in vain.
const ANSWER: Duration = Duration::from_millis(400);

/// How long a table that somebody has taken away may be gone.
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

/// The network with the host ports of [`PORTS`].
fn mapped(network: &Network, is_ours: bool) -> Network {
    let of = |(host, inner): &(u16, u16)| {
        ["tcp", "udp"].map(|it| json!({ "hostPort": host, "containerPort": inner, "protocol": it }))
    };
    let mappings: Vec<_> = PORTS.iter().flat_map(of).collect();
    let config = json!({ "portMappings": mappings });
    if is_ours {
        return network.clone().with("runtimeConfig", config);
    }
    let capabilities = json!({ "portMappings": true });
    network.clone().then(json!({ "type": "portmap", "capabilities": capabilities, "runtimeConfig": config }))
}

/// A node, a host outside, and containers.
struct Side {
    _echoes: Vec<Echo>,
    sandboxes: Vec<Sandbox>,
    network: Network,
    outside: Namespace,
    node: Node,
    is_ours: bool,
    _lab: Lab,
}

impl Side {
    fn start(file: Option<&str>) -> Self {
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
        let outside = lab.namespace("outside").unwrap();
        node.namespace().pair("up0", &outside, "eth0").unwrap();
        address(node.namespace(), &outside);
        let mapped = mapped(&network, is_ours);
        let sandboxes: Vec<_> = [("one", &network), ("two", &mapped), ("three", &network)]
            .map(|(id, network)| Sandbox::start(&lab, &node, network, id).unwrap())
            .into();
        node.settle().unwrap();
        let two = &sandboxes[1];
        let ports = two.addresses().into_iter().flat_map(|ip| PORTS.map(|(_, inner)| (ip, inner)));
        let echoes = ports.map(|(ip, port)| two.echo(ip, port).unwrap()).collect();
        let side = Self { _echoes: echoes, sandboxes, network: mapped, outside, node, is_ours, _lab: lab };
        if !is_ours {
            side.run(BY_LEGACY);
        }
        side
    }

    /// Runs a shell's script in the node, and waits until what is ours is there.
    fn run(&self, script: &str) {
        self.run_alone(script);
        let begun = Instant::now();
        while self.is_ours && !self.leads() {
            assert!(begun.elapsed() < patience(RETURN), "{}", self.node.agent().log_tail());
            sleep(Duration::from_millis(20));
        }
    }

    fn run_alone(&self, script: &str) {
        let mut script = format!("IPT=nft; {PRELUDE}{script}");
        for (at, name) in ["one", "two", "three"].into_iter().enumerate() {
            let result = &self.sandboxes[at].attachment().result;
            let ends = result["interfaces"].as_array().expect("interfaces");
            let is_host = |it: &&serde_json::Value| {
                it["sandbox"].as_str().is_none_or(str::is_empty) && it["name"] != "cni0"
            };
            let host = ends.iter().find(is_host).and_then(|it| it["name"].as_str()).expect("a host end");
            let [v4, v6] = <[IpAddr; 2]>::try_from(self.sandboxes[at].addresses()).expect("two addresses");
            for (word, value) in [("4", v4.to_string()), ("6", v6.to_string()), ("", host.to_owned())] {
                script = script.replace(&format!("@{name}{word}"), &value);
            }
        }
        let run = || Command::new("sh").args(["-ec", &script]).output().expect("a shell runs");
        let done = self.node.namespace().enter(run).unwrap();
        assert!(done.status.success(), "{script}\n{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Whether our rules are there.
    fn leads(&self) -> bool {
        let listed = self.node.namespace().command("nft", &["list", "chain", "inet", "shunt", "prerouting"]);
        listed.is_ok_and(|listed| listed.contains("dnat"))
    }

    fn client(&self, name: &str) -> &Namespace {
        match name {
            "one" => self.sandboxes[0].namespace(),
            "two" => self.sandboxes[1].namespace(),
            "node" => self.node.namespace(),
            _ => &self.outside,
        }
    }

    /// What is answered of all questions.
    fn answered(&self) -> Vec<String> {
        let mut asked = Vec::new();
        for client in CLIENTS {
            for to in NODE {
                for (port, _) in PORTS {
                    for protocol in [Protocol::Tcp, Protocol::Udp] {
                        asked.push((client, to, port, protocol));
                    }
                }
            }
        }
        scope(|threads| {
            let ask = |(client, to, port, protocol): (&'static str, &'static str, u16, Protocol)| {
                threads.spawn(move || {
                    let to = SocketAddr::new(to.parse().unwrap(), port);
                    let is_answered = self.client(client).enter(|| is_answered(protocol, to)).unwrap();
                    is_answered.then(|| format!("{client} → {to} by {protocol:?}"))
                })
            };
            let asking: Vec<_> = asked.into_iter().map(ask).collect();
            asking.into_iter().filter_map(|it| it.join().unwrap()).collect()
        })
    }
}

fn is_answered(protocol: Protocol, to: SocketAddr) -> bool {
    let ask = || -> std::io::Result<()> {
        let mut heard = [0; 4];
        match protocol {
            Protocol::Tcp => {
                let mut stream = TcpStream::connect_timeout(&to, patience(ANSWER))?;
                stream.set_read_timeout(Some(patience(ANSWER)))?;
                stream.write_all(b"word")?;
                stream.read_exact(&mut heard)
            }
            Protocol::Udp => {
                let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.set_read_timeout(Some(patience(ANSWER)))?;
                // Unconnected: an answer by another name is none.
                socket.send_to(b"word", to)?;
                let (_, from) = socket.recv_from(&mut heard)?;
                if from == to { Ok(()) } else { Err(std::io::Error::other("another name")) }
            }
        }
    };
    ask().is_ok()
}

/// What differs under these rule sets and their changes.
fn differences(sets: &[RuleSet]) -> Vec<String> {
    let sides = [Side::start(Some("filters = 'heed'\nfilter_host_ports = true")), Side::start(None)];
    let mut found = Vec::new();
    for set in sets {
        let scripts = [&["clear", set.rules][..], set.changes].concat();
        for (at, script) in scripts.iter().enumerate() {
            sides.iter().for_each(|side| side.run(script));
            let [ours, reference] = scope(|threads| {
                sides.each_ref().map(|side| threads.spawn(|| side.answered())).map(|it| it.join().unwrap())
            });
            let more = ours.iter().filter(|it| !reference.contains(it)).map(|it| format!("+ {it}"));
            let less = reference.iter().filter(|it| !ours.contains(it)).map(|it| format!("- {it}"));
            found.extend(more.chain(less).map(|it| format!("{} ({at}): {it}", set.name)));
            println!("{} ({at}): {} of 32 answered", set.name, reference.len());
        }
    }
    found
}

fn same(sets: &[RuleSet]) {
    if lacks_reference() {
        return;
    }
    let wanted = std::env::var("SHUNT_RULE_SET").unwrap_or_default();
    let sets: Vec<RuleSet> = sets.iter().filter(|set| set.name.contains(&wanted)).copied().collect();
    let found = differences(&sets);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn host_ports_meet_rules_as_behind_portmap() {
    same(published::SETS);
}

#[test]
#[ignore = "takes minutes: --ignored"]
fn host_ports_meet_rules_of_states_and_addresses_as_behind_portmap() {
    same(&[states::SETS, who::SETS].concat());
}

#[test]
#[ignore = "takes minutes: --ignored"]
fn host_ports_meet_rules_of_iptables_and_engines_as_behind_portmap() {
    same(&[iptables::SETS, engines::SETS].concat());
}

const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];

impl Side {
    fn talk(&self, client: &str, protocol: Protocol, to: &str) -> Conversation {
        let to = SocketAddr::new(to.parse().unwrap(), 8000);
        Conversation::open(self.client(client), protocol, to).unwrap()
    }

    /// Conversations of both families and protocols, by which something was said.
    fn talks(&self) -> Vec<Conversation> {
        let clients = ["outside", "one", "node"].into_iter();
        let ways = clients.flat_map(|client| NODE.map(|to| (client, to)));
        let mut all: Vec<_> =
            ways.flat_map(|(client, to)| BOTH.map(|protocol| self.talk(client, protocol, to))).collect();
        go_on(&mut all, "opened");
        all
    }

    /// Waits until all host ports are opened by the kernel, or none.
    fn until_opened(&self, by_kernel: bool) {
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

    fn warnings(&self) -> Vec<String> {
        self.node.agent().status().unwrap().warnings
    }
}

fn go_on(all: &mut [Conversation], when: &str) {
    for (at, conversation) in all.iter_mut().enumerate() {
        conversation.chat(10, 100).unwrap_or_else(|error| panic!("{when}, {at}: {error:#}"));
    }
}

/// Somebody adds a first rule, and takes it away again: who opens changes, and no connection is lost.
#[test]
fn who_opens_host_ports_changes_without_a_loss() {
    let mut side = Side::start(Some("filters = 'auto'\nfilter_host_ports = true"));
    side.until_opened(false);
    assert!(!side.leads(), "nobody has rules: nothing is tracked");
    let mut programs = side.talks();
    side.run_alone(REFUSES);
    side.until_opened(true);
    assert_eq!(side.warnings(), Vec::<String>::new(), "nothing is bypassed");
    go_on(&mut programs, "by the programs, with rules");
    let mut kernels = side.talks();
    let refused = SocketAddr::new(NODE[0].parse().unwrap(), 8001);
    for protocol in BOTH {
        assert!(!side.outside.enter(|| is_answered(protocol, refused)).unwrap(), "{protocol:?}");
    }
    side.node.agent_mut().kill().unwrap();
    go_on(&mut kernels, "by the kernel, without an agent");
    side.node.restart_agent().unwrap();
    side.until_opened(true);
    go_on(&mut programs, "by the programs, after another start");
    go_on(&mut kernels, "by the kernel, after another start");
    side.run_alone("nft delete table inet engine");
    side.until_opened(false);
    go_on(&mut programs, "by the programs, to the end");
    go_on(&mut kernels, "by the kernel, to the end");
    let mut last = side.talks();
    for protocol in BOTH {
        assert!(side.outside.enter(|| is_answered(protocol, refused)).unwrap(), "{protocol:?}");
    }
    side.node.agent_mut().kill().unwrap();
    side.node.restart_agent().unwrap();
    for (all, whose) in [(&mut programs, "programs"), (&mut kernels, "kernel"), (&mut last, "programs again")]
    {
        go_on(all, whose);
    }
}

/// Our rules go with the container, and with the agent.
#[test]
fn nothing_is_left_of_what_opens_host_ports() {
    let side = Side::start(Some("filters = 'heed'\nfilter_host_ports = true"));
    assert!(side.leads());
    let network = side.network.clone();
    side.sandboxes[1].delete(&side.node, &network).unwrap();
    assert!(!side.leads());
    let listed = side.node.namespace().command("nft", &["list", "ruleset"]).unwrap();
    assert!(!listed.contains("7000"), "{listed}");
}
