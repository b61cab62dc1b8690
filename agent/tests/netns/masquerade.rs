//! ipMasq: what leaves the network has the node's address, and nobody's rule outlives its network.

use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Conversation, Echo, Lab, Namespace, Network, Node, Protocol, Sandbox, uninterrupted};

/// A host beyond the node that knows no way back to the containers.
pub(crate) struct World {
    pub(crate) sandboxes: Vec<Sandbox>,
    pub(crate) network: Network,
    pub(crate) node: Node,
    pub(crate) outside: Namespace,
    pub(crate) lab: Lab,
}

pub(crate) const NODE: [&str; 2] = ["10.99.0.1", "fd99::1"];
pub(crate) const OUTSIDE: [&str; 2] = ["10.99.0.2", "fd99::2"];

impl World {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// With more arguments for the agent.
    pub(crate) fn with(arguments: &[&str]) -> Self {
        let lab = Lab::new().unwrap();
        let node = Node::start_with(&lab, "node", arguments).unwrap();
        let outside = lab.namespace("outside").unwrap();
        let path = outside.path().to_str().unwrap();
        let pair = ["link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns", path];
        node.namespace().command("ip", &pair).unwrap();
        for (namespace, ifname, addresses) in [(node.namespace(), "up0", NODE), (&outside, "eth0", OUTSIDE)] {
            for (address, length) in addresses.into_iter().zip(["24", "64"]) {
                let address = format!("{address}/{length}");
                namespace.command("ip", &["address", "add", &address, "dev", ifname, "nodad"]).unwrap();
            }
            namespace.command("ip", &["link", "set", ifname, "up"]).unwrap();
        }
        let network =
            node.network("pods", "cni0", &["10.77.0.0/24", "fd77::/64"]).with("ipMasq", json!(true));
        Self { sandboxes: Vec::new(), network, node, outside, lab }
    }

    pub(crate) fn add(&mut self, id: &str) {
        self.sandboxes.push(Sandbox::start(&self.lab, &self.node, &self.network, id).unwrap());
    }

    fn rules(&self) -> String {
        self.node.namespace().command("nft", &["list", "ruleset"]).unwrap()
    }
}

#[test]
fn what_leaves_the_network_has_the_nodes_address() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    for (outside, node) in OUTSIDE.into_iter().zip(NODE) {
        let (outside, node): (IpAddr, IpAddr) = (outside.parse().unwrap(), node.parse().unwrap());
        let echo = Echo::listen(&world.outside, outside, 7000).unwrap();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let inside = world.sandboxes[0].namespace();
            Conversation::open(inside, protocol, echo.address()).unwrap().chat(20, 1400).unwrap();
        }
        let server = world.outside.enter(|| UdpSocket::bind((outside, 7001)).unwrap()).unwrap();
        server.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let client =
            world.sandboxes[0].namespace().enter(|| UdpSocket::bind((any(outside), 0)).unwrap()).unwrap();
        client.send_to(b"who am I?", (outside, 7001)).unwrap();
        assert_eq!(uninterrupted(|| server.recv_from(&mut [0; 16])).unwrap().1.ip(), node);
    }
}

#[test]
fn containers_of_one_network_see_each_others_own_addresses() {
    let mut world = World::new();
    world.add("one");
    world.add("two");
    for address in world.sandboxes[1].addresses() {
        let server =
            world.sandboxes[1].namespace().enter(|| UdpSocket::bind((address, 7001)).unwrap()).unwrap();
        server.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let client =
            world.sandboxes[0].namespace().enter(|| UdpSocket::bind((any(address), 0)).unwrap()).unwrap();
        client.send_to(b"who am I?", (address, 7001)).unwrap();
        let seen = uninterrupted(|| server.recv_from(&mut [0; 16])).unwrap().1.ip();
        assert!(world.sandboxes[0].addresses().contains(&seen), "{seen}");
    }
}

#[test]
fn who_asks_a_container_from_outside_is_answered_by_the_address_that_was_asked() {
    let mut world = World::new();
    world.add("one");
    for (prefix, node) in ["10.77.0.0/24", "fd77::/64"].into_iter().zip(NODE) {
        world.outside.command("ip", &["route", "add", prefix, "via", node]).unwrap();
    }
    for address in world.sandboxes[0].addresses() {
        let server =
            world.sandboxes[0].namespace().enter(|| UdpSocket::bind((address, 53)).unwrap()).unwrap();
        let client = world.outside.enter(|| UdpSocket::bind((any(address), 0)).unwrap()).unwrap();
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        }
        // Neighbours are not known yet the first time, and are the second.
        for _ in 0..3 {
            client.send_to(b"who is it?", (address, 53)).unwrap();
            let asker = uninterrupted(|| server.recv_from(&mut [0; 16])).unwrap().1;
            server.send_to(b"me", asker).unwrap();
            let answered = uninterrupted(|| client.recv_from(&mut [0; 16])).unwrap().1;
            assert_eq!(answered, (address, 53).into());
        }
        // What it asks itself leaves as the node's, also from that socket.
        let other = world.outside.enter(|| UdpSocket::bind((any(address), 9053)).unwrap()).unwrap();
        other.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let outside = OUTSIDE[usize::from(address.is_ipv6())];
        server.send_to(b"and you?", (outside, 9053)).unwrap();
        let seen = uninterrupted(|| other.recv_from(&mut [0; 16])).unwrap().1.ip();
        assert_eq!(seen.to_string(), NODE[usize::from(address.is_ipv6())]);
    }
}

#[test]
fn a_rule_lives_as_long_as_its_networks_last_attachment_and_outlives_the_agent() {
    let mut world = World::new();
    world.add("one");
    world.add("two");
    let both = world.rules();
    assert_eq!(both.matches("masquerade comment \"pods\"").count(), 2, "{both}");
    world.sandboxes[0].delete(&world.node, &world.network).unwrap();
    assert_eq!(world.rules(), both);
    world.node.agent_mut().kill().unwrap();
    assert_eq!(world.rules(), both);
    world.node.restart_agent().unwrap();
    assert_eq!(world.rules(), both);
    world.sandboxes[1].delete(&world.node, &world.network).unwrap();
    assert_eq!(world.rules(), "");
}

#[test]
fn a_table_that_somebody_flushes_deletes_or_alters_is_put_back_within_a_second() {
    let mut world = World::new();
    world.add("one");
    let set = world.rules();
    let node = world.node.namespace();
    let repairs = || world.node.agent().status().unwrap().repairs;
    for harm in [
        &["flush", "ruleset"][..],
        &["delete", "table", "inet", "shunt"],
        &["flush", "chain", "inet", "shunt", "postrouting"],
        &["insert rule inet shunt postrouting accept"],
    ] {
        let before = repairs();
        node.command("nft", harm).unwrap();
        let begun = Instant::now();
        while (world.rules() != set || repairs() == before) && begun.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(world.rules(), set, "{harm:?}");
        assert_eq!(repairs(), before + 1, "{harm:?}");
    }
    // Somebody else's own table is nobody's business here.
    let before = repairs();
    node.command("nft", &["add table ip admin"]).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(repairs(), before);
}

/// The unspecified address of the same family.
pub(crate) fn any(like: IpAddr) -> IpAddr {
    if like.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) }
}
