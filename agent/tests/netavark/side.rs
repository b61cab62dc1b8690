//! A node with a host outside and containers that netavark has set up: with our plugin, or with its own bridge.

use std::net::IpAddr;

use serde_json::{Value, json};
use shunt_lab::{Container, Lab, Namespace, Node};

use crate::podman::{Netavark, netns, request};
use crate::who::Server;

/// The node's addresses on its uplink.
pub(crate) const NODE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
/// The addresses of the host outside.
pub(crate) const OUTSIDE: [&str; 2] = ["192.0.2.9", "2001:db8::9"];
/// Of the containers: the one that ports are published of, its neighbour, and one on the other network.
pub(crate) const CONTAINERS: [(&str, usize, [&str; 2]); 3] = [
    ("server", 0, ["10.77.0.5", "fd77::5"]),
    ("neighbour", 0, ["10.77.0.6", "fd77::6"]),
    ("other", 1, ["10.78.0.7", "fd78::7"]),
];

/// Published: on every address, on the node's IPv4 and IPv6 ones, on the loopback; the second of a range.
pub(crate) const PORTS: [u16; 5] = [8080, 8081, 8082, 8083, 8085];

/// Fields are dropped in their order.
pub(crate) struct Side {
    _servers: Vec<Server>,
    pub(crate) containers: Vec<Container>,
    pub(crate) requests: Vec<Value>,
    pub(crate) netavark: Netavark,
    pub(crate) node: Node,
    pub(crate) outside: Namespace,
    _lab: Lab,
}

impl Side {
    /// With `more` in both networks. None where there is no netavark.
    pub(crate) fn new(is_ours: bool, more: &Value) -> Option<Self> {
        let lab = Lab::new().unwrap();
        let node = if is_ours { Node::start(&lab, "node") } else { Node::bare(&lab, "node") }.unwrap();
        let netavark = Netavark::of(&lab, &node, is_ours)?;
        let outside = lab.namespace("outside").unwrap();
        connect(&node, &outside);
        let networks = [more; 2];
        let networks: Vec<_> = (0..2)
            .map(|at| {
                netavark.create(node.namespace(), at, networks[at]).unwrap_or_else(|error| panic!("{error}"))
            })
            .collect();
        let (mut containers, mut requests, mut servers) = (Vec::new(), Vec::new(), Vec::new());
        for (id, at, ips) in CONTAINERS {
            let container = Container::create(&lab, id).unwrap();
            container.namespace().sysctl("net/ipv6/conf/default/accept_dad", "0").unwrap();
            let published = if id == "server" { published() } else { Vec::new() };
            let request = request(&networks[at], id, &ips, &published);
            let done = netavark.run(node.namespace(), &["setup", netns(&container)], &request);
            let done = done.unwrap_or_else(|error| panic!("{id}: {error}"));
            let name = networks[at]["name"].as_str().unwrap();
            assert_eq!(
                told(&done[name]),
                ips.map(|ip| format!("{ip}/{}", if ip.contains(':') { 64 } else { 24 }))
            );
            servers.push(Server::start(container.namespace(), &ips.map(|ip| ip.parse().unwrap())));
            containers.push(container);
            requests.push(request);
        }
        node.settle().unwrap();
        servers.push(Server::start(&outside, &OUTSIDE.map(|ip| ip.parse().unwrap())));
        Some(Self { _servers: servers, containers, requests, netavark, node, outside, _lab: lab })
    }

    /// Takes every container down, so many times. netavark's own bridge driver fails the second time.
    pub(crate) fn tear_down(&self, times: usize) {
        for _ in 0..times {
            for (container, request) in self.containers.iter().zip(&self.requests) {
                let done = self.netavark.run(self.node.namespace(), &["teardown", netns(container)], request);
                done.unwrap_or_else(|error| panic!("{}: {error}", container.id()));
            }
        }
    }
}

/// The addresses that a status block tells.
fn told(status: &Value) -> Vec<String> {
    let eth0 = &status["interfaces"]["eth0"];
    assert_eq!(eth0["mac_address"].as_str().unwrap().len(), 17, "{status}");
    let subnets = eth0["subnets"].as_array().unwrap();
    let mut gateways = subnets.iter().filter_map(|subnet| subnet["gateway"].as_str());
    assert!(gateways.all(|gateway| gateway.parse::<IpAddr>().is_ok()), "{status}");
    subnets.iter().map(|subnet| subnet["ipnet"].as_str().unwrap().to_owned()).collect()
}

fn published() -> Vec<Value> {
    let of = |protocol: &'static str| {
        move |(host_ip, port, range): (&str, u16, u16)| {
            json!({
                "host_ip": host_ip, "host_port": port, "container_port": 7001 - range,
                "protocol": protocol, "range": range,
            })
        }
    };
    // Of the range, ports 8084 and 8085 lead to 6999 and 7000.
    let ports = [
        ("", PORTS[0], 1),
        (NODE[0], PORTS[1], 1),
        (NODE[1], PORTS[2], 1),
        ("127.0.0.1", PORTS[3], 1),
        ("", PORTS[4] - 1, 2),
    ];
    ["tcp", "udp"].into_iter().flat_map(|protocol| ports.map(of(protocol))).collect()
}

/// The host outside knows a way to the containers, so that what is not masqueraded would show.
fn connect(node: &Node, outside: &Namespace) {
    node.namespace().pair("up0", outside, "eth0").unwrap();
    for (namespace, ifname, addresses) in [(node.namespace(), "up0", NODE), (outside, "eth0", OUTSIDE)] {
        for (address, length) in addresses.into_iter().zip(["24", "64"]) {
            let address = format!("{address}/{length}");
            let nodad = if address.contains(':') { &["nodad"][..] } else { &[] };
            namespace.command("ip", &[&["address", "add", &address, "dev", ifname], nodad].concat()).unwrap();
        }
    }
    for (prefix, by) in [("10.76.0.0/14", NODE[0]), ("fd70::/12", NODE[1])] {
        outside.command("ip", &["route", "add", prefix, "via", by]).unwrap();
    }
    // The rules are asked about what is routed, as on a node without Docker and Kubernetes.
    for name in ["net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"] {
        node.namespace().sysctl(name, "0").ok();
    }
    for (name, value) in [
        ("net/ipv4/icmp_ratelimit", "0"),
        ("net/ipv6/icmp/ratelimit", "0"),
        ("net/ipv6/conf/default/accept_dad", "0"),
    ] {
        node.namespace().sysctl(name, value).unwrap();
    }
}
