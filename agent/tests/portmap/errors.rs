//! ICMP errors about what goes by host ports reach whom they are for, and say what it knows.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use shunt_lab::{Namespace, uninterrupted};

use crate::stage::{NODE, OUTSIDE, Stage, address, give, mapping};

/// A client behind the host outside, and that one's addresses on their link.
const FAR: [&str; 2] = ["198.51.100.9", "2001:db8:1::9"];
const ROUTER: [&str; 2] = ["198.51.100.1", "2001:db8:1::1"];

const PATIENCE: Duration = Duration::from_secs(30);
/// More than any window that a connection begins with.
const PAYLOAD: usize = 256 << 10;

/// Somebody behind the host outside, which passes on packets of 1280 bytes at most.
fn behind_a_narrow_link(stage: &Stage) -> Namespace {
    let far = stage.lab.namespace("far").unwrap();
    stage.outside.pair("far0", &far, "eth0").unwrap();
    let (outside, node) = (&stage.outside, stage.node.namespace());
    outside.command("ip", &["link", "set", "far0", "mtu", "1280"]).unwrap();
    for sysctl in ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"] {
        outside.sysctl(sysctl, "1").unwrap();
    }
    for (family, length) in ["24", "64"].into_iter().enumerate() {
        give(outside, "far0", &format!("{}/{length}", ROUTER[family]));
        give(&far, "eth0", &format!("{}/{length}", FAR[family]));
        far.command("ip", &["route", "add", NODE[family], "via", ROUTER[family]]).unwrap();
        node.command("ip", &["route", "add", FAR[family], "via", OUTSIDE[family]]).unwrap();
    }
    far
}

#[test]
fn a_container_learns_how_much_the_path_to_a_client_takes() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    let far = behind_a_narrow_link(&stage);
    let inside = stage.sandboxes[0].namespace();
    for ((node, client), own) in NODE.into_iter().zip(FAR).zip(stage.sandboxes[0].addresses()) {
        let listener = inside.enter(|| TcpListener::bind((own, 7000)).unwrap()).unwrap();
        let to = SocketAddr::new(address(node), 8080);
        let mut stream = far.enter(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let sent: Vec<u8> = (0..PAYLOAD).map(|n| (n / 7) as u8).collect();
        let mut heard = vec![0; PAYLOAD];
        std::thread::scope(|scope| {
            scope.spawn(|| server.write_all(&sent).unwrap());
            uninterrupted(|| stream.read_exact(&mut heard)).unwrap_or_else(|e| panic!("from {node}: {e}"));
        });
        assert!(heard == sent, "from {node}");
        let route = inside.command("ip", &["route", "get", client]).unwrap();
        assert!(route.contains("mtu 1280"), "the container's route to {client}: {route}");
    }
}

/// Any address and port, of the version of `like`.
pub(crate) fn any_like(like: IpAddr) -> SocketAddr {
    SocketAddr::new(address(if like.is_ipv6() { "::" } else { "0.0.0.0" }), 0)
}

/// Sends to `to` until an error comes back, and returns its kind. Hosts say such a thing once a second at most.
pub(crate) fn error_from(client: &UdpSocket, to: SocketAddr) -> ErrorKind {
    client.connect(to).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let outcome = client.send(b"anybody?").and_then(|_| uninterrupted(|| client.recv(&mut [0; 8])));
        match outcome {
            Ok(_) => panic!("{to} answers"),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return error.kind(),
        }
    }
    panic!("no word from {to}");
}

#[test]
fn whoever_asks_for_a_port_that_the_container_has_closed_is_refused() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8053, 7000, "udp")]);
    stage.add("two", &[]);
    let before = stage.node.agent().port("one").unwrap();
    for node in NODE {
        let to = SocketAddr::new(address(node), 8053);
        for (who, client) in [("outside", &stage.outside), ("a neighbour", stage.sandboxes[1].namespace())] {
            let socket = client.enter(|| UdpSocket::bind(any_like(to.ip())).unwrap()).unwrap();
            assert_eq!(error_from(&socket, to), ErrorKind::ConnectionRefused, "{who} by {node}");
        }
    }
    let after = stage.node.agent().port("one").unwrap();
    assert!(after.from.fast >= before.from.fast + 4, "it said so by the fast path: {after:?}");
}

#[test]
fn a_container_hears_that_its_client_is_gone() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8053, 7000, "udp")]);
    for (node, own) in NODE.into_iter().zip(stage.sandboxes[0].addresses()) {
        let inside = stage.sandboxes[0].namespace();
        let server = inside.enter(|| UdpSocket::bind((own, 7000)).unwrap()).unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let client = stage.outside.enter(|| UdpSocket::bind(any_like(own)).unwrap()).unwrap();
        client.send_to(b"who?", (address(node), 8053)).unwrap();
        let (_, seen) = uninterrupted(|| server.recv_from(&mut [0; 8])).unwrap();
        drop(client);
        assert_eq!(error_from(&server, seen), ErrorKind::ConnectionRefused, "by {node}");
    }
}
