//! Whose datagrams open a host port: those that the kernel would take from there by its reverse path filter (`rp_filter`). A socket of
//! the node's own, which gets the same datagrams, says which these are.

use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Namespace, patience, uninterrupted};

use crate::datagram::{UDP, framed, packet, udp};
use crate::stage::Stage;
use crate::wire::Wire;

const PATIENCE: Duration = Duration::from_secs(10);
const NODE: &str = "192.0.2.1";
const HOST_PORT: u16 = 8080;
const NODES_PORT: u16 = 9090;
const CONTAINERS_PORT: u16 = 7000;
const WANS: [&str; 3] = ["wan0", "wan1", "wan2"];

/// On the link of each interface, of the containers' subnet, by a route with two hops, and by none.
const SOURCES: [&str; 6] =
    ["192.0.2.9", "198.51.100.9", "198.18.0.9", "10.77.0.200", "203.0.113.9", "198.19.0.9"];

/// A node with three interfaces that lead outside, the last without an IPv4 address, and a container with a host port.
fn stage() -> (Stage, Namespace) {
    let mut stage = Stage::empty();
    let outside = stage.lab.namespace("outside").unwrap();
    let node = stage.node.namespace();
    for (wan, inside) in WANS.into_iter().zip(["eth0", "eth1", "eth2"]) {
        node.pair(wan, &outside, inside).unwrap();
    }
    for (wan, prefix) in [("wan0", "192.0.2.1/24"), ("wan1", "198.51.100.1/24"), ("wan2", "2001:db8:2::1/64")]
    {
        node.command("ip", &["address", "add", prefix, "dev", wan]).unwrap();
    }
    node.command("ip", &["route", "add", "198.18.0.0/24", "dev", "wan2"]).unwrap();
    let hops = "nexthop via 192.0.2.254 dev wan0 nexthop via 198.51.100.254 dev wan1";
    let route = ["route", "add", "203.0.113.0/24"].into_iter().chain(hops.split(' '));
    node.command("ip", &route.collect::<Vec<_>>()).unwrap();
    set(node, "all", 0);
    stage.empty = stage.node.inventory().unwrap();
    let mapping = json!([{ "hostPort": HOST_PORT, "containerPort": CONTAINERS_PORT, "protocol": "udp" }]);
    stage.network = stage.network.clone().with("runtimeConfig", json!({ "portMappings": mapping }));
    stage.add("one");
    stage.node.settle().unwrap();
    (stage, outside)
}

fn set(namespace: &Namespace, interface: &str, filter: u8) {
    namespace.sysctl(&format!("net/ipv4/conf/{interface}/rp_filter"), &filter.to_string()).unwrap();
}

fn bind(namespace: &Namespace, port: u16) -> UdpSocket {
    let socket = namespace.enter(|| UdpSocket::bind(("0.0.0.0", port)).unwrap()).unwrap();
    socket.set_read_timeout(Some(patience(PATIENCE))).unwrap();
    socket
}

/// What the socket got before the last word.
fn heard(socket: &UdpSocket) -> BTreeSet<String> {
    let mut heard = BTreeSet::new();
    loop {
        let mut text = [0; 64];
        let length = uninterrupted(|| socket.recv(&mut text)).unwrap();
        let text = String::from_utf8_lossy(&text[..length]).into_owned();
        if text == "the last word" {
            return heard;
        }
        heard.insert(text);
    }
}

#[test]
fn a_host_port_is_opened_from_where_the_kernel_would_take_a_datagram() {
    let (stage, outside) = stage();
    let node = stage.node.namespace();
    let sockets = [bind(node, NODES_PORT), bind(stage.sandboxes[0].namespace(), CONTAINERS_PORT)];
    let wires = ["eth0", "eth1", "eth2"].map(|name| Wire::tap(&outside, name));
    let macs = WANS.map(|name| Wire::tap(node, name).mac());
    let to: IpAddr = NODE.parse().unwrap();
    // Another source port each time, and at each interface: every datagram opens something.
    let mut source_port = 20_000;
    let mut ask = || {
        source_port += 10;
        for port in [NODES_PORT, HOST_PORT] {
            let send = |wan: usize, source: &str, text: &str| {
                let source = source.parse().unwrap();
                let datagram =
                    packet(UDP, source, to, 64, udp([source_port + wan as u16, port], text.as_bytes()));
                wires[wan].send(&framed(macs[wan], wires[wan].mac(), &datagram));
            };
            for (wan, name) in WANS.into_iter().enumerate() {
                SOURCES.iter().for_each(|source| send(wan, source, &format!("{source} by {name}")));
            }
            // This one gets through whatever the filter.
            send(0, SOURCES[0], "the last word");
        }
        [heard(&sockets[0]), heard(&sockets[1])]
    };
    let everyone = |filter: u8| [filter; 3];
    // What the programs are held to changes each time: else an agent that hears nothing would pass.
    for (everywhere, here, refused) in [
        (0, everyone(0), 0),
        (0, everyone(1), 13),
        (0, everyone(0), 0),
        (1, everyone(0), 13),
        (0, everyone(2), 7),
        (0, [1, 0, 0], 4),
        (2, everyone(1), 7),
        (0, [0, 1, 2], 9),
        (0, everyone(0), 0),
    ] {
        set(node, "all", everywhere);
        WANS.into_iter().zip(here).for_each(|(wan, filter)| set(node, wan, filter));
        let begun = Instant::now();
        loop {
            let [by_node, by_container] = ask();
            if by_node == by_container {
                assert_eq!(WANS.len() * SOURCES.len() - by_node.len(), refused, "{by_node:?}");
                break;
            }
            assert!(
                begun.elapsed() < patience(PATIENCE),
                "all {everywhere}, each {here:?}: the kernel takes {by_node:?}, the programs {by_container:?}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    assert_eq!(stage.node.agent().ask("check").unwrap()["consistent"], true);
}
