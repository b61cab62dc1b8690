//! ipMasq of echoes by the programs. A ping socket asks: its port is the identifier, and the kernel sees to the rest of the header.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt,
};
use shunt_lab::{Namespace, uninterrupted};
use shunt_netlink::conntrack;

use crate::masquerade::{NODE, OUTSIDE, World, any};
use crate::masqueraded::far;

const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an echo's header, where its identifier stands in it, and which bytes the kernel writes.
const HEADER: usize = 8;
const IDENTIFIER: std::ops::Range<usize> = 4..6;

/// The types of a request and of a reply.
fn types(like: IpAddr) -> [u8; 2] {
    if like.is_ipv4() { [8, 0] } else { [128, 129] }
}

fn protocol(like: IpAddr) -> SockProtocol {
    if like.is_ipv4() { SockProtocol::Icmp } else { SockProtocol::IcmpV6 }
}

fn open(namespace: &Namespace, like: IpAddr, kind: SockType) -> UdpSocket {
    let family = if like.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let made = namespace.enter(|| socket(family, kind, SockFlag::SOCK_CLOEXEC, protocol(like)).unwrap());
    let socket = UdpSocket::from(made.unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Asks for echoes under one identifier.
struct Pinger(UdpSocket);

impl Pinger {
    fn new(namespace: &Namespace, like: IpAddr, identifier: u16) -> Self {
        // A namespace begins without anybody who may have such a socket.
        namespace.sysctl("net/ipv4/ping_group_range", "0 2147483647").unwrap();
        let pinger = open(namespace, like, SockType::Datagram);
        let own: SocketAddr = (any(like), identifier).into();
        bind(pinger.as_raw_fd(), &SockaddrStorage::from(own)).unwrap();
        Self(pinger)
    }

    fn ask(&self, whom: IpAddr, sequence: u16, payload: &[u8]) {
        let request = [&[types(whom)[0], 0, 0, 0, 0, 0][..], &sequence.to_be_bytes(), payload].concat();
        self.0.send_to(&request, (whom, 0)).unwrap();
    }

    /// The next reply from `whom`: its sequence number and its payload.
    fn hear(&self, whom: IpAddr, identifier: u16) -> (u16, Vec<u8>) {
        let mut heard = vec![0; 65_536];
        let (bytes, from) = uninterrupted(|| self.0.recv_from(&mut heard)).unwrap();
        heard.truncate(bytes);
        assert_eq!(from.ip(), whom);
        assert_eq!((heard[0], &heard[IDENTIFIER]), (types(whom)[1], &identifier.to_be_bytes()[..]));
        (u16::from_be_bytes([heard[6], heard[7]]), heard.split_off(HEADER))
    }
}

/// Everything of ICMP that comes to a namespace.
struct Witness(UdpSocket);

impl Witness {
    fn new(namespace: &Namespace, like: IpAddr) -> Self {
        Self(open(namespace, like, SockType::Raw))
    }

    /// The next request: who asks, the IP header where the kernel shows it, and the message.
    fn request(&self) -> (IpAddr, Vec<u8>, Vec<u8>) {
        loop {
            let mut seen = vec![0; 65_536];
            let (bytes, from) = uninterrupted(|| self.0.recv_from(&mut seen)).unwrap();
            seen.truncate(bytes);
            let header = if from.is_ipv4() { usize::from(seen[0] & 15) * 4 } else { 0 };
            let message = seen.split_off(header);
            if message[0] == types(from.ip())[0] {
                return (from.ip(), seen, message);
            }
        }
    }
}

fn identifier(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[4], message[5]])
}

/// Whether the node's conntrack knows of an echo with `whom`.
fn is_tracked(world: &World, whom: IpAddr) -> bool {
    let tracked = world.node.namespace().enter(|| conntrack::tracked_connections().unwrap()).unwrap();
    tracked.iter().any(|connection| {
        connection.original.protocol == protocol(whom) as u8 && connection.original.destination.ip() == whom
    })
}

fn addresses(texts: [&str; 2]) -> impl Iterator<Item = IpAddr> {
    texts.into_iter().map(|text| text.parse().unwrap())
}

#[test]
fn an_echo_never_meets_netfilter() {
    const COUNT: u16 = 20;
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    let before = world.node.agent().port("one").unwrap();
    for (outside, node) in addresses(OUTSIDE).zip(addresses(NODE)) {
        let own = 700 + u16::from(outside.is_ipv6());
        let witness = Witness::new(&world.outside, outside);
        let pinger = Pinger::new(world.sandboxes[0].namespace(), outside, own);
        for sequence in 0..COUNT {
            let payload = vec![sequence as u8; 56];
            pinger.ask(outside, sequence, &payload);
            assert_eq!(pinger.hear(outside, own), (sequence, payload));
            let (from, _, message) = witness.request();
            assert_eq!((from, identifier(&message)), (node, own), "whom the world saw");
        }
        assert!(!is_tracked(&world, outside), "{outside} is conntrack's");
    }
    let after = world.node.agent().port("one").unwrap();
    assert!(after.from.fast >= before.from.fast + 2 * u64::from(COUNT), "out: {before:?} {after:?}");
    assert!(after.to.fast >= before.to.fast + 2 * u64::from(COUNT), "back: {before:?} {after:?}");
    let flows = world.node.agent().ask("flows").unwrap();
    let told = |proto: &str, identifier: u16| {
        let mut flows = flows.as_array().unwrap().iter();
        flows.any(|flow| {
            flow["proto"] == proto
                && [&flow["sport"], &flow["translated"]["sport"]].iter().all(|port| **port == identifier)
                && (flow["dport"].as_u64(), flow["packets"].as_u64()) == (Some(0), Some(2 * u64::from(COUNT)))
        })
    };
    assert!(told("icmp", 700) && told("icmpv6", 701), "{flows}");
    let asked = world.node.agent().ask_with("flows", &["--proto", "icmpv6", "--port", "701"]).unwrap();
    assert_eq!(asked.as_array().map(Vec::len), Some(1), "{asked}");
    for outside in OUTSIDE {
        let packet = format!("icmp {outside}");
        let arguments = ["--from", "pods/one/eth0", "--packet", &packet];
        let explained = world.node.agent().ask_with("explain", &arguments).unwrap();
        assert_eq!(
            (&explained["verdict"], &explained["to"][0]),
            (&"deliver".into(), &"up0".into()),
            "{explained}"
        );
    }
}

/// Has each of them ask for itself, by turns, and hear every reply to what it has asked, once.
fn ask_by_turns(pingers: [&Pinger; 2], whom: IpAddr, identifier: u16) {
    const COUNT: u16 = 30;
    let payload = |who: usize, sequence: u16| format!("{who} asks for {sequence}").into_bytes();
    for sequence in 0..COUNT {
        for (who, pinger) in pingers.iter().enumerate() {
            pinger.ask(whom, sequence, &payload(who, sequence));
        }
    }
    for (who, pinger) in pingers.into_iter().enumerate() {
        let mut wanted: Vec<_> = (0..COUNT).map(|sequence| (sequence, payload(who, sequence))).collect();
        while !wanted.is_empty() {
            let heard = pinger.hear(whom, identifier);
            let others = payload(1 - who, heard.0);
            match wanted.iter().position(|wanted| *wanted == heard) {
                Some(at) => _ = wanted.remove(at),
                None => assert_eq!(heard.1, others, "{who} hears something twice"),
            }
        }
    }
}

#[test]
fn the_node_and_a_container_may_ask_the_same_one_under_one_identifier() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    for outside in addresses(OUTSIDE) {
        let nodes = Pinger::new(world.node.namespace(), outside, 710);
        let inside = Pinger::new(world.sandboxes[0].namespace(), outside, 710);
        ask_by_turns([&nodes, &inside], outside, 710);
        // Of which some are in fragments.
        for (pinger, byte) in [(&inside, 1), (&nodes, 2)] {
            let payload = vec![byte; 4000];
            pinger.ask(outside, 99, &payload);
            while pinger.hear(outside, 710) != (99, payload.clone()) {}
        }
    }
}

#[test]
fn two_containers_that_ask_under_one_identifier_are_told_apart() {
    let mut world = World::new();
    world.add("one");
    world.add("two");
    world.node.settle().unwrap();
    for outside in addresses(OUTSIDE) {
        let witness = Witness::new(&world.outside, outside);
        let pingers = [0, 1].map(|n| Pinger::new(world.sandboxes[n].namespace(), outside, 720));
        let seen = pingers.each_ref().map(|pinger| {
            pinger.ask(outside, 1, b"who am I?");
            assert_eq!(pinger.hear(outside, 720), (1, b"who am I?".to_vec()));
            identifier(&witness.request().2)
        });
        assert!(seen[0] == 720 && seen[1] != 720, "{seen:?}");
    }
}

#[test]
fn a_large_echo_is_masqueraded_in_fragments() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    for (outside, node) in addresses(OUTSIDE).zip(addresses(NODE)) {
        let witness = Witness::new(&world.outside, outside);
        let pinger = Pinger::new(world.sandboxes[0].namespace(), outside, 730);
        let payload: Vec<u8> = (0..9000).map(|n| (n / 11) as u8).collect();
        for sequence in [1, 2] {
            pinger.ask(outside, sequence, &payload);
            assert_eq!(pinger.hear(outside, 730), (sequence, payload.clone()), "{outside}");
            assert_eq!(witness.request().0, node);
        }
        assert!(!is_tracked(&world, outside), "{outside}");
    }
}

/// Asks until an error comes back, and returns its kind.
fn error_from(pinger: &Pinger, whom: IpAddr, payload: &[u8]) -> ErrorKind {
    pinger.0.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let request = [&[types(whom)[0], 0, 0, 0, 0, 0, 0, 1][..], payload].concat();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let sent = pinger.0.send_to(&request, (whom, 0));
        match sent.and_then(|_| uninterrupted(|| pinger.0.recv(&mut [0; 2000]))) {
            Ok(_) => panic!("{whom} answers"),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return error.kind(),
        }
    }
    panic!("no word from the way to {whom}");
}

#[test]
fn a_container_hears_what_routers_say_of_its_echoes() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    let (far, there) = far(&world);
    far.command("ip", &["link", "set", "eth0", "mtu", "1280"]).unwrap();
    let inside = world.sandboxes[0].namespace();
    for there in there {
        // A hop each: the node, and the router behind it, as traceroute wants to know.
        for hops in [1, 2] {
            let pinger = Pinger::new(inside, there, 740 + hops as u16);
            if there.is_ipv4() {
                setsockopt(&pinger.0, sockopt::Ipv4RecvErr, &true).unwrap();
                setsockopt(&pinger.0, sockopt::Ipv4Ttl, &hops).unwrap();
            } else {
                setsockopt(&pinger.0, sockopt::Ipv6RecvErr, &true).unwrap();
                setsockopt(&pinger.0, sockopt::Ipv6Ttl, &hops).unwrap();
            }
            assert_eq!(error_from(&pinger, there, b"anybody?"), ErrorKind::HostUnreachable, "{hops} hops");
        }
        // The link there takes 1280 bytes.
        let pinger = Pinger::new(inside, there, 745);
        let payload = vec![7; 1400];
        pinger.ask(there, 1, &payload);
        let begun = Instant::now();
        while !inside.command("ip", &["route", "get", &there.to_string()]).unwrap().contains("mtu 1280") {
            assert!(begun.elapsed() < PATIENCE, "the container does not know what the way to {there} takes");
            std::thread::sleep(Duration::from_millis(50));
        }
        pinger.ask(there, 2, &payload);
        assert_eq!(pinger.hear(there, 745), (2, payload));
        assert!(!is_tracked(&world, there), "{there}");
    }
}

/// What the world saw of one request of a container's: the IP header's words but for its identification and its checksum, and the
/// message.
fn seen(world: &mut World) -> Vec<(IpAddr, Vec<u8>, Vec<u8>)> {
    world.add("one");
    world.node.settle().unwrap();
    let request = |outside: IpAddr| {
        let witness = Witness::new(&world.outside, outside);
        let pinger = Pinger::new(world.sandboxes[0].namespace(), outside, 750);
        pinger.ask(outside, 1, b"the same bytes");
        assert_eq!(pinger.hear(outside, 750), (1, b"the same bytes".to_vec()));
        let (from, mut header, message) = witness.request();
        for changing in [4..6, 10..12] {
            header.get_mut(changing).unwrap_or_default().fill(0);
        }
        (from, header, message)
    };
    addresses(OUTSIDE).map(request).collect()
}

#[test]
fn an_echo_leaves_the_programs_as_it_leaves_the_kernel() {
    let mut by_kernel = World::with(&["--uplink", "elsewhere"]);
    let kernels = seen(&mut by_kernel);
    assert!(addresses(OUTSIDE).all(|outside| is_tracked(&by_kernel, outside)), "none of the kernel's");
    drop(by_kernel);
    let mut by_programs = World::new();
    assert_eq!(seen(&mut by_programs), kernels);
    assert!(!addresses(OUTSIDE).any(|outside| is_tracked(&by_programs, outside)));
}
