//! Random packets of every protocol from outside, to the node, to its containers and through it: what no host port leads to comes out
//! as it was sent, byte for byte but for its hops.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use shunt_lab::{Namespace, Protocol, is_emulated, patience};
use socket2::{Domain, Socket, Type};

use crate::datagram::{ICMP, TCP, UDP, framed, packet, udp};
use crate::sctp::crc32c;
use crate::stage::{NODE, OUTSIDE, Stage, address, give, join, mapping};
use crate::unmapped::random;
use crate::wire::Wire;

const SCTP: u8 = 132;
/// Host ports that lead to the container.
const MAPPED: [(u8, u16); 3] = [(TCP, 8080), (UDP, 8053), (SCTP, 8132)];
/// Somebody beyond the node, and the node's addresses there.
const BEYOND: [&str; 2] = ["198.51.100.9", "2001:db8:1::9"];
const ROUTER: [&str; 2] = ["198.51.100.1", "2001:db8:1::1"];
/// Nobody has these: on the client's own link, beside the containers, and beyond.
const NOBODY: [[&str; 3]; 2] =
    [["192.0.2.77", "10.77.0.77", "198.51.100.77"], ["2001:db8::77", "fd77::77", "2001:db8:1::77"]];

/// All payloads begin with it, and go on with their number.
const TAG: &[u8] = b"a stray ";
const HOPS: u8 = 64;
/// How many are on their way before anybody looks.
const BATCH: u64 = 100;
const PATIENCE: Duration = Duration::from_secs(20);

/// A stage with somebody beyond it, whom everybody reaches by the node.
fn stage() -> (Stage, Namespace) {
    let mut stage = Stage::new();
    let beyond = stage.lab.namespace("beyond").unwrap();
    join(&stage.node, "up1", &beyond, "eth0");
    for family in 0..2 {
        let length = ["24", "64"][family];
        give(stage.node.namespace(), "up1", &format!("{}/{length}", ROUTER[family]));
        give(&beyond, "eth0", &format!("{}/{length}", BEYOND[family]));
        let version = ["-4", "-6"][family];
        for (namespace, router) in [(&beyond, ROUTER[family]), (&stage.outside, NODE[family])] {
            namespace.command("ip", &[version, "route", "add", "default", "via", router]).unwrap();
        }
    }
    // Which waits until the node may ask for its neighbours.
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8053, 7000, "udp"), mapping(8132, 7132, "sctp")]);
    stage.add("two", &[]);
    (stage, beyond)
}

/// What is behind an IP header: a random packet of a protocol with `payload` at its end, and to which port, if any.
fn behind(protocol: u8, state: &mut u64, payload: &[u8]) -> (Vec<u8>, u16) {
    let mut number = || random(state) as u16;
    // Every other one has a number that means something elsewhere.
    let known = [8080, 8053, 8132, 7000, 7132, 8081, 53, 0];
    let port = if number() % 2 == 0 { number() } else { known[usize::from(number() % 8)] };
    let [source, destination] = [number(), port].map(u16::to_be_bytes);
    let bytes = match protocol {
        TCP => {
            let [flags, high] = number().to_be_bytes();
            [&source[..], &destination, &[high; 8], &[0x50, flags & 0x3f, 0xff, 0xff, 0, 0, 0, 0], payload]
                .concat()
        }
        UDP => udp([u16::from_be_bytes(source), port], payload),
        SCTP => {
            let mut bytes = [&source[..], &destination, b"vtag", &[0; 4], payload].concat();
            let checksum = crc32c(&bytes);
            bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
            bytes
        }
        // Requests, replies, errors and what nobody knows; none that a neighbour or a router would be believed.
        1 => [
            &[[8, 0, 3, 11, 12, 13, 42][usize::from(number() % 7)], 0, 0, 0],
            &source[..],
            &destination,
            payload,
        ]
        .concat(),
        _ => [
            &[[128, 129, 1, 3, 4, 200][usize::from(number() % 6)], 0, 0, 0],
            &source[..],
            &destination,
            payload,
        ]
        .concat(),
    };
    (bytes, port)
}

/// Everything of these protocols that the node takes itself, from the IP header on where the kernel shows it.
fn takers(node: &Namespace) -> Vec<Socket> {
    let families = [(Domain::IPV4, ICMP[0]), (Domain::IPV6, ICMP[1])];
    let kinds =
        families.into_iter().flat_map(|(domain, icmp)| [TCP, UDP, SCTP, icmp].map(|kind| (domain, kind)));
    let open = |(domain, kind)| {
        let socket = Socket::new(domain, Type::RAW, Some(i32::from(kind).into())).unwrap();
        socket.set_recv_buffer_size(1 << 20).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    kinds.map(|kind| node.enter(|| open(kind)).unwrap()).collect()
}

/// The number of a stray, by its payload.
fn number_of(bytes: &[u8]) -> Option<u64> {
    let at = bytes.windows(TAG.len()).position(|window| window == TAG)? + TAG.len();
    Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Whose it is: IPv4 or IPv6 packets' source.
fn is_clients(packet: &[u8]) -> bool {
    let source = if packet[0] >> 4 == 4 {
        packet.get(12..16).map(<[u8]>::to_vec)
    } else {
        packet.get(8..24).map(<[u8]>::to_vec)
    };
    OUTSIDE.map(address).iter().any(|client| match client {
        IpAddr::V4(v4) => source.as_deref() == Some(&v4.octets()[..]),
        IpAddr::V6(v6) => source.as_deref() == Some(&v6.octets()[..]),
    })
}

/// Packets that are on their way: as they have to come out, each at one of the places or nowhere.
#[derive(Default)]
struct Awaited {
    packets: BTreeMap<u64, (usize, Vec<u8>)>,
    came: u64,
}

impl Awaited {
    /// A packet, or what of it is behind the header, has come out somewhere.
    fn comes(&mut self, place: usize, seen: &[u8], is_whole: bool) {
        let Some(number) = number_of(seen) else { return };
        let Some((expected_place, expected)) = self.packets.remove(&number) else {
            panic!("stray {number} comes out at {place}, where it is not for: {seen:02x?}");
        };
        let header = if is_whole { 0 } else { 40 };
        assert_eq!((place, seen), (expected_place, &expected[header..]), "stray {number}");
        self.came += 1;
    }
}

/// How many are sent; an emulated processor has no time for so many.
fn strays() -> u64 {
    if is_emulated() { 5_000 } else { 100_000 }
}

#[test]
fn random_packets_come_out_as_they_were_sent() {
    let strays = strays();
    let (stage, beyond) = stage();
    let [one, two] = &stage.sandboxes[..] else { unreachable!("two were added") };
    let wire = Wire::tap(&stage.outside, "eth0");
    let into = Wire::tap(stage.node.namespace(), "up0").mac();
    let taps =
        [Wire::tap(one.namespace(), "eth0"), Wire::tap(two.namespace(), "eth0"), Wire::tap(&beyond, "eth0")];
    let takers = takers(stage.node.namespace());
    // Where it comes out: at the taps in their order, and then at the node itself.
    let whole = |family: usize| {
        let node = [NODE[family], ["10.77.0.1", "fd77::1"][family], ROUTER[family]]
            .map(|own| (address(own), taps.len()));
        let [one, two] = [(one.addresses()[family], 0), (two.addresses()[family], 1)];
        let nobody = NOBODY[family].map(|whom| (address(whom), usize::MAX));
        [&node[..], &[one, two, (address(BEYOND[family]), 2)], &nobody].concat()
    };
    let targets = [whole(0), whole(1)];
    let (mut state, mut awaited, mut sent) = (2, Awaited::default(), 0);
    let mut number = 0;
    while number < strays {
        let family = (random(&mut state) % 2) as usize;
        let (to, place) = targets[family][(random(&mut state) % targets[family].len() as u64) as usize];
        let protocol = [TCP, UDP, SCTP, ICMP[family]][(random(&mut state) % 4) as usize];
        let filling = (random(&mut state) % 600) as usize;
        let payload = [TAG, &number.to_be_bytes(), &vec![number as u8; filling]].concat();
        let (behind, port) = behind(protocol, &mut state, &payload);
        if place == taps.len() && MAPPED.contains(&(protocol, port)) {
            continue;
        }
        let from = address(OUTSIDE[family]);
        let stray = packet(protocol, from, to, HOPS, behind.clone());
        if place <= taps.len() {
            let hops = if place < taps.len() { HOPS - 1 } else { HOPS };
            awaited.packets.insert(number, (place, packet(protocol, from, to, hops, behind)));
            sent += 1;
        }
        wire.send(&framed(into, wire.mac(), &stray));
        number += 1;
        if number % BATCH == 0 || number == strays {
            gather(&taps, &takers, &mut awaited);
        }
    }
    let begun = Instant::now();
    while !awaited.packets.is_empty() && begun.elapsed() < patience(PATIENCE) {
        gather(&taps, &takers, &mut awaited);
    }
    let lost: Vec<_> = awaited.packets.iter().take(5).collect();
    assert!(awaited.packets.is_empty(), "{} of {sent} did not come out: {lost:02x?}", awaited.packets.len());
    assert_eq!(awaited.came, sent);
    assert!(sent > strays / 3);
    let flows = stage.node.agent().ask("flows").unwrap();
    assert_eq!(flows.as_array().map(Vec::len), Some(0), "{flows}");
    // And the mapped ports lead there as before.
    let _echo = stage.echo(0, 7000);
    for node in NODE {
        stage.open(&stage.outside, Protocol::Udp, node, 8053).chat(20, 1000).unwrap();
    }
}

/// Takes what has come out so far.
fn gather(taps: &[Wire], takers: &[Socket], awaited: &mut Awaited) {
    for (place, tap) in taps.iter().enumerate() {
        for frame in tap.at_hand() {
            let packet = &frame[14..];
            if matches!(frame[12..14], [0x08, 0x00] | [0x86, 0xdd]) && is_clients(packet) {
                awaited.comes(place, packet, true);
            }
        }
    }
    for (at, mut taker) in takers.iter().enumerate() {
        let is_v4 = at < takers.len() / 2;
        let mut seen = [0; 2048];
        while let Ok(length) = taker.read(&mut seen) {
            let packet = &seen[..length];
            if !is_v4 || is_clients(packet) {
                awaited.comes(taps.len(), packet, is_v4);
            }
        }
    }
}
