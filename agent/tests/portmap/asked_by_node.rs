//! A range of host ports that the node's own sockets use as well: what they have asked is answered to them, and clients reach the container.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use shunt_lab::{Namespace, Protocol, uninterrupted};

use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};

/// A media server's ports, in the midst of those that the node gives its own sockets.
const FIRST: u16 = 50_000;
const MANY: u16 = 8;

fn stage() -> Stage {
    let mut stage = Stage::new();
    let range: Vec<_> = (FIRST..FIRST + MANY).map(|port| mapping(port, port, "udp")).collect();
    stage.add("media", &range);
    stage.add("resolver", &[]);
    stage
}

fn socket(namespace: &Namespace, at: (IpAddr, u16)) -> UdpSocket {
    let socket = namespace.enter(|| UdpSocket::bind(at).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// Whether `server` has heard `client`, and `client` the answer.
fn is_answered(server: &UdpSocket, client: &UdpSocket) -> bool {
    client.send_to(b"question", server.local_addr().unwrap()).unwrap();
    let mut heard = [0; 16];
    let (_, from) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
    server.send_to(b"answer", from).unwrap();
    uninterrupted(|| client.recv(&mut heard)).is_ok_and(|bytes| heard[..bytes] == *b"answer")
}

#[test]
fn the_node_hears_what_it_has_asked_from_a_published_port() {
    let stage = stage();
    for (family, own) in NODE.map(address).into_iter().enumerate() {
        let outside = socket(&stage.outside, (address(OUTSIDE[family]), 53));
        let resolver = stage.sandboxes[1].addresses()[family];
        let resolver = socket(stage.sandboxes[1].namespace(), (resolver, 53));
        let any = if own.is_ipv4() { address("0.0.0.0") } else { address("::") };
        for (offset, server) in [&outside, &resolver].into_iter().enumerate() {
            let client = socket(stage.node.namespace(), (any, FIRST + offset as u16));
            for round in 0..3 {
                assert!(is_answered(server, &client), "{own}: server {offset}, question {round}");
            }
        }
    }
    // Everybody else reaches the container, from the very host that the node has asked.
    for port in [FIRST, FIRST + 1, FIRST + MANY - 1] {
        let _echo = stage.echo(0, port);
        for node in NODE {
            stage.open(&stage.outside, Protocol::Udp, node, port).chat(3, 100).unwrap();
            stage.open(stage.sandboxes[1].namespace(), Protocol::Udp, node, port).chat(3, 100).unwrap();
        }
    }
}

#[test]
fn a_container_that_the_kernel_masquerades_hears_what_it_has_asked_by_a_published_port() {
    let mut stage = stage();
    // Of a network of its own, which somebody else's rule masquerades.
    let node = stage.node.namespace();
    node.command("nft", &["add table inet admin"]).unwrap();
    node.command("nft", &["add chain inet admin out { type nat hook postrouting priority 100; }"]).unwrap();
    node.command("nft", &["add rule inet admin out oifname up0 masquerade"]).unwrap();
    stage.add("asks", &[]);
    for outside in OUTSIDE.map(address) {
        let server = socket(&stage.outside, (outside, 53));
        let any = if outside.is_ipv4() { address("0.0.0.0") } else { address("::") };
        let client = socket(stage.sandboxes[2].namespace(), (any, FIRST + 2));
        for round in 0..3 {
            let seen = SocketAddr::new(outside, 53);
            assert!(is_answered(&server, &client), "{seen}: question {round}");
        }
    }
    let _echo = stage.echo(0, FIRST + 2);
    let client = &stage.outside;
    stage.open(client, Protocol::Udp, NODE[0], FIRST + 2).chat(3, 100).unwrap();
}
