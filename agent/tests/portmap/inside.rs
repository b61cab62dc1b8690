//! From containers of the node to a container by a port of the node.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use nix::sys::socket::sockopt::ReuseAddr;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, setsockopt, socket};
use shunt_lab::{Namespace, Network, Protocol, Sandbox};

use crate::stage::{NODE, Stage, mapping};

const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];

/// Addresses of the node that a container of the stage's network may use: the uplink's, and its own gateway.
const USED: [&str; 4] = [NODE[0], NODE[1], "10.77.0.1", "fd77::1"];

fn mapped(stage: &mut Stage) {
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
}

fn talk(stage: &Stage, client: &Namespace, whose: &str) {
    for node in USED {
        for protocol in BOTH {
            let mut talk = stage.open(client, protocol, node, 8080);
            talk.chat(50, 1400).unwrap_or_else(|error| panic!("{whose} by {node}, {protocol:?}: {error:#}"));
        }
    }
}

#[test]
fn a_container_talks_to_itself_by_the_nodes_address() {
    let mut stage = Stage::new();
    mapped(&mut stage);
    let _echo = stage.echo(0, 7000);
    talk(&stage, stage.sandboxes[0].namespace(), "itself");
}

#[test]
fn a_container_of_the_same_network_talks_to_another_by_the_nodes_address() {
    let mut stage = Stage::new();
    mapped(&mut stage);
    stage.add("two", &[]);
    let _echo = stage.echo(0, 7000);
    talk(&stage, stage.sandboxes[1].namespace(), "a neighbour");
}

#[test]
fn a_container_of_another_network_talks_to_one_by_the_nodes_address() {
    let mut stage = Stage::new();
    mapped(&mut stage);
    let other: Network = stage.node.network("others", "cni1", &["10.78.0.0/24", "fd78::/64"]);
    let sandbox = Sandbox::start(&stage.lab, &stage.node, &other, "two").unwrap();
    stage.node.settle().unwrap();
    let _echo = stage.echo(0, 7000);
    talk(&stage, sandbox.namespace(), "another network's");
}

#[test]
fn neighbours_that_use_the_same_source_port_each_get_their_own_answers() {
    let mut stage = Stage::new();
    mapped(&mut stage);
    for id in ["two", "three", "four"] {
        stage.add(id, &[]);
    }
    let _echo = stage.echo(0, 7000);
    let to: SocketAddr = (stage_address(NODE[0]), 8080).into();
    let mut streams: Vec<_> = stage.sandboxes[1..]
        .iter()
        .map(|sandbox| sandbox.namespace().enter(|| connect_from(5555, to)).unwrap())
        .collect();
    for round in 0..20u8 {
        for (at, stream) in (0u8..).zip(&mut streams) {
            let said = [round, at, 7];
            stream.write_all(&said).unwrap();
            let mut heard = [0; 3];
            stream.read_exact(&mut heard).unwrap();
            assert_eq!(heard, said);
        }
    }
}

#[test]
fn a_client_outside_that_uses_one_source_port_for_several_ports_of_one_container_gets_its_own_answers() {
    let mut stage = Stage::new();
    stage.add("one", &[8080, 8081, 8082].map(|port| mapping(port, 7000, "tcp")));
    let _echo = stage.echo(0, 7000);
    let mut streams = [8080, 8081, 8082].map(|port| {
        let to: SocketAddr = (stage_address(NODE[0]), port).into();
        stage.outside.enter(|| connect_from(5555, to)).unwrap()
    });
    for round in 0..20u8 {
        for (at, stream) in (0u8..).zip(&mut streams) {
            let said = [round, at, 9];
            stream.write_all(&said).unwrap();
            let mut heard = [0; 3];
            stream.read_exact(&mut heard).unwrap();
            assert_eq!(heard, said);
        }
    }
}

fn stage_address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A connection from this very port.
fn connect_from(port: u16, to: SocketAddr) -> TcpStream {
    let SocketAddr::V4(to) = to else { panic!("IPv4 only") };
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    setsockopt(&socket, ReuseAddr, &true).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
    bind(fd, &SockaddrIn::new(0, 0, 0, 0, port)).unwrap();
    connect(fd, &SockaddrIn::from(to)).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}
