//! Traffic: flows of every kind between containers, each a script of packets that goes on from phase to phase, whatever becomes of its packets.

#[path = "odd.rs"]
mod odd;
#[path = "phases.rs"]
mod phases;

use std::net::IpAddr;

use crate::packets::{ACK, Between, FIN, RST, SCTP, SYN, TCP, UDP};

/// The containers' places, and the node's.
pub(crate) const ONE: usize = 0;
pub(crate) const TWO: usize = 1;
pub(crate) const THREE: usize = 2;
pub(crate) const NODE: usize = 3;

/// The IPv4 and the IPv6 address of each place.
pub(crate) type Addresses = [[IpAddr; 2]; 4];

/// The hardware addresses of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The sender's, and the receiver's or the group's.
    Plain,
    /// To the node, which routes it.
    ByGateway,
    /// To all, though the packet is for one.
    ToAll,
    /// To a station that nobody is.
    ToNobody,
    /// From another station behind the sender's port.
    FromOther,
    /// In a VLAN.
    Tagged,
}

/// One packet: where it is sent, for whom, and what it is.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) frame: Frame,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) packet: Vec<u8>,
    pub(crate) name: String,
    /// Whether the fast path may take it.
    pub(crate) is_data: bool,
    /// Whether only connection tracking finds fault with it: its receiver drops it as well.
    pub(crate) is_faulty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Opened as usual, and closed in halves.
    Tcp,
    /// Opened as usual, and reset by who opened it.
    TcpReset,
    /// Both ends open it at once.
    TcpSimultaneous,
    /// Reset in place of an answer.
    TcpRefused,
    Udp,
    /// Nobody answers.
    UdpOneWay,
    /// Answers come from who was asked, but say that nobody listens.
    UdpUnreachable,
    /// Questions are too long for one packet.
    Fragments,
    Echo,
    Sctp,
    /// To a group, of which everybody is.
    Group,
    /// To everybody.
    Broadcast,
    /// Opened by the node's own socket.
    FromNode,
    /// A question for a hardware address, and its answer.
    Arp,
}

/// What of a flow is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its first packets.
    First,
    /// So many packets of each direction.
    On(usize),
    /// Its last packets.
    End,
}

/// One flow of the vector.
pub(crate) struct Flow {
    kind: Kind,
    ends: [usize; 2],
    between: Between,
    ports: [u16; 2],
    /// The next sequence number of each direction.
    next: [u32; 2],
    sent: u16,
    name: String,
}

/// All flows of a round, by what they are and where they go; every second one by IPv6.
const VECTOR: [(Kind, usize, usize, u16); 29] = [
    (Kind::Tcp, ONE, TWO, 7000),
    (Kind::Tcp, ONE, TWO, 7001),
    (Kind::Tcp, THREE, TWO, 7000),
    (Kind::Tcp, TWO, ONE, 7000),
    (Kind::TcpReset, ONE, TWO, 7000),
    (Kind::TcpReset, ONE, TWO, 7100),
    (Kind::TcpSimultaneous, ONE, TWO, 7000),
    (Kind::TcpRefused, ONE, TWO, 7000),
    (Kind::Udp, ONE, TWO, 7000),
    (Kind::Udp, ONE, TWO, 7001),
    (Kind::Udp, ONE, TWO, 7100),
    (Kind::Udp, THREE, TWO, 7000),
    (Kind::Udp, TWO, ONE, 7000),
    (Kind::Udp, ONE, NODE, 7000),
    (Kind::Udp, ONE, NODE, 7001),
    (Kind::UdpOneWay, ONE, TWO, 7200),
    (Kind::UdpUnreachable, ONE, TWO, 7000),
    (Kind::Fragments, ONE, TWO, 7000),
    (Kind::Echo, ONE, TWO, 0),
    (Kind::Echo, ONE, NODE, 0),
    (Kind::Sctp, ONE, TWO, 7000),
    (Kind::Sctp, THREE, TWO, 7001),
    (Kind::Group, ONE, NODE, 7000),
    (Kind::Group, THREE, NODE, 7001),
    (Kind::Broadcast, ONE, NODE, 7001),
    (Kind::Udp, ONE, ONE, 7000),
    (Kind::FromNode, NODE, TWO, 7000),
    (Kind::FromNode, NODE, TWO, 7001),
    (Kind::Arp, ONE, TWO, 0),
];

/// Where what is for many goes, by IPv4 and IPv6.
const GROUP: [&str; 2] = ["239.1.2.3", "ff0e::123"];
const EVERYBODY: [&str; 2] = ["10.77.0.255", "ff02::123"];

/// How many client's ports a vector takes.
pub(crate) const PORTS: u16 = 2 * VECTOR.len() as u16;

/// All flows, by IPv4 and by IPv6, whose client's ports begin here.
pub(crate) fn vector(addresses: &Addresses, first_port: u16) -> Vec<Flow> {
    let kinds = VECTOR.into_iter().flat_map(|kind| [(kind, 0), (kind, 1)]);
    kinds.zip(first_port..).map(|((kind, family), own)| Flow::new(addresses, kind, family, own)).collect()
}

pub(crate) const NAMES: [&str; 4] = ["one", "two", "three", "node"];

impl Flow {
    /// By the family, and from the port `own`.
    fn new(addresses: &Addresses, of: (Kind, usize, usize, u16), family: usize, own: u16) -> Self {
        let (kind, from, to, port) = of;
        let address = match kind {
            Kind::Group => GROUP[family].parse().expect("an address"),
            Kind::Broadcast => EVERYBODY[family].parse().expect("an address"),
            _ => addresses[to][family],
        };
        Self {
            kind,
            ends: [from, to],
            between: Between { from: addresses[from][family], to: address },
            ports: [own, port],
            next: [u32::from(own) << 8, 1 << 30 | u32::from(own) << 8],
            sent: 0,
            name: format!("{kind:?}{} {}→{}:{port}", ["4", "6"][family], NAMES[from], NAMES[to]),
        }
    }

    fn back(&self) -> Between {
        Between { from: self.between.to, to: self.between.from }
    }

    /// The verification tags, of what the client receives and of what the server does.
    fn tags(&self) -> [u32; 2] {
        [0x1000_0000, 0x2000_0000].map(|tag| tag | u32::from(self.ports[0]))
    }

    fn towards(&self, direction: usize) -> (Between, [u16; 2]) {
        let [a, b] = self.ports;
        if direction == 0 { (self.between, [a, b]) } else { (self.back(), [b, a]) }
    }

    /// Bytes that no other packet has.
    fn payload(&self, length: usize) -> Vec<u8> {
        let mut payload = format!("{}/{} ", self.ports[0], self.sent).into_bytes();
        payload.resize(length, b'.');
        payload
    }

    fn segment(&mut self, direction: usize, flags: u8, length: usize) -> Sent {
        self.sent += 1;
        let (between, ports) = self.towards(direction);
        let ack = if flags & ACK == 0 { 0 } else { self.next[1 - direction] };
        let body = between.tcp(ports, [self.next[direction], ack], flags, &self.payload(length));
        let consumed = length as u32 + u32::from(flags & (SYN | FIN) != 0);
        self.next[direction] += consumed;
        let is_data = flags & (SYN | FIN | RST) == 0;
        self.sent(direction, TCP, &body, &format!("flags {flags:#x}"), is_data)
    }

    fn datagram(&mut self, direction: usize) -> Sent {
        self.sent += 1;
        let (between, ports) = self.towards(direction);
        let body = between.udp(ports, &self.payload(20));
        let is_data = !self.ends.contains(&NODE) && self.ends[0] != self.ends[1];
        self.sent(direction, UDP, &body, "datagram", is_data)
    }

    fn chunk(&mut self, direction: usize, tag: u32, kind: u8, value: &[u8]) -> Sent {
        let (between, ports) = self.towards(direction);
        let body = between.sctp(ports, tag, kind, value);
        self.sent(direction, SCTP, &body, &format!("chunk {kind}"), false)
    }

    fn sent(&self, direction: usize, protocol: u8, body: &[u8], what: &str, is_data: bool) -> Sent {
        let (between, _) = self.towards(direction);
        let [from, to] = [self.ends[direction], self.ends[1 - direction]];
        let name = format!("{} {} {what} {}", self.name, [">", "<"][direction], self.sent);
        Sent {
            frame: Frame::Plain,
            from,
            to,
            packet: between.packet(protocol, body),
            name,
            is_data,
            is_faulty: false,
        }
    }
}
