//! Segments that somebody forges who knows a connection's addresses and ports, and not its sequence numbers.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Namespace, patience};

use crate::datagram::{TCP, framed, packet};
use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};
use crate::wire::Wire;

const PATIENCE: Duration = Duration::from_secs(20);
/// FIN and ACK, RST, RST and ACK.
const ENDS: [u8; 3] = [0x11, 0x04, 0x14];

/// A stage with a masqueraded container that has a host port.
fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.network = stage.network.with("ipMasq", json!(true));
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    stage
}

fn connect(from: &Namespace, to: SocketAddr, listener: &TcpListener) -> [TcpStream; 2] {
    let client = from.enter(|| TcpStream::connect_timeout(&to, patience(PATIENCE)).unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    for end in [&client, &server] {
        end.set_read_timeout(Some(patience(PATIENCE))).unwrap();
    }
    [client, server]
}

/// Both ends hear each other.
fn talk([client, server]: &mut [TcpStream; 2]) {
    for text in [b"ping", b"pong"] {
        client.write_all(text).unwrap();
        let mut heard = [0; 4];
        server.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, text);
        server.write_all(text).unwrap();
        client.read_exact(&mut heard).unwrap();
    }
}

/// How far from what was acknowledged last somebody guesses: before it, and further ahead than any window.
const GUESSES: [i32; 4] = [-1, -(1 << 20), 64 << 20, 1 << 30];

/// What was acknowledged last of what `from` has sent, as it was seen on the wire.
fn acknowledged(wire: &Wire, from: SocketAddr, to: SocketAddr) -> u32 {
    let header = if from.is_ipv4() { 14 + 20 } else { 14 + 40 };
    let [source, destination] = [to, from].map(|end| end.port().to_be_bytes());
    let ports = [source, destination].concat();
    let is_answer = |frame: &&Vec<u8>| frame.get(header..header + 4) == Some(&ports[..]);
    let seen = wire.at_hand();
    let answer = seen.iter().rfind(is_answer).expect("the wire has seen an answer");
    u32::from_be_bytes(*answer[header + 8..].first_chunk().unwrap())
}

/// A segment of this connection with flags and a sequence number of somebody's choice.
fn segment(from: SocketAddr, to: SocketAddr, flags: u8, number: u32) -> Vec<u8> {
    let [source, destination] = [from, to].map(|end| end.port().to_be_bytes());
    let numbers = [number.to_be_bytes(), number.wrapping_mul(7).to_be_bytes()].concat();
    let behind = [&source[..], &destination, &numbers, &[5 << 4, flags, 1, 0, 0, 0, 0, 0]].concat();
    packet(TCP, from.ip(), to.ip(), 64, behind)
}

/// Sends what ends a connection, by the wire outside.
fn forge(stage: &Stage, wire: &Wire, from: SocketAddr, to: SocketAddr) {
    let node = Wire::tap(stage.node.namespace(), "up0").mac();
    let known = acknowledged(wire, from, to);
    for (guess, flags) in GUESSES.into_iter().flat_map(|guess| ENDS.map(|flags| (guess, flags))) {
        let number = known.wrapping_add_signed(guess);
        wire.send(&framed(node, wire.mac(), &segment(from, to, flags, number)));
    }
}

/// The state of the connection that has this port of a client.
fn state(stage: &Stage, client: SocketAddr) -> Value {
    let flows = stage.node.agent().ask("flows").unwrap();
    let of = |flow: &&Value| flow["sport"] == client.port() && flow["src"] == client.ip().to_string();
    flows.as_array().unwrap().iter().find(of).map_or(Value::Null, |flow| flow["state"].clone())
}

/// What holds of a connection, forged upon by one of its ends: it goes on, and ends as any other.
fn assert_unmoved(stage: &Stage, ends: [TcpStream; 2], forge: impl Fn()) {
    let mut ends = ends;
    talk(&mut ends);
    let client = ends[0].local_addr().unwrap();
    forge();
    let begun = Instant::now();
    // They arrive on the processor that sends them; nobody has sent since.
    while begun.elapsed() < Duration::from_millis(100) {
        assert_eq!(state(stage, client), "established", "{client}: by what was forged");
    }
    talk(&mut ends);
    assert_eq!(state(stage, client), "established", "{client}");
    let [client_end, mut server_end] = ends;
    client_end.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(server_end.read(&mut [0]).unwrap(), 0);
    stage.wait_until("the server has acknowledged", |_| state(stage, client) == "closing");
    server_end.write_all(b"the rest").unwrap();
    drop(server_end);
    stage.wait_until("both have finished", |_| state(stage, client) == "closed");
    drop(client_end);
}

#[test]
fn forged_ends_of_a_host_ports_connection_change_nothing() {
    let stage = stage();
    let wire = Wire::tap(&stage.outside, "eth0");
    for (node, own) in NODE.into_iter().zip(stage.sandboxes[0].addresses()) {
        let inside = stage.sandboxes[0].namespace();
        let listener = inside.enter(|| TcpListener::bind(SocketAddr::new(own, 7000)).unwrap()).unwrap();
        let to = SocketAddr::new(address(node), 8080);
        let ends = connect(&stage.outside, to, &listener);
        let from = ends[0].local_addr().unwrap();
        assert_unmoved(&stage, ends, || forge(&stage, &wire, from, to));
    }
}

#[test]
fn forged_ends_of_a_masqueraded_connection_change_nothing() {
    let stage = stage();
    let wire = Wire::tap(&stage.outside, "eth0");
    for (node, outside) in NODE.into_iter().zip(OUTSIDE) {
        let at = SocketAddr::new(address(outside), 7001);
        let listener = stage.outside.enter(|| TcpListener::bind(at).unwrap()).unwrap();
        let ends = connect(stage.sandboxes[0].namespace(), at, &listener);
        let port = ends[1].peer_addr().unwrap().port();
        let to = SocketAddr::new(address(node), port);
        assert_eq!(ends[1].peer_addr().unwrap(), to);
        assert_unmoved(&stage, ends, || forge(&stage, &wire, at, to));
    }
}
