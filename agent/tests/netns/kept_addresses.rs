//! `nonMasqueradeCIDRs`: some destinations see the container's own address, by the programs' way and by the kernel's.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use serde_json::json;
use shunt_agent_api::{Client, Reply, Request};
use shunt_lab::{Namespace, Network, Sandbox, uninterrupted};
use shunt_netlink::conntrack;

use crate::masquerade::{NODE, OUTSIDE, World, any};

const PATIENCE: Duration = Duration::from_secs(5);

/// Addresses of the host outside that no list names.
const OTHER: [&str; 2] = ["10.99.0.3", "fd99::3"];

/// A host outside that knows the way to the containers, which see it by their own address if `kept` names it.
struct Kept {
    world: World,
    kept: Network,
}

impl Kept {
    fn new(kept: &[&str]) -> Self {
        let world = World::new();
        for ((prefix, node), other) in ["10.77.0.0/24", "fd77::/64"].into_iter().zip(NODE).zip(OTHER) {
            world.outside.command("ip", &["route", "add", prefix, "via", node]).unwrap();
            let length = if other.contains(':') { "64" } else { "24" };
            let other = format!("{other}/{length}");
            world.outside.command("ip", &["address", "add", &other, "dev", "eth0", "nodad"]).unwrap();
        }
        let kept = world.network.clone().with("nonMasqueradeCIDRs", json!(kept));
        Self { world, kept }
    }

    /// Adds a container of the network with the list.
    fn add_kept(&mut self, id: &str) {
        let sandbox = Sandbox::start(&self.world.lab, &self.world.node, &self.kept, id).unwrap();
        self.world.sandboxes.push(sandbox);
    }

    fn container(&self, index: usize) -> &Sandbox {
        &self.world.sandboxes[index]
    }

    /// A repeated ADD with another list.
    fn update(&self, index: usize, list: &[&str]) {
        let network = self.kept.clone().with("updateExisting", json!(true));
        let network = network.with("nonMasqueradeCIDRs", json!(list));
        network.add(self.world.node.namespace(), self.container(index).container()).unwrap();
    }

    /// Whom `to` sees when a container talks to it, by UDP and by TCP.
    #[track_caller]
    fn assert_sees(&self, index: usize, to: &str, is_own: bool, port: u16) {
        let to: IpAddr = to.parse().unwrap();
        let inside = self.container(index);
        let own = inside.addresses().into_iter().find(|ip| ip.is_ipv4() == to.is_ipv4()).unwrap();
        let node: IpAddr = NODE[usize::from(to.is_ipv6())].parse().unwrap();
        let expected = if is_own { own } else { node };
        let to = SocketAddr::new(to, port);
        assert_eq!(by_udp(&self.world.outside, inside.namespace(), to), expected, "UDP to {to}");
        assert_eq!(by_tcp(&self.world.outside, inside.namespace(), to), expected, "TCP to {to}");
    }

    /// Whether the kernel tracks a connection to this end.
    fn is_tracked(&self, to: SocketAddr) -> bool {
        let tracked =
            self.world.node.namespace().enter(|| conntrack::tracked_connections().unwrap()).unwrap();
        tracked.iter().any(|connection| connection.original.destination == to)
    }
}

/// Two datagrams, each of which is answered.
fn by_udp(outside: &Namespace, inside: &Namespace, to: SocketAddr) -> IpAddr {
    let server = outside.enter(|| UdpSocket::bind(to).unwrap()).unwrap();
    let client = inside.enter(|| UdpSocket::bind((any(to.ip()), 0)).unwrap()).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let seen = [0, 1].map(|_| {
        client.send_to(b"who am I?", to).unwrap();
        let (_, from) = uninterrupted(|| server.recv_from(&mut [0; 16])).unwrap();
        server.send_to(b"that one", from).unwrap();
        assert_eq!(uninterrupted(|| client.recv_from(&mut [0; 16])).unwrap().1, to);
        from
    });
    assert_eq!(seen[0], seen[1], "one flow, one address");
    seen[0].ip()
}

fn by_tcp(outside: &Namespace, inside: &Namespace, to: SocketAddr) -> IpAddr {
    let server = outside.enter(|| TcpListener::bind(to).unwrap()).unwrap();
    let _client = inside.enter(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap()).unwrap();
    server.accept().unwrap().1.ip()
}

#[test]
fn a_container_with_the_key_is_seen_by_its_own_address_and_its_neighbour_by_the_nodes() {
    let mut kept = Kept::new(&["10.99.0.2/32", "fd99::2/128"]);
    kept.add_kept("one");
    kept.world.add("two");
    kept.world.node.settle().unwrap();
    for to in OUTSIDE {
        kept.assert_sees(0, to, true, 7000);
        kept.assert_sees(1, to, false, 7001);
    }
    for other in OTHER {
        kept.assert_sees(0, other, false, 7002);
        kept.assert_sees(1, other, false, 7003);
    }
    // As the kernel does it alone.
    kept.world.node.namespace().command("nft", &["add table ip admin"]).unwrap();
    let chain = "add chain ip admin forward { type filter hook forward priority 0; policy accept; }";
    kept.world.node.namespace().command("nft", &[chain]).unwrap();
    kept.world.node.namespace().command("nft", &["add rule ip admin forward counter"]).unwrap();
    kept.world.node.agent_mut().kill().unwrap();
    kept.world.node.restart_agent().unwrap();
    for to in OUTSIDE {
        kept.assert_sees(0, to, true, 7004);
        kept.assert_sees(1, to, false, 7005);
    }
    for other in OTHER {
        kept.assert_sees(0, other, false, 7006);
    }
}

#[test]
fn what_leaves_the_cluster_keeps_the_fast_path() {
    let mut kept = Kept::new(&["10.78.0.0/24", "fd78::/64"]);
    kept.add_kept("one");
    kept.world.node.settle().unwrap();
    for to in OUTSIDE {
        kept.assert_sees(0, to, false, 7010);
        let to = SocketAddr::new(to.parse().unwrap(), 7010);
        assert!(!kept.is_tracked(to), "{to} is conntrack's");
    }
}

#[test]
fn a_list_is_updated_in_place_and_outlives_the_agent() {
    let mut kept = Kept::new(&[]);
    kept.add_kept("one");
    kept.add_kept("two");
    kept.world.node.settle().unwrap();
    for to in OUTSIDE {
        kept.assert_sees(0, to, false, 7020);
    }
    kept.update(0, &["10.99.0.0/24", "fd99::/64"]);
    for round in 0..2 {
        for to in OUTSIDE {
            kept.assert_sees(0, to, true, 7021 + round);
            kept.assert_sees(1, to, false, 7023 + round);
        }
        kept.world.node.agent_mut().kill().unwrap();
        kept.world.node.restart_agent().unwrap();
    }
    kept.update(0, &[]);
    for to in OUTSIDE {
        kept.assert_sees(0, to, false, 7025);
    }
    let findings = kept.world.node.agent().ask("check").unwrap();
    assert_eq!(findings["findings"], json!([]), "{findings}");
}

#[test]
fn a_network_is_told_of_other_destinations_under_its_traffic() {
    let mut kept = Kept::new(&["10.78.0.0/24"]);
    kept.add_kept("one");
    kept.world.add("two");
    let exempt = |destinations: &[&str]| {
        let destinations = destinations.iter().map(|text| (*text).to_owned()).collect();
        let mut client = Client::connect(kept.world.node.agent().socket()).unwrap();
        client.ask(Request::Exempt { network: "pods".into(), destinations })
    };
    // What was masqueraded by the programs stays so, and what the kernel left alone stays so.
    for (list, is_own, port) in [(&["10.99.0.0/24", "fd99::/64"][..], true, 7030), (&[], false, 7031)] {
        let to = SocketAddr::new(OUTSIDE[0].parse().unwrap(), 7900 + port % 10);
        let server = kept.world.outside.enter(|| UdpSocket::bind(to).unwrap()).unwrap();
        let inside = kept.container(0).namespace();
        let client = inside.enter(|| UdpSocket::bind((any(to.ip()), 0)).unwrap()).unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let seen = || {
            client.send_to(b"who am I?", to).unwrap();
            let from = uninterrupted(|| server.recv_from(&mut [0; 16])).unwrap().1;
            server.send_to(b"that one", from).unwrap();
            client.recv_from(&mut [0; 16]).unwrap();
            from
        };
        let before = seen();
        assert_eq!(exempt(list).unwrap(), Reply::Exempted);
        assert_eq!(seen(), before, "a connection keeps its address");
        for to in OUTSIDE {
            kept.assert_sees(0, to, is_own, port);
            kept.assert_sees(1, to, is_own, port + 10);
        }
    }
    let refused = exempt(&["10.99.0.2"]).unwrap_err().to_string();
    assert!(refused.contains("10.99.0.2") && refused.contains("prefix"), "{refused}");
}
