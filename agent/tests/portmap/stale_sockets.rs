//! Connected UDP sockets of the node: whom they talk to was decided when they connected, and the container may be another
//! by now.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use serde_json::json;
use shunt_lab::{Echo, Namespace, uninterrupted};

use crate::stage::{NODE, Stage, address, mapping};

const PATIENCE: Duration = Duration::from_secs(10);

/// What a process of the node may call it.
const NAMES: [&str; 4] = ["127.0.0.1", "::1", NODE[0], NODE[1]];

/// A socket in a namespace that is connected to `to`.
fn connected(inside: &Namespace, to: SocketAddr) -> UdpSocket {
    let any = if to.is_ipv4() { "0.0.0.0" } else { "::" };
    let socket = inside.enter(|| UdpSocket::bind((address(any), 0)).unwrap()).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// What it says comes back.
fn talk(socket: &UdpSocket, what: &str) {
    for round in 0..3u8 {
        socket.send(&[round; 30]).unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut heard = [0; 100];
        let length =
            uninterrupted(|| socket.recv(&mut heard)).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(heard[..length], [round; 30], "{what}");
    }
}

/// It was told that its peer is gone; connected anew, it talks to whoever has the host port now.
fn connects_anew(socket: &UdpSocket, to: SocketAddr, what: &str) {
    let told = socket.take_error().unwrap().unwrap_or_else(|| panic!("{what}: it was told nothing"));
    assert_eq!(told.kind(), std::io::ErrorKind::ConnectionAborted, "{what}");
    assert!(socket.send(b"x").is_err(), "{what}: it has no peer any more");
    socket.connect(to).unwrap();
    talk(socket, what);
}

#[test]
fn sockets_that_talked_to_a_container_that_is_gone_connect_anew_to_the_next_one() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp"), mapping(8080, 7000, "tcp")]);
    stage.add("other", &[mapping(8090, 7000, "udp")]);
    let node = stage.node.namespace();
    let echo = stage.echo(0, 7000);
    let _other = stage.echo(1, 7000);
    let own = Echo::listen(node, address(NODE[0]), 9000).unwrap();
    let led = NAMES.map(|name| (SocketAddr::new(address(name), 8080), name));
    let led = led.map(|(to, name)| (connected(node, to), to, name));
    // Sockets that have nothing to do with it: of another host port, past all of them, and of the node's own server.
    let kept = [
        SocketAddr::new(address("127.0.0.1"), 8090),
        SocketAddr::new(stage.sandboxes[1].addresses()[0], 7000),
        own.address(),
    ];
    let kept = kept.map(|to| (connected(node, to), to));
    led.iter().for_each(|(socket, _, name)| talk(socket, name));
    drop(echo);
    stage.sandboxes.remove(0).delete(&stage.node, &stage.network).unwrap();
    stage.add("two", &[mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(1, 7000);
    for (socket, to, name) in &led {
        connects_anew(socket, *to, name);
    }
    for (socket, to) in &kept {
        talk(socket, &to.to_string());
    }
}

#[test]
fn sockets_that_had_connected_to_the_node_before_there_was_a_mapping_come_by_it_afterwards() {
    let mut stage = Stage::new();
    let node = stage.node.namespace();
    let own = Echo::listen(node, address(NODE[0]), 8080).unwrap();
    let early = connected(node, own.address());
    talk(&early, "the node's own server");
    let mute = connected(node, SocketAddr::new(address("::1"), 8080));
    // Neither are theirs who ask for the same number elsewhere, or for the other protocol's.
    let elsewhere = connected(node, SocketAddr::new(address("192.0.2.9"), 8080));
    let unmapped = connected(node, SocketAddr::new(address(NODE[0]), 8081));
    stage.add("one", &[mapping(8080, 7000, "udp"), mapping(8081, 7000, "tcp")]);
    drop(own);
    let _echo = stage.echo(0, 7000);
    connects_anew(&early, SocketAddr::new(address(NODE[0]), 8080), "the node's address");
    connects_anew(&mute, SocketAddr::new(address("::1"), 8080), "loopback");
    for untouched in [elsewhere, unmapped] {
        assert!(untouched.take_error().unwrap().is_none());
        assert!(untouched.peer_addr().is_ok(), "it has its peer");
    }
}

#[test]
fn an_update_and_a_restart_of_the_agent_abort_those_of_ended_mappings_only() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp"), mapping(8081, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let node = stage.node.namespace();
    let [kept, ended] = [8080, 8081].map(|port| connected(node, (address("127.0.0.1"), port).into()));
    [&kept, &ended].into_iter().for_each(|socket| talk(socket, "before"));
    let updated = stage.mapped(&[mapping(8080, 7000, "udp")]).with("updateExisting", json!(true));
    updated.add(node, stage.sandboxes[0].container()).unwrap();
    talk(&kept, "its mapping is there as before");
    assert!(ended.send(b"x").is_err(), "its mapping is gone");
    stage.node.agent_mut().kill().unwrap();
    talk(&kept, "without an agent");
    stage.node.restart_agent().unwrap();
    talk(&kept, "with the next agent");
    // The container ends while there is no agent.
    stage.node.agent_mut().kill().unwrap();
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    stage.node.restart_agent().unwrap();
    assert!(kept.send(b"x").is_err(), "the next agent has found it");
}
