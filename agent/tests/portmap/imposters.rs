//! Containers that send what could be taken for somebody else's answers: a neighbour's to its client, and a resolver's to the node.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use serde_json::json;
use shunt_lab::{Namespace, once_free, uninterrupted};

use crate::datagram::{UDP, framed, packet, udp};
use crate::errors::any_like;
use crate::shares::dropped;
use crate::stage::{GATEWAY, NODE, OUTSIDE, Stage, address, mapping};
use crate::wire::{Wire, says};

pub(crate) const FORGED: &str = "a forged answer";
/// How often each of them is sent.
pub(crate) const ROUNDS: usize = 5;
/// A port of the node that leads to a container, and that a socket of the node has as well.
const RANGE: u16 = 50_000;
const PATIENCE: Duration = Duration::from_secs(5);
/// What is on its way arrives within it.
const MOMENT: Duration = Duration::from_millis(500);

pub(crate) fn socket(namespace: &Namespace, at: (IpAddr, u16)) -> UdpSocket {
    let socket = namespace.enter(|| once_free(|| UdpSocket::bind(at)).unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Has a connected client ask, and the server answer; whom the server saw.
pub(crate) fn talk(client: &UdpSocket, server: &UdpSocket) -> SocketAddr {
    client.send(b"question").unwrap();
    let mut bytes = [0; 100];
    let (_, from) = uninterrupted(|| server.recv_from(&mut bytes)).unwrap();
    server.send_to(b"answer", from).unwrap();
    let length = uninterrupted(|| client.recv(&mut bytes)).unwrap();
    assert_eq!(&bytes[..length], b"answer");
    from
}

/// What a socket has heard, until it hears nothing for a moment.
pub(crate) fn heard(socket: &UdpSocket) -> Vec<String> {
    socket.set_read_timeout(Some(MOMENT)).unwrap();
    let mut bytes = [0; 100];
    let mut heard = Vec::new();
    while let Ok(length) = uninterrupted(|| socket.recv(&mut bytes)) {
        heard.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
    }
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    heard
}

/// Sends what is forged from this port of a container.
pub(crate) fn forge(container: &Namespace, port: u16, to: SocketAddr) {
    let socket = socket(container, (any_like(to.ip()).ip(), port));
    for _ in 0..ROUNDS {
        socket.send_to(FORGED.as_bytes(), to).unwrap();
    }
}

/// The source ports of what was forged and has come by a wire; an IPv6 packet has no other headers.
pub(crate) fn sources_of_forged(wire: &Wire) -> Vec<u16> {
    let forged = wire.at_hand().into_iter().filter(|frame| says(frame, FORGED));
    let datagrams = forged.filter_map(|frame| match frame[12..14] {
        [0x08, 0x00] if frame[23] == UDP => Some([frame[34], frame[35]]),
        [0x86, 0xdd] if frame[20] == UDP => Some([frame[54], frame[55]]),
        // An error that quotes one.
        _ => None,
    });
    datagrams.map(u16::from_be_bytes).collect()
}

/// A masqueraded container with a host port, and a masqueraded neighbour that is held to its addresses.
fn stage(rules: &[&str]) -> Stage {
    let mut stage = Stage::new();
    for &rule in rules {
        stage.node.namespace().command("nft", &[rule]).unwrap();
    }
    stage.network = stage.network.with("ipMasq", json!(true)).with("ipspoofchk", json!(true));
    stage.add("one", &[mapping(8053, 7000, "udp"), mapping(RANGE, RANGE, "udp")]);
    stage.add("two", &[]);
    stage
}

/// A neighbour sends to a client of a host port, by the number of the host port, by the container's, and in the container's name.
fn assert_no_neighbour_answers(stage: &Stage) {
    let wire = Wire::tap(&stage.outside, "eth0");
    let raw = Wire::tap(stage.sandboxes[1].namespace(), "eth0");
    let gateway = Wire::tap(stage.node.namespace(), "cni0").mac();
    let spoofed = dropped(stage.node.agent(), "address_spoofed");
    for ((node, outside), own) in NODE.into_iter().zip(OUTSIDE).zip(stage.sandboxes[0].addresses()) {
        let client = socket(&stage.outside, (address(outside), 5000));
        client.connect((address(node), 8053)).unwrap();
        let server = socket(stage.sandboxes[0].namespace(), (own, 7000));
        talk(&client, &server);
        let to = client.local_addr().unwrap();
        [8053, 7000].into_iter().for_each(|port| forge(stage.sandboxes[1].namespace(), port, to));
        let in_its_name = packet(UDP, own, to.ip(), 64, udp([7000, 5000], FORGED.as_bytes()));
        raw.send(&framed(gateway, raw.mac(), &in_its_name));
        assert_eq!(heard(&client), [""; 0], "{node}");
        talk(&client, &server);
    }
    let sources = sources_of_forged(&wire);
    assert_eq!(sources.len(), 2 * 2 * ROUNDS, "all but what is in another's name leaves: {sources:?}");
    assert!(!sources.contains(&8053), "{sources:?}");
    assert_eq!(dropped(stage.node.agent(), "address_spoofed"), spoofed + 2);
}

#[test]
fn a_client_of_a_host_port_hears_no_neighbour_of_the_container() {
    assert_no_neighbour_answers(&stage(&[]));
}

#[test]
fn a_client_of_a_host_port_hears_no_neighbour_that_the_kernel_masquerades() {
    assert_no_neighbour_answers(&stage(&[
        "add table inet admin",
        "add chain inet admin forward { type filter hook forward priority 0; }",
        "add rule inet admin forward tcp dport 7009 drop",
    ]));
}

#[test]
fn a_question_of_the_nodes_from_a_published_port_is_answered_by_the_resolver_alone() {
    let stage = stage(&[]);
    let container = stage.sandboxes[0].namespace();
    let wire = Wire::tap(&stage.outside, "eth0");
    let raw = Wire::tap(container, "eth0");
    let gateway = Wire::tap(stage.node.namespace(), "cni0").mac();
    let spoofed = dropped(stage.node.agent(), "address_spoofed");
    for ((node, outside), own) in NODE.into_iter().zip(OUTSIDE).zip(GATEWAY) {
        let resolver = socket(&stage.outside, (address(outside), 53));
        let to = resolver.local_addr().unwrap();
        let asker = socket(stage.node.namespace(), (any_like(to.ip()).ip(), RANGE));
        asker.connect(to).unwrap();
        let seen = talk(&asker, &resolver);
        assert_eq!(seen, (address(node), RANGE).into());
        // From the resolver's port to both names of the node, and in the resolver's name.
        for name in [node, own] {
            forge(container, 53, (address(name), RANGE).into());
            let in_its_name = packet(UDP, to.ip(), address(name), 64, udp([53, RANGE], FORGED.as_bytes()));
            raw.send(&framed(gateway, raw.mac(), &in_its_name));
        }
        assert_eq!(heard(&asker), [""; 0], "{node}");
        // To the resolver, as if it were the node that asks.
        forge(container, RANGE, to);
        assert_eq!(heard(&resolver).len(), ROUNDS);
        resolver.send_to(b"the answer", seen).unwrap();
        assert_eq!(heard(&asker), ["the answer"], "{node}");
    }
    let sources = sources_of_forged(&wire);
    assert_eq!(sources.len(), 2 * ROUNDS, "what was for the resolver: {sources:?}");
    assert!(!sources.contains(&RANGE), "{sources:?}");
    assert_eq!(dropped(stage.node.agent(), "address_spoofed"), spoofed + 4);
}
