//! Traffic: flows of every kind between containers, each a script of packets that goes on from phase to phase, whatever becomes of its packets.

use std::net::IpAddr;

use crate::packets::{
    ACK, Between, FIN, ICMP, ICMPV6, PSH, RST, SCTP, SYN, TCP, UDP, URG, marked, sctp_init,
};

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
const VECTOR: [(Kind, usize, usize, u16); 26] = [
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
];

/// Where what is for many goes, by IPv4 and IPv6.
const GROUP: [&str; 2] = ["239.1.2.3", "ff0e::123"];
const EVERYBODY: [&str; 2] = ["10.77.0.255", "ff02::123"];

/// How many client's ports a vector takes.
pub(crate) const PORTS: u16 = 2 * VECTOR.len() as u16;

/// All flows, by IPv4 and by IPv6, whose client's ports begin here.
pub(crate) fn vector(addresses: &Addresses, first_port: u16) -> Vec<Flow> {
    let flows = VECTOR.into_iter().flat_map(|flow| [(flow, 0), (flow, 1)]);
    let flow = |(((kind, from, to, port), family), own): (((Kind, usize, usize, u16), usize), u16)| Flow {
        kind,
        ends: [from, to],
        between: Between {
            from: addresses[from][family],
            to: match kind {
                Kind::Group => GROUP[family].parse().expect("an address"),
                Kind::Broadcast => EVERYBODY[family].parse().expect("an address"),
                _ => addresses[to][family],
            },
        },
        ports: [own, port],
        next: [u32::from(own) << 8, 1 << 30 | u32::from(own) << 8],
        sent: 0,
        name: format!("{kind:?}{} {}→{}:{port}", ["4", "6"][family], NAMES[from], NAMES[to]),
    };
    flows.zip(first_port..).map(flow).collect()
}

pub(crate) const NAMES: [&str; 4] = ["one", "two", "three", "node"];

impl Flow {
    /// The packets of a phase, in their order.
    pub(crate) fn phase(&mut self, phase: Phase) -> Vec<Sent> {
        match phase {
            Phase::First => self.first(),
            Phase::On(times) => (0..times).flat_map(|_| self.on()).collect(),
            Phase::End => self.end(),
        }
    }

    fn first(&mut self) -> Vec<Sent> {
        match self.kind {
            Kind::Tcp | Kind::TcpReset => {
                let mut all = vec![self.segment(0, SYN, 0), self.segment(1, SYN | ACK, 0)];
                all.push(self.segment(0, ACK, 0));
                all.extend(self.on());
                all
            }
            Kind::TcpSimultaneous => {
                let mut all = vec![self.segment(0, SYN, 0), self.segment(1, SYN, 0)];
                for direction in [0, 1] {
                    self.next[direction] -= 1;
                    all.push(self.segment(direction, SYN | ACK, 0));
                }
                all.extend(self.on());
                all
            }
            Kind::TcpRefused => vec![self.segment(0, SYN, 0), self.segment(1, RST | ACK, 0)],
            Kind::Sctp => {
                let [client, server] = self.tags();
                let cookie = b"cook";
                vec![
                    self.chunk(0, 0, 1, &sctp_init(client, false)),
                    self.chunk(1, client, 2, &sctp_init(server, true)),
                    self.chunk(0, server, 10, cookie),
                    self.chunk(1, client, 11, &[]),
                ]
            }
            _ => [self.on(), self.on()].concat(),
        }
    }

    /// A packet of each direction, with the acknowledgement of the second.
    fn on(&mut self) -> Vec<Sent> {
        match self.kind {
            Kind::Tcp | Kind::TcpReset | Kind::TcpSimultaneous => {
                vec![self.segment(0, PSH | ACK, 20), self.segment(1, PSH | ACK, 20), self.segment(0, ACK, 0)]
            }
            Kind::TcpRefused => Vec::new(),
            Kind::Udp if self.ends[1] == NODE => vec![self.datagram(0)],
            Kind::Udp => vec![self.datagram(0), self.datagram(1)],
            Kind::UdpOneWay | Kind::Group | Kind::Broadcast => vec![self.datagram(0)],
            Kind::UdpUnreachable => {
                let question = self.datagram(0);
                let back = self.back();
                let protocol = if back.is_v6() { ICMPV6 } else { ICMP };
                let error = self.sent(1, protocol, &back.unreachable(&question.packet), "error", false);
                vec![question, error]
            }
            Kind::Fragments => {
                self.sent += 1;
                let body = self.between.udp(self.ports, &self.payload(1200));
                let id = self.ports[0].rotate_left(7) ^ self.sent;
                let mut all: Vec<Sent> = Vec::new();
                for packet in self.between.fragments(UDP, id, &body) {
                    let name = format!("{} fragment {}.{}", self.name, self.sent, all.len() + 1);
                    let [from, to] = self.ends;
                    all.push(Sent {
                        frame: Frame::Plain,
                        from,
                        to,
                        packet,
                        name,
                        is_data: false,
                        is_faulty: false,
                    });
                }
                all.push(self.datagram(1));
                all
            }
            Kind::Echo => {
                self.sent += 1;
                let (id, number) = (self.ports[0], self.sent);
                let payload = self.payload(20);
                let ask = self.between.echo(false, id, number, &payload);
                let protocol = if self.between.is_v6() { ICMPV6 } else { ICMP };
                let mut all = vec![self.sent(0, protocol, &ask, "request", false)];
                if self.ends[1] != NODE {
                    let answer = self.back().echo(true, id, number, &payload);
                    all.push(self.sent(1, protocol, &answer, "reply", false));
                }
                all
            }
            Kind::Sctp => {
                self.sent += 1;
                let tags = self.tags();
                let number = u32::from(self.sent).to_be_bytes();
                let data = [&number[..], &[0; 8], b"datadata"].concat();
                vec![self.chunk(0, tags[1], 0, &data), self.chunk(1, tags[0], 0, &data)]
            }
        }
    }

    fn end(&mut self) -> Vec<Sent> {
        match self.kind {
            Kind::Tcp => {
                let mut all = vec![self.segment(0, FIN | ACK, 0), self.segment(1, ACK, 0)];
                for _ in 0..3 {
                    all.extend([self.segment(1, PSH | ACK, 20), self.segment(0, ACK, 0)]);
                }
                all.extend([self.segment(1, FIN | ACK, 0), self.segment(0, ACK, 0)]);
                all
            }
            Kind::TcpReset => {
                let reset = self.segment(0, RST | ACK, 0);
                // What the reset crosses on its way, and what comes after it all the same.
                [vec![reset], self.on()].concat()
            }
            Kind::TcpSimultaneous => vec![self.segment(1, RST | ACK, 0)],
            _ => self.on(),
        }
    }

    /// The same packets by somebody else: sent by `who` under the address of who opened it.
    pub(crate) fn forged(&mut self, who: usize) -> Vec<Sent> {
        if self.kind != Kind::Udp || self.ends.contains(&NODE) || self.ends.contains(&who) {
            return Vec::new();
        }
        let mut forged = [self.datagram(0), self.datagram(1)];
        for sent in &mut forged {
            (sent.from, sent.name) = (who, format!("{} by {}", sent.name, NAMES[who]));
        }
        forged.to_vec()
    }

    /// Packets that differ from all others of the flow in their headers, lengths and frames.
    pub(crate) fn odd(&mut self) -> Vec<Sent> {
        let sent = match self.kind {
            Kind::Udp if !self.ends.contains(&NODE) => {
                let mut all: Vec<Sent> = (0..4).map(|_| self.datagram(0)).collect();
                all[0].packet = marked(all[0].packet.clone(), 0xb8, 3);
                self.sent += 1;
                let long = self.between.udp(self.ports, &self.payload(500));
                all[1] = self.sent(0, UDP, &long, "long", false);
                let short = self.between.udp(self.ports, &[]);
                all[2] = self.sent(0, UDP, &short, "empty", false);
                all[3].packet = marked(all[3].packet.clone(), 3, 64);
                let frames =
                    [Frame::ByGateway, Frame::ToAll, Frame::ToNobody, Frame::FromOther, Frame::FromOther];
                all.extend(frames.map(|frame| Sent { frame, ..self.datagram(0) }));
                all.push(with_wrong_checksum(self.datagram(0)));
                all
            }
            Kind::Tcp => {
                let mut all = self.faulty_segments();
                all.extend([
                    self.segment(0, URG | PSH | ACK, 300),
                    self.segment(1, 0xc0 | ACK, 5),
                    self.segment(0, ACK, 20),
                ]);
                all
            }
            _ => Vec::new(),
        };
        let named =
            |sent: Sent| Sent { name: format!("{} odd {:?}", sent.name, sent.frame), is_data: false, ..sent };
        sent.into_iter().map(named).collect()
    }

    /// Segments without what each has, with a wrong checksum, and from outside of the window.
    fn faulty_segments(&mut self) -> Vec<Sent> {
        let mut all = vec![
            self.segment(0, 0, 3),
            self.segment(0, PSH, 3),
            with_wrong_checksum(self.segment(0, ACK, 7)),
        ];
        let next = self.next[0];
        self.next[0] = next.wrapping_add(1 << 20);
        all.push(self.segment(0, ACK, 9));
        self.next[0] = next;
        all.iter_mut().for_each(|sent| sent.is_faulty = true);
        all
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
        self.sent(direction, UDP, &body, "datagram", self.ends[1] != NODE)
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

fn with_wrong_checksum(mut sent: Sent) -> Sent {
    if let Some(last) = sent.packet.last_mut() {
        *last ^= 1;
    }
    Sent { is_faulty: true, ..sent }
}
