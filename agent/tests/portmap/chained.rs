//! `portmap` in a chain behind the plugin that makes the interface, as podman and containerd write it.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use serde_json::{Value, json};
use shunt_lab::{Network, Protocol, Sandbox, uninterrupted};

use crate::stage::{GATEWAY, NODE, OUTSIDE, Stage, address, give, mapping};

const PATIENCE: Duration = Duration::from_secs(10);

fn chain(stage: &Stage, mappings: &[Value]) -> Network {
    stage.network.clone().then(json!({
        "type": "shunt-portmap",
        "snat": true,
        "agentSocket": stage.node.agent().socket(),
        "runtimeConfig": { "portMappings": mappings },
    }))
}

#[test]
fn a_chained_portmap_gives_its_port_and_takes_it_away() {
    let mut stage = Stage::new();
    let network = chain(&stage, &[mapping(8080, 7000, "tcp")]);
    let sandbox = Sandbox::start(&stage.lab, &stage.node, &network, "one").unwrap();
    stage.sandboxes.push(sandbox);
    stage.node.settle().unwrap();
    let _echo = stage.echo(0, 7000);
    for node in NODE {
        stage.open(&stage.outside, Protocol::Tcp, node, 8080).chat(20, 1000).unwrap();
    }
    let sandbox = &stage.sandboxes[0];
    network.check(stage.node.namespace(), sandbox.container(), &sandbox.attachment().result).unwrap();
    let (code, text) = stage.refused(&chain(&stage, &[mapping(8080, 80, "tcp")]), "two");
    assert_eq!(code, 102, "{text}");
    assert_eq!(stage.node.agent().status().unwrap().attachments, 1, "the refused one's interface is gone");
    sandbox.delete(&stage.node, &network).unwrap();
    assert_eq!(stage.wires(), Vec::<String>::new());
}

#[test]
fn conditions_of_another_packet_filter_are_refused() {
    let stage = Stage::new();
    let network = stage.network.clone().then(json!({
        "type": "shunt-portmap",
        "agentSocket": stage.node.agent().socket(),
        "conditionsV4": ["-s", "10.0.0.0/8"],
        "runtimeConfig": { "portMappings": [mapping(8080, 80, "tcp")] },
    }));
    let (code, text) = stage.refused(&network, "one");
    assert!(code == 7 && text.contains("conditionsV4"), "{code} {text}");
}

#[test]
fn with_masq_all_the_container_sees_the_node_and_every_client_gets_its_own_answers() {
    let mut stage = Stage::new();
    give(&stage.outside, "eth0", "192.0.2.10/24");
    let network = stage.network.clone().then(json!({
        "type": "shunt-portmap",
        "masqAll": true,
        "agentSocket": stage.node.agent().socket(),
        "runtimeConfig": { "portMappings": [mapping(8053, 7000, "udp"), mapping(8080, 7001, "tcp")] },
    }));
    stage.sandboxes.push(Sandbox::start(&stage.lab, &stage.node, &network, "one").unwrap());
    stage.node.settle().unwrap();
    let inside = stage.sandboxes[0].namespace();
    for ((node, gateway), own) in NODE.into_iter().zip(GATEWAY).zip(stage.sandboxes[0].addresses()) {
        let listener = inside.enter(|| TcpListener::bind((own, 7001)).unwrap()).unwrap();
        let to = (address(node), 8080).into();
        let client = stage.outside.enter(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap()).unwrap();
        let (mut server, seen) = listener.accept().unwrap();
        assert_eq!(seen.ip(), address(gateway));
        server.write_all(b"hello").unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut heard = [0; 5];
        uninterrupted(|| (&client).read_exact(&mut heard)).unwrap();
        assert_eq!(&heard, b"hello");
    }
    // Two clients that have one port: the gateway's address has it once.
    let own = stage.sandboxes[0].addresses()[0];
    let server = inside.enter(|| UdpSocket::bind((own, 7000)).unwrap()).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let clients = [OUTSIDE[0], "192.0.2.10"].map(|at| {
        let client = stage.outside.enter(|| UdpSocket::bind((address(at), 5555)).unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    });
    let mut given = HashSet::new();
    for round in 0..3u8 {
        for (at, client) in (0u8..).zip(&clients) {
            client.send_to(&[round, at], (address(NODE[0]), 8053)).unwrap();
            let mut heard = [0; 8];
            let (length, seen) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
            assert_eq!((seen.ip(), &heard[..length]), (address(GATEWAY[0]), &[round, at][..]));
            given.insert((at, seen.port()));
            server.send_to(&heard[..length], seen).unwrap();
            let (length, from) = uninterrupted(|| client.recv_from(&mut heard)).unwrap();
            assert_eq!((from, &heard[..length]), ((address(NODE[0]), 8053).into(), &[round, at][..]));
        }
    }
    assert_eq!(given.len(), 2, "each kept the port that it was given: {given:?}");
}
