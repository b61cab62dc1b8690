//! Packets as bytes behind an Ethernet header, with right lengths and checksums: connection tracking looks at both.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const SCTP: u8 = 132;

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;
pub(crate) const URG: u8 = 32;

/// What of a datagram the first of two fragments has: a multiple of eight.
const FIRST_PART: usize = 600;

/// The hop limit of all packets.
const HOPS: u8 = 64;

/// Two addresses of one family, as the packet has them.
#[derive(Clone, Copy)]
pub(crate) struct Between {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
}

impl Between {
    pub(crate) fn is_v6(self) -> bool {
        self.from.is_ipv6()
    }

    fn bytes(self) -> Vec<u8> {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(it) => it.octets().to_vec(),
            IpAddr::V6(it) => it.octets().to_vec(),
        };
        [octets(self.from), octets(self.to)].concat()
    }

    /// A packet with this behind its header.
    pub(crate) fn packet(self, protocol: u8, body: &[u8]) -> Vec<u8> {
        if self.is_v6() { self.ipv6(protocol, body) } else { self.ipv4(protocol, 0, 0, body) }
    }

    fn ipv4(self, protocol: u8, id: u16, fragment: u16, body: &[u8]) -> Vec<u8> {
        let [high, low] = (20 + body.len() as u16).to_be_bytes();
        let ([i1, i2], [f1, f2]) = (id.to_be_bytes(), fragment.to_be_bytes());
        let fixed = [0x45, 0, high, low, i1, i2, f1, f2, HOPS, protocol, 0, 0];
        let mut packet = [&fixed[..], &self.bytes()].concat();
        let checksum = sum(&[&packet]);
        put(&mut packet, 10, checksum);
        [packet, body.to_vec()].concat()
    }

    fn ipv6(self, next: u8, body: &[u8]) -> Vec<u8> {
        let [high, low] = (body.len() as u16).to_be_bytes();
        [&[0x60, 0, 0, 0, high, low, next, HOPS][..], &self.bytes(), body].concat()
    }

    /// A packet with an option that says nothing: of IPv4, or for the destination.
    pub(crate) fn with_options(self, protocol: u8, body: &[u8]) -> Vec<u8> {
        if self.is_v6() {
            return self.ipv6(60, &[&[protocol, 0, 1, 4, 0, 0, 0, 0][..], body].concat());
        }
        let mut header = self.ipv4(protocol, 0, 0, &[1, 1, 1, 0]);
        header[0] = 0x46;
        put(&mut header, 2, 24 + body.len() as u16);
        put(&mut header, 10, 0);
        let checksum = sum(&[&header]);
        put(&mut header, 10, checksum);
        [header, body.to_vec()].concat()
    }

    /// A packet of two fragments.
    pub(crate) fn fragments(self, protocol: u8, id: u16, body: &[u8]) -> [Vec<u8>; 2] {
        let (first, last) = body.split_at(FIRST_PART);
        let offset = (FIRST_PART / 8) as u16;
        if !self.is_v6() {
            return [self.ipv4(protocol, id, 0x2000, first), self.ipv4(protocol, id, offset, last)];
        }
        let header = |field: u16| {
            let ([f1, f2], [i1, i2]) = (field.to_be_bytes(), id.to_be_bytes());
            [protocol, 0, f1, f2, 0, 0, i1, i2]
        };
        [(header(1), first), (header(offset << 3), last)]
            .map(|(header, part)| self.ipv6(44, &[&header[..], part].concat()))
    }

    /// The checksum of a transport's header and what is behind it, with the addresses.
    fn summed(self, protocol: u8, at: usize, mut body: Vec<u8>) -> Vec<u8> {
        let length = (body.len() as u16).to_be_bytes();
        let checksum = sum(&[&self.bytes(), &[0, protocol], &length, &body]);
        put(&mut body, at, checksum);
        body
    }

    pub(crate) fn udp(self, [from, to]: [u16; 2], payload: &[u8]) -> Vec<u8> {
        let length = 8 + payload.len() as u16;
        let words = [from, to, length, 0].map(u16::to_be_bytes).concat();
        self.summed(UDP, 6, [&words, payload].concat())
    }

    pub(crate) fn tcp(self, ports: [u16; 2], [seq, ack]: [u32; 2], flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut header = ports.map(u16::to_be_bytes).concat();
        header.extend([seq, ack].map(u32::to_be_bytes).concat());
        header.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        self.summed(TCP, 16, [&header, payload].concat())
    }

    /// An echo's request, or its reply.
    pub(crate) fn echo(self, is_reply: bool, id: u16, number: u16, payload: &[u8]) -> Vec<u8> {
        let kind = match (self.is_v6(), is_reply) {
            (false, false) => 8,
            (false, true) => 0,
            (true, false) => 128,
            (true, true) => 129,
        };
        self.icmp(&[&[kind, 0, 0, 0][..], &id.to_be_bytes(), &number.to_be_bytes(), payload].concat())
    }

    /// Nobody listens at the port that `packet` was sent to.
    pub(crate) fn unreachable(self, packet: &[u8]) -> Vec<u8> {
        let kind = if self.is_v6() { [1, 4] } else { [3, 3] };
        self.icmp(&[&kind[..], &[0; 6], packet].concat())
    }

    fn icmp(self, body: &[u8]) -> Vec<u8> {
        if self.is_v6() {
            return self.summed(ICMPV6, 2, body.to_vec());
        }
        let mut body = body.to_vec();
        let checksum = sum(&[&body]);
        put(&mut body, 2, checksum);
        body
    }

    /// One chunk under a verification tag (RFC 9260, section 3).
    pub(crate) fn sctp(self, ports: [u16; 2], tag: u32, kind: u8, value: &[u8]) -> Vec<u8> {
        let mut body =
            [ports.map(u16::to_be_bytes).concat(), tag.to_be_bytes().to_vec(), vec![0; 4]].concat();
        body.extend([kind, if kind == 0 { 3 } else { 0 }]);
        body.extend((4 + value.len() as u16).to_be_bytes());
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
        let checksum = crc32c(&body).to_le_bytes();
        body[8..12].copy_from_slice(&checksum);
        body
    }
}

/// An INIT's parameters, or an INIT ACK's, which has a cookie.
pub(crate) fn sctp_init(tag: u32, has_cookie: bool) -> Vec<u8> {
    let mut value = tag.to_be_bytes().to_vec();
    value.extend([0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1]);
    if has_cookie {
        value.extend([0, 7, 0, 8, b'c', b'o', b'o', b'k']);
    }
    value
}

/// An ARP packet (RFC 826) without hardware addresses.
pub(crate) fn arp(operation: u8, between: Between) -> Vec<u8> {
    let addresses = between.bytes();
    let (from, to) = addresses.split_at(4);
    [&[0, 1, 8, 0, 6, 4, 0, operation][..], &[0; 6], from, &[0; 6], to].concat()
}

/// The same packet with another class of service, and fewer hops to go.
pub(crate) fn marked(mut packet: Vec<u8>, class: u8, hops: u8) -> Vec<u8> {
    if packet[0] >> 4 == 6 {
        (packet[0], packet[1], packet[7]) = (0x60 | class >> 4, class << 4, hops);
        return packet;
    }
    (packet[1], packet[8]) = (class, hops);
    put(&mut packet, 10, 0);
    let checksum = sum(&[&packet[..20]]);
    put(&mut packet, 10, checksum);
    packet
}

/// The Internet checksum of some parts, each of an even length but the last.
fn sum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let words = words.map(|pair| u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// CRC32c (RFC 9260, appendix A), bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

/// A packet without what a sender chooses freely: an IPv4 header's identification and checksum, an IPv6 header's flow label, its fragments'
/// identification. None for what nobody sent for the test: groups, neighbour discovery.
pub(crate) fn bare(frame: &[u8]) -> Option<Vec<u8>> {
    let mut packet = frame.get(14..)?.to_vec();
    match frame.get(12..14)? {
        [0x08, 0x00] if packet.len() >= 20 => {
            packet.truncate(usize::from(u16::from_be_bytes([packet[2], packet[3]])));
            [4, 5, 10, 11].into_iter().for_each(|at| packet[at] = 0);
            (packet[9] != 2).then_some(packet)
        }
        [0x86, 0xdd] if packet.len() >= 48 => {
            (packet[1], packet[2], packet[3]) = (packet[1] & 0xf0, 0, 0);
            if packet[6] == 44 {
                packet[44..48].fill(0);
            }
            let is_local = packet[6] == 0 || packet[6] == ICMPV6 && (130..=143).contains(&packet[40]);
            (!is_local).then_some(packet)
        }
        [0x08, 0x06] if packet.len() >= 28 => {
            packet.truncate(28);
            packet[8..14].fill(0);
            packet[18..24].fill(0);
            Some(packet)
        }
        [0x81, 0x00] => {
            bare(&[&frame[..12], &frame[16..]].concat()).map(|packet| [&packet, &TAGGED[..]].concat())
        }
        _ => None,
    }
}

/// What stands for a tag behind a packet.
const TAGGED: [u8; 2] = [0x81, 0x00];

/// A packet in a few words.
pub(crate) fn described(packet: &[u8]) -> String {
    let (protocol, from, to, body) = if packet[0] >> 4 == 4 {
        let at = |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&packet[at..at + 4]).expect("four bytes"));
        (packet[9], IpAddr::from(at(12)), IpAddr::from(at(16)), &packet[20..])
    } else if packet[0] == 0 {
        return format!("ARP {packet:02x?}");
    } else {
        let at = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&packet[at..at + 16]).expect("16 bytes"));
        (packet[6], IpAddr::from(at(8)), IpAddr::from(at(24)), &packet[40..])
    };
    format!("protocol {protocol} from {from} to {to}: {:02x?}", &body[..body.len().min(24)])
}
