//! SCTP by a port of the node. Both ends speak it over raw sockets, for the kernel may know no SCTP.

use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use nix::sys::socket::{SockaddrStorage, recvfrom};
use shunt_lab::{Namespace, Sandbox, uninterrupted};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::stage::{GATEWAY, NODE, OUTSIDE, Stage, address, mapping};

const SCTP: i32 = 132;
const PATIENCE: Duration = Duration::from_secs(30);

/// An SCTP packet: its ports, its verification tag, and what is behind the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) ports: [u16; 2],
    pub(crate) tag: [u8; 4],
    pub(crate) payload: Vec<u8>,
}

const TAG: [u8; 4] = *b"vtag";

impl Packet {
    fn bytes(&self) -> Vec<u8> {
        let [source, destination] = self.ports.map(u16::to_be_bytes);
        let mut bytes = [&source[..], &destination, &self.tag, &[0; 4], &self.payload].concat();
        let checksum = crc32c(&bytes);
        bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// None where the checksum is wrong.
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut unsummed = bytes.to_vec();
        unsummed.get_mut(8..12)?.fill(0);
        let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let tag = [bytes[4], bytes[5], bytes[6], bytes[7]];
        let packet = Self { ports: [port(0), port(2)], tag, payload: bytes[12..].to_vec() };
        (bytes[8..12] == crc32c(&unsummed).to_le_bytes()).then_some(packet)
    }
}

pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 & 0u32.wrapping_sub(crc & 1));
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}

/// Everything of SCTP that comes to a namespace.
pub(crate) struct Raw(Socket);

impl Raw {
    pub(crate) fn open(namespace: &Namespace, like: IpAddr) -> Self {
        let domain = Domain::for_address(SocketAddr::new(like, 0));
        let open = || Socket::new(domain, Type::RAW, Some(Protocol::from(SCTP))).unwrap();
        let socket = namespace.enter(open).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    pub(crate) fn send(&self, packet: &Packet, to: IpAddr) {
        self.0.send_to(&packet.bytes(), &SockAddr::from(SocketAddr::new(to, 0))).unwrap();
    }

    /// Whether anything comes.
    pub(crate) fn hears_within(&self, patience: Duration) -> bool {
        self.0.set_read_timeout(Some(patience)).unwrap();
        uninterrupted(|| self.0.recv_from(&mut [MaybeUninit::uninit(); 64])).is_ok()
    }

    /// The next packet, and from whom; its checksum is right.
    pub(crate) fn receive(&self) -> (Packet, IpAddr) {
        let mut bytes = [0u8; 4096];
        let receive =
            || recvfrom::<SockaddrStorage>(self.0.as_raw_fd(), &mut bytes).map_err(std::io::Error::from);
        let (length, from) = uninterrupted(receive).unwrap();
        let from = from.unwrap();
        let v4 = from.as_sockaddr_in().map(|from| IpAddr::from(from.ip()));
        let from = v4.or_else(|| from.as_sockaddr_in6().map(|from| from.ip().into())).unwrap();
        // Of IPv4 a raw socket gets the IP header too.
        let header = if from.is_ipv4() { usize::from(bytes[0] & 15) * 4 } else { 0 };
        let packet = &bytes[header..length];
        (Packet::read(packet).unwrap_or_else(|| panic!("wrong checksum: {packet:02x?}")), from)
    }
}

#[test]
fn sctp_gets_through_by_the_same_port_and_by_another_and_back_with_right_checksums() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8132, 7132, "sctp"), mapping(9899, 9899, "sctp"), mapping(8132, 7000, "tcp")]);
    for (node, outside) in NODE.into_iter().zip(OUTSIDE) {
        let (node, outside) = (address(node), address(outside));
        let client = Raw::open(&stage.outside, node);
        let server = Raw::open(stage.sandboxes[0].namespace(), node);
        for (asked, inner) in [(8132, 7132), (9899, 9899)] {
            for length in [0, 1, 4, 300, 1400] {
                let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
                let question = Packet { ports: [40_000, asked], tag: TAG, payload };
                client.send(&question, node);
                let (heard, from) = server.receive();
                assert_eq!((&heard, from), (&Packet { ports: [40_000, inner], ..question.clone() }, outside));
                server.send(&Packet { ports: [inner, 40_000], ..heard }, outside);
                let (answer, from) = client.receive();
                assert_eq!((answer, from), (Packet { ports: [asked, 40_000], ..question }, node));
            }
        }
        // In pieces, of which the first says the port: how the checksum changes with it none of them says.
        let pieces = Packet { ports: [40_000, 9899], tag: TAG, payload: vec![7; 3000] };
        client.send(&pieces, node);
        let (heard, from) = server.receive();
        assert_eq!((&heard, from), (&pieces, outside));
        server.send(&Packet { ports: [9899, 40_000], ..heard }, outside);
        assert_eq!(client.receive(), (Packet { ports: [9899, 40_000], ..pieces.clone() }, node));
        client.send(&Packet { ports: [40_000, 8132], ..pieces }, node);
        assert!(!server.hears_within(Duration::from_millis(300)));
        server.0.set_read_timeout(Some(PATIENCE)).unwrap();
        // What is not mapped goes to nobody.
        client.send(&Packet { ports: [40_000, 7132], tag: TAG, payload: vec![1] }, node);
        assert!(!server.hears_within(Duration::from_millis(300)));
    }
    let flows = stage.node.agent().ask("flows").unwrap();
    let sctp = flows.as_array().unwrap().iter().filter(|flow| flow["proto"] == "sctp").count();
    assert_eq!(sctp, 4, "{flows}");
    let counted = stage.node.agent().port("one").unwrap();
    assert!(counted.to.fast >= 20 && counted.from.fast >= 20, "{counted:?}");
}

#[test]
fn sctp_gets_to_a_neighbour_and_to_the_container_itself_by_a_port_of_the_node() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8132, 7132, "sctp")]);
    stage.add("two", &[]);
    for (node, gateway) in NODE.map(address).into_iter().zip(GATEWAY.map(address)) {
        let server = Raw::open(stage.sandboxes[0].namespace(), node);
        let question = Packet { ports: [40_000, 8132], tag: TAG, payload: b"from within".to_vec() };
        let inside = Packet { ports: [40_000, 7132], ..question.clone() };
        let answer = Packet { ports: [7132, 40_000], ..question.clone() };
        let outside = Packet { ports: [8132, 40_000], ..question.clone() };
        let client = Raw::open(stage.sandboxes[1].namespace(), node);
        client.send(&question, node);
        assert_eq!(server.receive(), (inside.clone(), gateway), "a neighbour is seen as the node");
        server.send(&answer, gateway);
        assert_eq!(client.receive(), (outside.clone(), node));

        // Everything that comes is the one socket's: its own question, then its own answer. Port 40000 is the neighbour's already.
        server.send(&question, node);
        let (heard, from) = server.receive();
        assert_eq!((heard.ports[1], &heard.payload, from), (7132, &question.payload, gateway));
        server.send(&Packet { ports: [7132, heard.ports[0]], ..question.clone() }, gateway);
        assert_eq!(server.receive(), (outside, node));
    }
}

#[test]
fn sctp_gets_there_from_a_container_on_another_bridge_which_is_seen_as_itself() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8132, 7132, "sctp")]);
    let others = stage.node.network("others", "cni1", &["10.78.0.0/24", "fd78::/64"]);
    let other = Sandbox::start(&stage.lab, &stage.node, &others, "two").unwrap();
    stage.node.settle().unwrap();
    for (node, own) in NODE.map(address).into_iter().zip(other.addresses()) {
        let server = Raw::open(stage.sandboxes[0].namespace(), node);
        let client = Raw::open(other.namespace(), node);
        let question = Packet { ports: [40_000, 8132], tag: TAG, payload: b"from beside".to_vec() };
        client.send(&question, node);
        assert_eq!(server.receive(), (Packet { ports: [40_000, 7132], ..question.clone() }, own));
        server.send(&Packet { ports: [7132, 40_000], ..question.clone() }, own);
        assert_eq!(client.receive(), (Packet { ports: [8132, 40_000], ..question }, node));
    }
}
