//! A container whose link takes less than its clients': whoever sends it too much by a port of the node is told how much that is, and so
//! is whoever answers one that is masqueraded.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use nix::libc;
use serde_json::json;
use shunt_lab::{Namespace, Sandbox, patience, uninterrupted};

use crate::errors::any_like;
use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};
use crate::uncut::never_cut;
use crate::wire::Wire;

/// Bytes that a packet may have on the container's link; clients' take 1500.
const TAKES: usize = 1400;
const PATIENCE: Duration = Duration::from_secs(20);
/// More than any window that a connection begins with.
const PAYLOAD: usize = 256 << 10;

/// A stage whose containers have small links.
pub(crate) fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.network = stage.network.with("mtu", json!(TAKES)).with("ipMasq", json!(true));
    stage
}

/// Somebody on another bridge, whose link takes more, and whom nobody reaches by any bridge.
fn stranger(stage: &Stage) -> Sandbox {
    let other = stage.node.network("others", "cni1", &["10.78.0.0/24", "fd78::/64"]);
    let other = other.with("ingressPolicy", json!("isolated"));
    let sandbox = Sandbox::start(&stage.lab, &stage.node, &other, "two").unwrap();
    stage.node.settle().unwrap();
    sandbox
}

/// Bytes of a datagram's payload in a packet of `bytes`.
fn payload(like: IpAddr, bytes: usize) -> usize {
    bytes - if like.is_ipv4() { 28 } else { 48 }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n / 7) as u8).collect()
}

/// How many packets the programs dropped for their size.
fn dropped(stage: &Stage) -> u64 {
    let drops = stage.node.agent().drops().unwrap();
    drops.iter().filter(|drop| drop.reason == "too_big").map(|drop| drop.packets).sum()
}

/// Sends what is too large until the socket says so.
fn until_told(what: &str, mut send: impl FnMut(&[u8]) -> std::io::Result<usize>, bytes: usize) {
    let begun = Instant::now();
    // The first ones leave, since nobody has said anything yet.
    while !send(&vec![7; bytes]).is_err_and(|error| error.raw_os_error() == Some(libc::EMSGSIZE)) {
        assert!(begun.elapsed() < patience(PATIENCE), "{what}: nobody says how much the link takes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn assert_route_takes(from: &Namespace, to: &str) {
    let route = from.command("ip", &["route", "get", to]).unwrap();
    assert!(route.contains(&format!("mtu {TAKES}")), "{route}");
}

/// Sends a container's echo more than fits by the node's `to`, over a link that takes `link` bytes, until the programs say how much
/// does; and that much then.
pub(crate) fn assert_told(stage: &Stage, who: &str, client: &Namespace, to: SocketAddr, link: usize) {
    let before = dropped(stage);
    let socket = client.enter(|| UdpSocket::bind(any_like(to.ip())).unwrap()).unwrap();
    socket.set_read_timeout(Some(patience(PATIENCE))).unwrap();
    socket.connect(to).unwrap();
    never_cut(&socket);
    until_told(who, |bytes| socket.send(bytes), payload(to.ip(), link));
    assert!(dropped(stage) > before, "{who} by {to}: it is counted as dropped");
    assert_route_takes(client, &to.ip().to_string());
    // What has come of the other ones that had left.
    while socket.take_error().unwrap().is_some() {}
    let fits = pattern(payload(to.ip(), TAKES));
    assert!(socket.send(&[7; 2000][..=fits.len()]).is_err(), "one byte more is too much");
    socket.send(&fits).unwrap();
    let mut heard = vec![0; 2000];
    let bytes = uninterrupted(|| socket.recv(&mut heard)).unwrap();
    assert!(heard[..bytes] == fits, "{who} by {to}: {bytes} bytes came back");
}

#[test]
fn whoever_sends_too_large_a_datagram_to_a_host_port_is_told_how_much_fits() {
    let mut stage = stage();
    stage.add("one", &[mapping(8053, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let stranger = stranger(&stage);
    for node in NODE {
        let to = SocketAddr::new(address(node), 8053);
        for (who, client) in [("outside", &stage.outside), ("another network's", stranger.namespace())] {
            assert_told(&stage, who, client, to, 1500);
        }
    }
}

/// The container says that it takes as much as the client does, as one behind a tunnel would: only the node knows better.
#[test]
fn a_stream_to_a_host_port_adapts_to_the_containers_link() {
    let mut stage = stage();
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    let inside = stage.sandboxes[0].namespace();
    for ((node, gateway), own) in
        NODE.into_iter().zip(["10.77.0.1", "fd77::1"]).zip(stage.sandboxes[0].addresses())
    {
        let family = if own.is_ipv4() { "-4" } else { "-6" };
        let claims = [family, "route", "replace", "default", "via", gateway, "dev", "eth0", "advmss", "1440"];
        inside.command("ip", &claims).unwrap();
        let listener = inside.enter(|| TcpListener::bind((own, 7000)).unwrap()).unwrap();
        let to = SocketAddr::new(address(node), 8080);
        let connect = || TcpStream::connect_timeout(&to, patience(PATIENCE)).unwrap();
        let mut client = stage.outside.enter(connect).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.set_write_timeout(Some(patience(PATIENCE))).unwrap();
        server.set_read_timeout(Some(patience(PATIENCE))).unwrap();
        let before = dropped(&stage);
        let (sent, mut heard) = (pattern(PAYLOAD), vec![0; PAYLOAD]);
        std::thread::scope(|scope| {
            scope.spawn(|| client.write_all(&sent).unwrap());
            uninterrupted(|| server.read_exact(&mut heard)).unwrap_or_else(|e| panic!("by {node}: {e}"));
        });
        assert!(heard == sent, "by {node}");
        assert!(dropped(&stage) > before, "by {node}: nothing was too large");
        assert_route_takes(&stage.outside, node);
    }
}

#[test]
fn whoever_answers_a_masqueraded_container_too_largely_is_told_how_much_fits() {
    let mut stage = stage();
    stage.add("one", &[]);
    let inside = stage.sandboxes[0].namespace();
    for (outside, node) in OUTSIDE.into_iter().zip(NODE) {
        let at = SocketAddr::new(address(outside), 7001);
        let server = stage.outside.enter(|| UdpSocket::bind(at).unwrap()).unwrap();
        never_cut(&server);
        let client = inside.enter(|| UdpSocket::bind(any_like(at.ip())).unwrap()).unwrap();
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(patience(PATIENCE))).unwrap();
        }
        client.send_to(b"how much?", at).unwrap();
        let mut heard = vec![0; 2000];
        let (_, from) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
        assert_eq!(from.ip(), address(node), "it is masqueraded");
        let before = dropped(&stage);
        until_told(outside, |bytes| server.send_to(bytes, from), payload(at.ip(), 1500));
        assert!(dropped(&stage) > before, "{outside}: it is the programs' connection");
        assert_route_takes(&stage.outside, node);
        while server.take_error().unwrap().is_some() {}
        let fits = pattern(payload(at.ip(), TAKES));
        server.send_to(&fits, from).unwrap();
        let (bytes, answerer) = uninterrupted(|| client.recv_from(&mut heard)).unwrap();
        assert!(heard[..bytes] == fits && answerer == at, "{bytes} bytes from {answerer}");
    }
}

/// What a client's stack sends is summed by its device, which would spoil a quotation that is in its place.
#[test]
fn no_device_is_to_sum_what_a_sender_is_told() {
    let mut stage = stage();
    stage.add("one", &[mapping(8053, 7000, "udp")]);
    let wire = Wire::tap(&stage.outside, "eth0");
    for (node, kind, at) in [(NODE[0], 3, 34), (NODE[1], 2, 54)] {
        let to = SocketAddr::new(address(node), 8053);
        let socket = stage.outside.enter(|| UdpSocket::bind(any_like(to.ip())).unwrap()).unwrap();
        never_cut(&socket);
        socket.send_to(&vec![7; payload(to.ip(), 1500)], to).unwrap();
        let is_it =
            |frame: &[u8]| frame.len() < 300 && frame.get(at) == Some(&kind) && frame[6..12] != wire.mac();
        assert!(wire.is_summed(is_it), "by {node}");
    }
}
