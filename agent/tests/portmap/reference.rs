//! The same questions to a node of ours and to one of the reference `bridge` and `portmap` with iptables: who answers on
//! which address and port, and whom does the container see? Not asked is for `[::1]`, where the reference answers nobody.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use shunt_lab::{Attachment, Container, Lab, Lacking, Namespace, Network, Node, Protocol, skip};

use crate::stage::{GATEWAY, NODE, OUTSIDE, address, give, join, mapping};
use crate::who::{Server, ask_tcp, ask_udp};

const PATIENCE: Duration = Duration::from_secs(10);

/// Host ports of every address, of the node's IPv4 and of its IPv6 address only, of every IPv4 and of every IPv6 address
/// only, of both of these, of the loopback's, and one that leads nowhere.
const PORTS: [u16; 8] = [8080, 8081, 8082, 8084, 8085, 8086, 8087, 8083];
const ANY: [&str; 2] = ["0.0.0.0", "::"];

/// Prefixes that are the node's by route, with an address of each.
const BY_ROUTE: [(&str, &str); 2] = [("203.0.113.0/24", "203.0.113.7"), ("2001:db8:a::/48", "2001:db8:a::7")];

/// Whom the server saw, if it was asked at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Client,
    /// By this address; of who asks at the node itself that is not told.
    Node(Option<IpAddr>),
    Somebody(IpAddr),
    Nobody,
}

/// Who asks.
const CLIENTS: [&str; 5] = ["outside", "node", "itself", "neighbour", "other bridge"];

/// One question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Question {
    client: usize,
    to: SocketAddr,
    protocol: Protocol,
}

/// A node with an uplink, a server that host ports lead to, a neighbour of its, and a container on another bridge.
struct Side {
    _server: Server,
    containers: [(Container, Attachment); 3],
    node: Node,
    outside: Namespace,
    _lab: Lab,
}

impl Side {
    /// `keys` are portmap's own.
    fn new(is_reference: bool, keys: &Value) -> Self {
        let lab = Lab::new().unwrap();
        let node = if is_reference { Node::bare(&lab, "node") } else { Node::start(&lab, "node") }.unwrap();
        let outside = lab.namespace("outside").unwrap();
        join(&node, "up0", &outside, "eth0");
        for (namespace, ifname, addresses) in [(node.namespace(), "up0", NODE), (&outside, "eth0", OUTSIDE)] {
            for (address, length) in addresses.into_iter().zip(["24", "64"]) {
                give(namespace, ifname, &format!("{address}/{length}"));
            }
        }
        for ((prefix, _), by) in BY_ROUTE.into_iter().zip(NODE) {
            node.namespace().command("ip", &["route", "add", "local", prefix, "dev", "lo"]).unwrap();
            outside.command("ip", &["route", "add", prefix, "via", by]).unwrap();
        }
        // A refusal that is not sent would be waited for, and so would an address that is probed.
        for (name, value) in [
            ("net/ipv4/icmp_ratelimit", "0"),
            ("net/ipv6/icmp/ratelimit", "0"),
            ("net/ipv6/conf/default/accept_dad", "0"),
        ] {
            node.namespace().sysctl(name, value).unwrap();
        }
        let network = |name, bridge, subnets: [&str; 2]| {
            if is_reference {
                node.reference_network(name, bridge, &subnets)
            } else {
                node.network(name, bridge, &subnets)
            }
        };
        // The reference sends what a container asks of itself back to the port that it came from.
        let pods = network("pods", "cni0", ["10.77.0.0/24", "fd77::/64"]).with("hairpinMode", json!(true));
        let others = network("others", "cni1", ["10.78.0.0/24", "fd78::/64"]);
        let wanted = json!({ "portMappings": mappings() });
        let mut portmap = json!({ "type": "portmap", "capabilities": { "portMappings": true },
            "runtimeConfig": wanted });
        portmap.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        let mapped = if is_reference {
            pods.clone().then(portmap)
        } else if keys == &json!({}) {
            pods.clone().with("runtimeConfig", wanted)
        } else {
            portmap["type"] = json!("shunt-portmap");
            portmap["agentSocket"] = json!(node.agent().socket());
            pods.clone().then(portmap)
        };
        let containers = [("server", &mapped), ("neighbour", &pods), ("other", &others)]
            .map(|(id, network)| start(&lab, &node, network, id));
        node.settle().unwrap();
        let server = Server::start(containers[0].0.namespace(), &containers[0].1.addresses());
        Self { _server: server, containers, node, outside, _lab: lab }
    }

    fn ask(&self, question: &Question) -> Seen {
        let container = |at: usize| (self.containers[at].0.namespace(), self.containers[at].1.addresses());
        let (namespace, own) = match question.client {
            0 => (&self.outside, OUTSIDE.map(address).to_vec()),
            1 => (self.node.namespace(), Vec::new()),
            itself => container(itself - 2),
        };
        let by_route = BY_ROUTE.map(|(_, address)| address);
        let of_node =
            |seen| NODE.into_iter().chain(GATEWAY).chain(by_route).any(|node| address(node) == seen);
        let asked = || match question.protocol {
            Protocol::Tcp => ask_tcp(question.to, PATIENCE),
            Protocol::Udp => ask_udp(question.to, PATIENCE).unwrap_or_else(|error| {
                panic!("neither an answer of {} nor a refusal: {error}", question.to)
            }),
        };
        match namespace.enter(asked).unwrap() {
            None => Seen::Nobody,
            Some(seen) if own.contains(&seen) => Seen::Client,
            Some(seen) if of_node(seen) => {
                // There the programs choose before the kernel has chosen an address.
                Seen::Node(Some(seen).filter(|_| CLIENTS[question.client] != "node"))
            }
            Some(seen) => Seen::Somebody(seen),
        }
    }
}

fn start(lab: &Lab, node: &Node, network: &Network, id: &str) -> (Container, Attachment) {
    let container = Container::create(lab, id).unwrap();
    container.namespace().sysctl("net/ipv6/conf/default/accept_dad", "0").unwrap();
    let attachment =
        network.add(node.namespace(), &container).unwrap_or_else(|error| panic!("{id}: {error:#}"));
    (container, attachment)
}

fn mappings() -> Vec<Value> {
    let mut mappings = Vec::new();
    for protocol in ["tcp", "udp"] {
        let hosts = [NODE[0], NODE[1], ANY[0], ANY[1], ANY[0], "127.0.0.1"].map(Some);
        let hosts = [None].into_iter().chain(hosts);
        for (port, host) in PORTS.into_iter().zip(hosts).chain([(PORTS[5], Some(ANY[1]))]) {
            let mut mapping = mapping(port, 7000, protocol);
            if let Some(host) = host {
                mapping["hostIP"] = host.into();
            }
            mappings.push(mapping);
        }
    }
    mappings
}

/// The same of addresses that are the node's by route only.
fn questions_by_route() -> impl Iterator<Item = Question> {
    (0..CLIENTS.len()).flat_map(|client| {
        BY_ROUTE.into_iter().flat_map(move |(_, to)| {
            PORTS.into_iter().flat_map(move |port| {
                let to = SocketAddr::new(address(to), port);
                [Protocol::Tcp, Protocol::Udp].map(|protocol| Question { client, to, protocol })
            })
        })
    })
}

fn questions() -> impl Iterator<Item = Question> {
    let of_node = [NODE[0], NODE[1], GATEWAY[0], GATEWAY[1]];
    let by_client = CLIENTS.into_iter().enumerate().map(move |(client, name)| {
        let addresses = match name {
            "outside" => of_node[..2].to_vec(),
            "node" => of_node.into_iter().chain(["127.0.0.1"]).collect(),
            _ => of_node.to_vec(),
        };
        (client, addresses)
    });
    by_client.flat_map(|(client, addresses)| {
        addresses.into_iter().flat_map(move |to| {
            PORTS.into_iter().flat_map(move |port| {
                let to = SocketAddr::new(address(to), port);
                [Protocol::Tcp, Protocol::Udp].map(|protocol| Question { client, to, protocol })
            })
        })
    })
}

/// Asks both sides everything of `questions`; how often the client, the node and nobody was seen. None without the reference.
fn same_answers(keys: &Value, questions: impl Iterator<Item = Question>) -> Option<[usize; 3]> {
    if !Path::new("/usr/lib/cni/portmap").is_file() {
        skip(Lacking::Package("containernetworking-plugins"));
        return None;
    }
    let [ours, reference] = [false, true].map(|is_reference| Side::new(is_reference, keys));
    let (mut differ, mut counts) = (Vec::new(), [0; 3]);
    for question in questions {
        let [own, other] = [&ours, &reference].map(|side| side.ask(&question));
        if own != other {
            differ.push(format!("{} {question:?}: {own:?}, reference {other:?}", CLIENTS[question.client]));
        }
        counts[match own {
            Seen::Client => 0,
            Seen::Node(_) => 1,
            _ => 2,
        }] += 1;
    }
    assert!(differ.is_empty(), "{keys}:\n{}", differ.join("\n"));
    Some(counts)
}

#[test]
fn whoever_asks_the_same_answers_as_with_the_reference_and_sees_the_same_client() {
    let Some(counts) = same_answers(&json!({}), questions()) else { return };
    // Outside and from the other bridge, each address of the node by its four ports and each gateway by three, over both
    // protocols: the client itself. From the node, with the loopback's own port, the server and its neighbour: the node.
    assert_eq!(counts, [16 + 28, 34 + 2 + 28 + 28, 304 - 136]);
}

#[test]
fn what_is_the_nodes_by_route_is_answered_as_with_the_reference() {
    let Some(counts) = same_answers(&json!({}), questions_by_route()) else { return };
    // Each of both addresses by its three ports, over both protocols: as for a gateway's.
    assert_eq!(counts, [24, 36, 160 - 60]);
}

/// Without its `snat` the reference has no answer for who is on the loopback or the server's own subnet, where we have one. Its
/// `masqAll` does nothing then.
#[test]
fn without_snat_the_others_are_answered_as_with_the_reference() {
    let is_answered =
        |question: &Question| CLIENTS[question.client] != "itself" && !question.to.ip().is_loopback();
    let keys = json!({ "snat": false, "masqAll": true });
    let Some(counts) = same_answers(&keys, questions().filter(is_answered)) else { return };
    assert_eq!(counts[..2], [16 + 28 + 28, 28], "{keys}");
}

/// Debian's reference knows no `masqAll` yet, so this is compared with what is answered without it: the same ones, all of whom come from
/// the server's gateway, as by MASQUERADE.
#[test]
fn with_masq_all_the_same_ones_are_answered_and_all_are_seen_as_the_gateway() {
    let [plain, masqueraded] =
        [json!({ "snat": true }), json!({ "masqAll": true })].map(|keys| Side::new(false, &keys));
    let mut counts = [0; 2];
    for question in questions() {
        let expected = match plain.ask(&question) {
            Seen::Client | Seen::Node(Some(_)) => {
                Seen::Node(Some(address(GATEWAY[usize::from(question.to.is_ipv6())])))
            }
            other => other,
        };
        assert_eq!(masqueraded.ask(&question), expected, "{} {question:?}", CLIENTS[question.client]);
        counts[usize::from(expected == Seen::Nobody)] += 1;
    }
    assert_eq!(counts, [136, 304 - 136]);
}
