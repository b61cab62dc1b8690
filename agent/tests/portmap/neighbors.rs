//! Clients on the container's own link, where it is to see them (`snat: false`): its answers to them are bridged otherwise.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use serde_json::json;
use shunt_lab::{Namespace, Protocol, Sandbox};

use crate::stage::{GATEWAY, NODE, Stage, address, mapping};

const PATIENCE: Duration = Duration::from_secs(10);

/// More than fits one frame.
const DATAGRAM: usize = 4000;

/// A stage with a server that sees its clients and a neighbour of it, on which no bridge calls iptables: there conntrack would translate
/// the answers.
fn stage() -> Stage {
    let mut stage = Stage::new();
    for family in ["iptables", "ip6tables"] {
        // A kernel without the module has no such setting.
        drop(stage.node.namespace().sysctl(&format!("net/bridge/bridge-nf-call-{family}"), "0"));
    }
    let mappings = [mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")];
    let portmap = json!({ "type": "shunt-portmap", "agentSocket": stage.node.agent().socket(), "snat": false,
        "capabilities": { "portMappings": true }, "runtimeConfig": { "portMappings": mappings } });
    let mapped = stage.network.clone().then(portmap);
    stage.sandboxes.push(Sandbox::start(&stage.lab, &stage.node, &mapped, "server").unwrap());
    stage.add("neighbour", &[]);
    stage
}

/// Whom a server on this address sees, when a datagram in pieces comes from `client` by the node's address, and whether the answer, as
/// large, comes from there.
fn seen(stage: &Stage, client: &Namespace, family: usize) -> IpAddr {
    let server = stage.sandboxes[0].addresses()[family];
    let at = SocketAddr::new(server, 7000);
    let inside = stage.sandboxes[0].namespace().enter(|| UdpSocket::bind(at).unwrap()).unwrap();
    let any = SocketAddr::new(address(["0.0.0.0", "::"][family]), 0);
    let outside = client.enter(|| UdpSocket::bind(any).unwrap()).unwrap();
    for socket in [&inside, &outside] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    outside.connect(SocketAddr::new(address(NODE[family]), 8080)).unwrap();
    let (sent, mut got) = ([7; DATAGRAM], [0; DATAGRAM]);
    outside.send(&sent).unwrap();
    let (length, from) = inside.recv_from(&mut got).unwrap();
    assert_eq!((length, got), (DATAGRAM, sent));
    inside.send_to(&[9; DATAGRAM], from).unwrap();
    assert_eq!(outside.recv(&mut got).unwrap(), DATAGRAM, "a connected socket hears its own peer alone");
    assert_eq!(got, [9; DATAGRAM]);
    from.ip()
}

#[test]
fn neighbours_that_the_container_sees_get_their_answers_from_the_node_and_it_sees_itself_as_its_gateway() {
    let stage = stage();
    let [server, neighbour] = [0, 1].map(|at| &stage.sandboxes[at]);
    for family in [0, 1] {
        assert_eq!(seen(&stage, neighbour.namespace(), family), neighbour.addresses()[family]);
        assert_eq!(seen(&stage, server.namespace(), family), address(GATEWAY[family]));
    }
    let _echo = stage.echo(0, 7000);
    for node in NODE.into_iter().chain(GATEWAY) {
        for client in [server, neighbour] {
            let mut talk = stage.open(client.namespace(), Protocol::Tcp, node, 8080);
            talk.chat(50, 1400).unwrap();
        }
    }
}

#[test]
fn what_is_no_answer_is_bridged_by_the_programs() {
    let stage = stage();
    let _echo = stage.echo(1, 7001);
    let to = stage.sandboxes[1].addresses()[0].to_string();
    let mut talk = stage.open(stage.sandboxes[0].namespace(), Protocol::Tcp, &to, 7001);
    talk.chat(50, 1400).unwrap();
    let port = stage.node.agent().port("server").unwrap();
    assert!(port.from.fast > 50, "{port:?}");
}
