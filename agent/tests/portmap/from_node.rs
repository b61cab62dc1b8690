//! From the node's own processes to a container by a port of the node.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use shunt_lab::{Namespace, Protocol, uninterrupted};

use crate::stage::{NODE, Stage, address, mapping};

const PATIENCE: Duration = Duration::from_secs(10);
/// What a process of the node may call it.
const NAMES: [&str; 6] = ["127.0.0.1", "127.9.9.9", "::1", NODE[0], NODE[1], "10.77.0.1"];

fn mapped() -> Stage {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    stage
}

/// A connection from inside.
fn dial(from: &Namespace, to: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = from.enter(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// A listener that says `word` to the first who comes.
fn greeter(inside: &Namespace, at: SocketAddr, word: &'static [u8]) -> std::thread::JoinHandle<()> {
    let listener = inside.enter(|| TcpListener::bind(at).unwrap()).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(word).unwrap();
    })
}

fn heard(mut stream: TcpStream) -> Vec<u8> {
    let mut word = Vec::new();
    stream.read_to_end(&mut word).unwrap();
    word
}

#[test]
fn the_node_talks_to_a_container_by_every_name_of_its_own() {
    let stage = mapped();
    let _echo = stage.echo(0, 7000);
    for name in NAMES.into_iter().chain(["0.0.0.0", "::"]) {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let mut talk = stage.open(stage.node.namespace(), protocol, name, 8080);
            talk.chat(50, 1400).unwrap_or_else(|error| panic!("{name} {protocol:?}: {error:#}"));
        }
    }
}

#[test]
fn who_asks_for_the_peers_name_is_told_the_one_that_was_asked_for() {
    let stage = mapped();
    let _echo = stage.echo(0, 7000);
    for name in NAMES {
        let to = SocketAddr::new(address(name), 8080);
        let stream = dial(stage.node.namespace(), to).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), to);
    }
}

#[test]
fn an_unconnected_socket_hears_from_whom_it_asked() {
    let stage = mapped();
    let _echo = stage.echo(0, 7000);
    let ask = |any: &str, to: SocketAddr| {
        let socket = stage.node.namespace().enter(|| UdpSocket::bind((address(any), 0)).unwrap()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        for round in 0..3u8 {
            socket.send_to(&[round; 40], to).unwrap();
            let mut heard = [0; 100];
            let (length, from) = uninterrupted(|| socket.recv_from(&mut heard)).unwrap();
            assert_eq!((from, &heard[..length]), (to, &[round; 40][..]), "{any} to {to}");
        }
    };
    for name in NAMES {
        let to = address(name);
        ask(if to.is_ipv4() { "0.0.0.0" } else { "::" }, (to, 8080).into());
        // A socket of both versions, as most servers and many clients have it.
        if let IpAddr::V4(v4) = to {
            ask("::", (v4.to_ipv6_mapped(), 8080).into());
        }
    }
}

/// However many names it asks by at a time, with datagrams small and too large for the link, each answer is from the one that was asked.
#[test]
fn an_unconnected_socket_that_asks_by_many_names_hears_from_each() {
    const LENGTHS: [usize; 3] = [40, 1_400, 9_000];
    let stage = mapped();
    let _echo = stage.echo(0, 7000);
    let ask = |any: &str, names: &[SocketAddr]| {
        let socket = stage.node.namespace().enter(|| UdpSocket::bind((address(any), 0)).unwrap()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        for length in LENGTHS {
            for (number, to) in names.iter().enumerate() {
                socket.send_to(&vec![number as u8; length], to).unwrap();
            }
            let mut missing = BTreeSet::from_iter(names.iter().copied());
            let mut heard = [0; 10_000];
            while !missing.is_empty() {
                let (got, from) = uninterrupted(|| socket.recv_from(&mut heard)).unwrap_or_else(|error| {
                    panic!("{any}, {length} bytes: nothing from {missing:?}: {error}")
                });
                assert!(missing.remove(&from), "{any}, {length} bytes: from {from}");
                let asked = names[usize::from(heard[0])];
                assert_eq!((asked, got), (from, length), "{any}: whose question it answers");
            }
        }
    };
    let names = NAMES.map(|name| SocketAddr::new(address(name), 8080));
    let [v4, v6]: [Vec<_>; 2] =
        [true, false].map(|is_v4| names.iter().copied().filter(|name| name.is_ipv4() == is_v4).collect());
    ask("0.0.0.0", &v4);
    ask("::", &v6);
    let mapped = |name: &SocketAddr| match name.ip() {
        IpAddr::V4(v4) => SocketAddr::new(v4.to_ipv6_mapped().into(), name.port()),
        IpAddr::V6(_) => *name,
    };
    ask("::", &names.iter().map(mapped).collect::<Vec<_>>());
}

#[test]
fn a_containers_loopback_and_what_it_has_not_mapped_stay_its_own() {
    let mut stage = mapped();
    stage.add("two", &[]);
    let inside = stage.sandboxes[1].namespace();
    let at = SocketAddr::new(address("127.0.0.1"), 8080);
    assert_eq!(dial(inside, at).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let greeter = greeter(inside, at, b"myself");
    assert_eq!(heard(dial(inside, at).unwrap()), b"myself");
    greeter.join().unwrap();
    for unmapped in ["127.0.0.1:8081", "10.77.0.1:7000"] {
        let refused = dial(stage.node.namespace(), unmapped.parse().unwrap());
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused, "{unmapped}");
    }
}

#[test]
fn two_nodes_whose_processes_share_a_cgroup_keep_apart() {
    let stages = [mapped(), mapped()];
    for (stage, word) in stages.iter().zip([b"one", b"two"]) {
        let own = stage.sandboxes[0].addresses()[0];
        let greeter = greeter(stage.sandboxes[0].namespace(), (own, 7000).into(), word);
        let stream = dial(stage.node.namespace(), (address("127.0.0.1"), 8080).into()).unwrap();
        assert_eq!(heard(stream), word);
        greeter.join().unwrap();
    }
}

#[test]
fn a_host_port_wins_over_a_socket_of_the_node_and_the_log_says_so() {
    let mut stage = Stage::new();
    let at = SocketAddr::new(address("127.0.0.1"), 8080);
    let node = greeter(stage.node.namespace(), at, b"node");
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    let log = stage.node.agent().log_tail();
    assert!(log.contains("a socket of the node listens") && log.contains("8080/tcp"), "{log}");
    let own = stage.sandboxes[0].addresses()[0];
    let container = greeter(stage.sandboxes[0].namespace(), (own, 7000).into(), b"container");
    assert_eq!(heard(dial(stage.node.namespace(), at).unwrap()), b"container");
    container.join().unwrap();
    // Nothing gets from the loopback to a container: who is bound to it reaches the node's own.
    assert_eq!(heard(stage.node.namespace().enter(|| from_loopback(8080)).unwrap()), b"node");
    node.join().unwrap();
}

#[test]
fn it_wins_from_outside_too_and_for_datagrams() {
    let mut stage = Stage::new();
    let node = stage.node.namespace();
    let sockets: Vec<_> = NODE
        .map(|name| SocketAddr::new(address(name), 8080))
        .into_iter()
        .map(|at| node.enter(|| (TcpListener::bind(at).unwrap(), UdpSocket::bind(at).unwrap())).unwrap())
        .collect();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let log = stage.node.agent().log_tail();
    assert!(log.contains("8080/tcp") && log.contains("8080/udp"), "{log}");
    let _echo = stage.echo(0, 7000);
    for client in [&stage.outside, stage.node.namespace()] {
        for name in NODE {
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                stage.open(client, protocol, name, 8080).chat(10, 1000).unwrap();
            }
        }
    }
    for (tcp, udp) in sockets {
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        assert_eq!(tcp.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(udp.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

/// A connection from 127.0.0.1 to itself.
fn from_loopback(port: u16) -> TcpStream {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
    bind(fd, &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    connect(fd, &SockaddrIn::new(127, 0, 0, 1, port)).unwrap();
    TcpStream::from(socket)
}

#[test]
fn a_port_of_the_loopback_alone_is_reached_there_and_from_nowhere_else() {
    let mut stage = Stage::new();
    let mut local = mapping(8080, 7000, "tcp");
    local["hostIP"] = "127.0.0.1".into();
    stage.add("one", &[local]);
    let _echo = stage.echo(0, 7000);
    stage.open(stage.node.namespace(), Protocol::Tcp, "127.0.0.1", 8080).chat(5, 100).unwrap();
    for client in [stage.node.namespace(), &stage.outside] {
        let refused = dial(client, (address(NODE[0]), 8080).into());
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}

#[test]
fn the_programs_on_sockets_are_there_as_long_as_a_host_port_is_and_outlive_the_agent() {
    let mut stage = Stage::new();
    let count = |stage: &Stage| {
        let programs = stage.node.agent().status().unwrap().programs;
        programs.iter().filter(|program| program.ifname.contains("cgroup")).count()
    };
    assert_eq!(count(&stage), 0);
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    assert_eq!(count(&stage), 8);
    let echo = stage.echo(0, 7000);
    let mut talks = [Protocol::Tcp, Protocol::Udp]
        .map(|protocol| stage.open(stage.node.namespace(), protocol, "127.0.0.1", 8080));
    talks.iter_mut().for_each(|talk| talk.chat(5, 100).unwrap());
    stage.node.agent_mut().kill().unwrap();
    talks.iter_mut().for_each(|talk| talk.chat(5, 100).unwrap());
    stage.open(stage.node.namespace(), Protocol::Udp, "::1", 8080).chat(5, 100).unwrap();
    stage.node.restart_agent().unwrap();
    assert_eq!(count(&stage), 8);
    talks.iter_mut().for_each(|talk| talk.chat(5, 100).unwrap());
    stage.open(stage.node.namespace(), Protocol::Tcp, "::1", 8080).chat(5, 100).unwrap();
    // Somebody takes one away: the agent puts it back.
    let pin = stage.node.agent().bpffs().join("v2/sockets/connect4");
    std::fs::remove_file(&pin).unwrap();
    stage.wait_until("the pin is there again", |_| pin.exists());
    stage.open(stage.node.namespace(), Protocol::Tcp, "127.0.0.1", 8080).chat(5, 100).unwrap();
    drop((talks, echo));
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    assert_eq!(count(&stage), 0);
    let refused = dial(stage.node.namespace(), (address("127.0.0.1"), 8080).into());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}
