//! After a DEL whoever talked to the container gets one error, or the next container that has the host port: never the dead address.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use shunt_lab::{Namespace, Sandbox, uninterrupted};

use crate::errors::any_like;
use crate::stage::{NODE, Stage, address, mapping};

const PATIENCE: Duration = Duration::from_secs(10);
/// How long an error may take.
const SOON: Duration = Duration::from_secs(2);

fn connected(inside: &Namespace, to: SocketAddr) -> UdpSocket {
    let socket = inside.enter(|| UdpSocket::bind(any_like(to.ip())).unwrap()).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket
}

/// What comes back for one datagram.
fn asked(socket: &UdpSocket) -> std::io::Result<usize> {
    socket.send(b"anybody?").and_then(|_| uninterrupted(|| socket.recv(&mut [0; 8])))
}

fn stream(inside: &Namespace, to: SocketAddr) -> TcpStream {
    let stream = inside.enter(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn echoes(mut stream: &TcpStream) -> std::io::Result<()> {
    stream.write_all(b"hello")?;
    uninterrupted(|| stream.read_exact(&mut [0; 5]))
}

#[test]
fn clients_in_containers_get_one_error_and_then_the_next_owner() {
    let mut stage = Stage::new();
    for setting in ["net/ipv4/icmp_ratelimit", "net/ipv6/icmp/ratelimit"] {
        stage.node.namespace().sysctl(setting, "0").unwrap();
    }
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    stage.add("neighbor", &[]);
    let others = stage.node.network("others", "cni1", &["10.78.0.0/24", "fd78::/64"]);
    let other = Sandbox::start(&stage.lab, &stage.node, &others, "other").unwrap();
    // It says nothing when its container goes.
    let _gone = stage.echo(0, 7000);
    let mut clients = Vec::new();
    for (name, inside) in [
        ("outside", &stage.outside),
        ("neighbour", stage.sandboxes[1].namespace()),
        ("other", other.namespace()),
    ] {
        for node in NODE {
            let to = SocketAddr::new(address(node), 8080);
            let (udp, tcp) = (connected(inside, to), stream(inside, to));
            assert_eq!(asked(&udp).unwrap(), 8, "{name}");
            echoes(&tcp).unwrap();
            clients.push((format!("{name} by {node}"), udp, tcp));
        }
    }
    stage.sandboxes.remove(0).delete(&stage.node, &stage.network).unwrap();
    for (name, udp, tcp) in &clients {
        let begun = Instant::now();
        let told = loop {
            match asked(udp) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => break error,
                _ => assert!(begun.elapsed() < SOON, "{name}: it is told nothing"),
            }
        };
        assert_eq!(told.kind(), ErrorKind::ConnectionRefused, "{name}");
        let begun = Instant::now();
        assert!(echoes(tcp).is_err(), "{name}");
        assert!(begun.elapsed() < SOON, "{name}: after {:?}", begun.elapsed());
    }
    // Another address than before: the neighbour's is taken, and the first one's is the last to be given again.
    stage.add("two", &[mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(1, 7000);
    for (name, udp, _) in &clients {
        let begun = Instant::now();
        while asked(udp).is_err() {
            assert!(begun.elapsed() < SOON, "{name}: the next owner is not reached");
        }
    }
}

#[test]
fn connections_of_the_nodes_own_sockets_end_at_once() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    stage.add("other", &[mapping(8090, 7000, "tcp")]);
    let (_gone, _other) = (stage.echo(0, 7000), stage.echo(1, 7000));
    let node = stage.node.namespace();
    let to = |name: &str, port| stream(node, SocketAddr::new(address(name), port));
    let ended = ["127.0.0.1", "::1", NODE[0], NODE[1]].map(|name| (name, to(name, 8080)));
    let kept = to("127.0.0.1", 8090);
    ended.iter().for_each(|(_, tcp)| echoes(tcp).unwrap());
    stage.sandboxes.remove(0).delete(&stage.node, &stage.network).unwrap();
    for (name, mut tcp) in ended {
        let begun = Instant::now();
        let told = tcp.read(&mut [0; 5]);
        assert!(begun.elapsed() < SOON, "{name}: after {:?}, {told:?}", begun.elapsed());
    }
    echoes(&kept).unwrap();
}
