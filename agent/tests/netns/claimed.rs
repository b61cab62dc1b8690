//! Ports of the node that containers, the node and the kernel's masquerading share: everybody gets their own answers, and keeps their port
//! towards every peer for which nobody else has it.

use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};
use shunt_lab::{Echo, Namespace, uninterrupted};

use crate::masquerade::{NODE, OUTSIDE, World, any};

const PATIENCE: Duration = Duration::from_secs(5);

/// Questions of fresh sockets.
const QUESTIONS: usize = 1600;

fn ends() -> [(IpAddr, IpAddr); 2] {
    [0, 1].map(|family| (NODE[family].parse().unwrap(), OUTSIDE[family].parse().unwrap()))
}

fn udp(namespace: &Namespace, at: (IpAddr, u16)) -> UdpSocket {
    let socket = namespace.enter(|| UdpSocket::bind(at).unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Has `client` ask `server`, which answers with the question; whom the server saw.
fn asked(server: &UdpSocket, client: &UdpSocket, question: &str) -> SocketAddr {
    client.send_to(question.as_bytes(), server.local_addr().unwrap()).unwrap();
    let mut heard = [0; 64];
    let (bytes, from) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
    assert_eq!(&heard[..bytes], question.as_bytes());
    server.send_to(&heard[..bytes], from).unwrap();
    let (bytes, answerer) = uninterrupted(|| client.recv_from(&mut heard))
        .unwrap_or_else(|error| panic!("{question}, seen as {from}: {error}"));
    assert_eq!((&heard[..bytes], answerer), (question.as_bytes(), server.local_addr().unwrap()));
    from
}

/// A connection from a port of one's own.
fn tcp(namespace: &Namespace, port: u16, to: SocketAddr) -> TcpStream {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let open = || {
        let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
        setsockopt(&socket, sockopt::ReuseAddr, &true).unwrap();
        setsockopt(&socket, sockopt::SendTimeout, &nix::sys::time::TimeVal::new(5, 0)).unwrap();
        bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(any(to.ip()), port))).unwrap();
        connect(socket.as_raw_fd(), &SockaddrStorage::from(to))
            .unwrap_or_else(|error| panic!("{port}: {error}"));
        TcpStream::from(socket)
    };
    let stream = namespace.enter(open).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn chat(stream: &mut TcpStream, text: &str) {
    use std::io::{Read as _, Write as _};
    stream.write_all(text.as_bytes()).unwrap();
    let mut heard = vec![0; text.len()];
    stream.read_exact(&mut heard).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(heard, text.as_bytes());
}

#[test]
fn a_socket_has_one_port_for_all_its_peers() {
    let mut world = World::new();
    ["one", "two"].into_iter().for_each(|id| world.add(id));
    world.node.settle().unwrap();
    for (node, outside) in ends() {
        let servers = [7001, 7002, 7003].map(|port| udp(&world.outside, (outside, port)));
        // One of those that the node gives its own sockets, as every client has.
        let client = udp(world.sandboxes[0].namespace(), (any(outside), 0));
        let port = client.local_addr().unwrap().port();
        for server in &servers {
            assert_eq!(asked(server, &client, "one"), SocketAddr::new(node, port));
        }
        // The other's socket has the same port, and keeps it but for the peers that the first one has.
        let other = udp(world.sandboxes[1].namespace(), (any(outside), port));
        let free = udp(&world.outside, (outside, 7004));
        assert_eq!(asked(&free, &other, "two"), SocketAddr::new(node, port));
        assert_ne!(asked(&servers[0], &other, "two").port(), port);
        assert_eq!(asked(&servers[0], &client, "one again"), SocketAddr::new(node, port));
    }
}

#[test]
fn the_node_hears_its_answers_where_a_container_has_its_port() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    let (inside, node) = (world.sandboxes[0].namespace(), world.node.namespace());
    for (own, outside) in ends() {
        let server = udp(&world.outside, (outside, 2049));
        let client = udp(inside, (any(outside), 700));
        assert_eq!(asked(&server, &client, "a container's"), SocketAddr::new(own, 700));
        let nodes = udp(node, (any(outside), 700));
        for round in 0..3 {
            let seen = asked(&server, &nodes, "the node's");
            assert!(seen.ip() == own && seen.port() != 700, "round {round}: {seen}");
            assert_eq!(asked(&server, &client, "a container's"), SocketAddr::new(own, 700));
        }
        let echo = Echo::listen(&world.outside, outside, 2050).unwrap();
        let mut first = tcp(inside, 700, echo.address());
        chat(&mut first, "a container's");
        let mut second = tcp(node, 700, echo.address());
        for text in ["the node's", "and once more"] {
            chat(&mut second, text);
            chat(&mut first, text);
        }
        // One that the container has ended is remembered for a while, and what returned would still be the container's.
        let ended = tcp(inside, 701, echo.address());
        ended.shutdown(std::net::Shutdown::Both).unwrap();
        drop(ended);
        chat(&mut tcp(node, 701, echo.address()), "the node's after a container's");
    }
}

/// What somebody has set on its port leaves a container to the kernel's masquerading.
fn leave_to_the_kernel(world: &World, container: &str) {
    let port = || {
        let ports = world.node.agent().ports().unwrap();
        ports.into_iter().find(|port| port.container == container).unwrap()
    };
    let node = world.node.namespace();
    node.command("bridge", &["link", "set", "dev", &port().host_ifname, "locked", "on"]).unwrap();
    let begun = Instant::now();
    while port().kernels_way.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", port());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_the_kernel_masquerades_is_nobody_elses() {
    let mut world = World::new();
    ["one", "kernels"].into_iter().for_each(|id| world.add(id));
    world.node.settle().unwrap();
    leave_to_the_kernel(&world, "kernels");
    let [one, kernels] = [0, 1].map(|index| world.sandboxes[index].namespace());
    for (own, outside) in ends() {
        let server = udp(&world.outside, (outside, 7001));
        for (port, order) in [(40_001, [one, kernels]), (40_002, [kernels, one])] {
            let [first, second] = order.map(|namespace| udp(namespace, (any(outside), port)));
            assert_eq!(asked(&server, &first, "first"), SocketAddr::new(own, port));
            let seen = asked(&server, &second, "second");
            assert!(seen.ip() == own && seen.port() != port, "{seen}");
            assert_eq!(asked(&server, &first, "first"), SocketAddr::new(own, port));
            assert_eq!(asked(&server, &second, "second"), seen);
        }
        let echo = Echo::listen(&world.outside, outside, 7000).unwrap();
        for (port, order) in [(40_003, [one, kernels]), (40_004, [kernels, one])] {
            let [mut first, mut second] = order.map(|namespace| tcp(namespace, port, echo.address()));
            for text in ["this", "that"] {
                chat(&mut first, text);
                chat(&mut second, text);
            }
        }
    }
}

/// A container that has as many connections with one peer as it can, and a second one whose sockets ask the same peer: what is lost of
/// these questions, and what is answered to somebody else.
#[test]
fn questions_beside_a_container_that_has_filled_its_pool_are_answered_to_their_askers() {
    let mut world = World::with(&["--max-flows", "131072"]);
    ["flood", "asks"].into_iter().for_each(|id| world.add(id));
    world.node.settle().unwrap();
    let [flood, asks] = [0, 1].map(|index| world.sandboxes[index].namespace());
    let (_, outside) = ends()[0];
    let server = udp(&world.outside, (outside, 7001));
    let answering = server.try_clone().unwrap();
    answering.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let answer = std::thread::spawn(move || {
        let mut heard = [0; 64];
        let mut silent = 0;
        // So many pauses mean that nobody asks any more.
        while silent < 20 {
            match answering.recv_from(&mut heard) {
                Ok((bytes, from)) => {
                    silent = 0;
                    let _unheard = answering.send_to(&heard[..bytes], from);
                }
                Err(_) => silent += 1,
            }
        }
    });
    let to = SocketAddr::new(outside, 7001);
    let pool = || {
        let ask = |port: u16| {
            let socket = UdpSocket::bind((any(outside), port)).ok()?;
            socket.connect(to).ok()?;
            socket.send(b"the pool").ok()?;
            Some(socket)
        };
        // The ports that a container's sockets get, but for a few.
        (32_768..60_000).filter_map(ask).count()
    };
    let filled = flood.enter(pool).unwrap();
    assert!(filled > 20_000, "{filled}");
    let (mut lost, mut foreign) = (0, 0);
    let question = |number: usize| {
        let socket = UdpSocket::bind((any(outside), 0)).unwrap();
        socket.connect(to).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let question = format!("question {number}");
        socket.send(question.as_bytes()).unwrap();
        let mut heard = [0; 64];
        match uninterrupted(|| socket.recv(&mut heard)) {
            Ok(bytes) if heard[..bytes] == *question.as_bytes() => {}
            Ok(_) => foreign += 1,
            Err(_) => lost += 1,
        }
    };
    asks.enter(|| (0..QUESTIONS).for_each(question)).unwrap();
    answer.join().unwrap();
    assert_eq!(foreign, 0, "somebody else's answers");
    assert!(lost * 100 <= QUESTIONS * 3, "{lost} of {QUESTIONS} lost");
}
