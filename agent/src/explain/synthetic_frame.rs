//! A packet of a conversation, made of its two ends.

use std::net::IpAddr;

use shunt_agent_api::Kind;
use shunt_dataplane::wire::address::Mac;

/// The port that a conversation begins from, one that nobody listens on (RFC 6335: dynamic), and its echo identifier.
const FROM_PORT: u16 = 50_000;

/// Flags of a TCP segment (RFC 9293 section 3.1).
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// The hop limit that most hosts begin with.
const HOP_LIMIT: u8 = 64;

/// Who sends, and to whom.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// From which station.
    pub source_mac: Mac,
    /// To which station: the receiver, or the way to it.
    pub destination_mac: Mac,
    /// From which address.
    pub source: IpAddr,
    /// To which address, of the same family.
    pub destination: IpAddr,
}

/// A packet without a link-layer header as the frame from nobody to nobody that programs see in it.
pub fn framed(packet: &[u8]) -> Vec<u8> {
    let ether_type = match packet.first().map(|first| first >> 4) {
        Some(4) => [0x08, 0x00],
        Some(6) => [0x86, 0xdd],
        _ => [0, 0],
    };
    [&[0; 12][..], &ether_type, packet].concat()
}

/// Which packet of the conversation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The first.
    First,
    /// One in the middle, from this port.
    Later(u16),
}

/// The frame to `port`; none where both ends are not of one family.
pub fn frame(kind: Kind, ends: &Ends, port: u16, place: Place) -> Option<Vec<u8>> {
    let Ends { source_mac, destination_mac, source, destination } = *ends;
    let macs = [destination_mac.octets(), source_mac.octets()].concat();
    match (source, destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) if kind == Kind::Arp => {
            let fixed = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
            let body = [&source_mac.octets()[..], &from.octets(), &[0; 6], &to.octets()].concat();
            let mut frame = [&[0xff; 6][..], &source_mac.octets(), &fixed, &body].concat();
            frame.resize(60, 0);
            Some(frame)
        }
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let (from, to) = (from.octets(), to.octets());
            let (protocol, payload) = payload(kind, (port, place), &[&from[..], &to].concat(), (8, 1));
            let [high, low] = (20 + payload.len() as u16).to_be_bytes();
            let mut header = vec![0x45, 0, high, low, 0, 0, 0x40, 0, HOP_LIMIT, protocol, 0, 0];
            header.extend([from, to].concat());
            let sum = checksum(&header);
            header[10..12].copy_from_slice(&sum);
            Some([&macs[..], &[8, 0], &header, &payload].concat())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) if kind != Kind::Arp => {
            let (from, to) = (from.octets(), to.octets());
            let (protocol, payload) = payload(kind, (port, place), &[from, to].concat(), (128, 58));
            let [high, low] = (payload.len() as u16).to_be_bytes();
            let header = [&[0x60, 0, 0, 0, high, low, protocol, HOP_LIMIT][..], &from, &to].concat();
            Some([&macs[..], &[0x86, 0xdd], &header, &payload].concat())
        }
        _ => None,
    }
}

/// What is behind the IP header, and its protocol's number. `echo` and `icmp` are the family's.
fn payload(
    kind: Kind,
    (port, place): (u16, Place),
    addresses: &[u8],
    (echo, icmp): (u8, u8),
) -> (u8, Vec<u8>) {
    let (from, flags) = match place {
        Place::First => (FROM_PORT, SYN),
        Place::Later(from) => (from, ACK),
    };
    let [from, to] = [from, port].map(u16::to_be_bytes);
    let (protocol, mut payload, field) = match kind {
        // Without data, and with a window.
        Kind::Tcp => {
            let rest = [0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0xfa, 0xf0, 0, 0, 0, 0];
            (6, [&from[..], &to, &rest].concat(), 16)
        }
        Kind::Udp => (17, [&from[..], &to, &[0, 12, 0, 0], b"shnt"].concat(), 6),
        Kind::Icmp | Kind::Arp => (icmp, [&[echo, 0, 0, 0][..], &from, &[0, 1]].concat(), 2),
    };
    // ICMPv4 alone has no pseudo header.
    let pseudo = if protocol == 1 {
        Vec::new()
    } else {
        [addresses, &[0, protocol], &(payload.len() as u16).to_be_bytes()].concat()
    };
    let sum = checksum(&[&pseudo[..], &payload].concat());
    payload[field..field + 2].copy_from_slice(&sum);
    (protocol, payload)
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let mut sum: u32 =
        bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(source: &str, destination: &str) -> Ends {
        Ends {
            source_mac: Mac::new([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac::new([2, 0, 0, 0, 0, 2]),
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
    }

    /// A sum over everything that a checksum covers, the checksum too, is zero.
    #[test]
    fn every_checksum_is_right() {
        let kinds = [Kind::Tcp, Kind::Udp, Kind::Icmp];
        let places = [Place::First, Place::Later(41_000)];
        for (kind, place) in kinds.into_iter().flat_map(|kind| places.map(|place| (kind, place))) {
            let v4 = frame(kind, &ends("10.0.0.1", "10.0.0.2"), 80, place).unwrap();
            assert_eq!(checksum(&v4[14..34]), [0; 2], "{kind:?}");
            let pseudo = |addresses: &[u8], protocol: u8, payload: &[u8]| {
                [addresses, &[0, protocol], &(payload.len() as u16).to_be_bytes(), payload].concat()
            };
            let covered =
                if kind == Kind::Icmp { v4[34..].to_vec() } else { pseudo(&v4[26..34], v4[23], &v4[34..]) };
            assert_eq!(checksum(&covered), [0; 2], "{kind:?}");
            let v6 = frame(kind, &ends("fd00::1", "fd00::2"), 80, place).unwrap();
            assert_eq!(checksum(&pseudo(&v6[22..54], v6[20], &v6[54..])), [0; 2], "{kind:?}");
        }
    }

    #[test]
    fn a_later_segment_is_from_the_port_that_was_asked_for_and_begins_nothing() {
        let frame = frame(Kind::Tcp, &ends("10.0.0.1", "10.0.0.2"), 80, Place::Later(41_000)).unwrap();
        let [ports, flags] = [&frame[34..38], &frame[47..48]];
        assert_eq!((ports, flags), (&[0xa0, 0x28, 0, 80][..], &[ACK][..]));
    }

    #[test]
    fn ends_of_two_families_have_no_conversation() {
        assert_eq!(frame(Kind::Tcp, &ends("10.0.0.1", "fd00::2"), 80, Place::First), None);
        assert_eq!(frame(Kind::Arp, &ends("fd00::1", "fd00::2"), 0, Place::First), None);
    }
}
