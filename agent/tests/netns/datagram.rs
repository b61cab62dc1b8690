//! IP packets as bytes, with right lengths and checksums (RFC 1071), of either version.

use std::net::IpAddr;

pub(crate) const ICMP: [u8; 2] = [1, 58];
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// Where the checksum of what is behind an IP header stands, if it is the usual one.
fn checksum_at(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        1 | 58 => Some(2),
        _ => None,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
    let mut sum = words.sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// What is behind a header of this version and protocol, whose checksum it gets.
fn body(protocol: u8, from: IpAddr, to: IpAddr, mut body: Vec<u8>) -> Vec<u8> {
    if let Some(at) = checksum_at(protocol) {
        body[at..at + 2].fill(0);
        // ICMP of IPv4 does not cover the addresses.
        let mut covered = Vec::new();
        if protocol != ICMP[0] {
            covered = [octets(from), octets(to), (body.len() as u32).to_be_bytes().to_vec()].concat();
            covered.extend([0, 0, 0, protocol]);
        }
        covered.extend(&body);
        let sum = checksum(&covered);
        body[at..at + 2].copy_from_slice(&sum);
    }
    body
}

/// An IP packet that may go over so many hops.
pub(crate) fn packet(protocol: u8, from: IpAddr, to: IpAddr, hops: u8, behind: Vec<u8>) -> Vec<u8> {
    let body = body(protocol, from, to, behind);
    let mut header = if from.is_ipv4() {
        let [high, low] = (20 + body.len() as u16).to_be_bytes();
        vec![0x45, 0, high, low, 0x12, 0x34, 0x40, 0, hops, protocol, 0, 0]
    } else {
        let [high, low] = (body.len() as u16).to_be_bytes();
        vec![0x60, 0, 0, 0, high, low, protocol, hops]
    };
    header.extend([octets(from), octets(to)].concat());
    if from.is_ipv4() {
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum);
    }
    header.extend(body);
    header
}

/// A UDP datagram behind no header yet.
pub(crate) fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len() as u16).to_be_bytes();
    let [source, destination] = ports.map(u16::to_be_bytes);
    [&source[..], &destination, &length, &[0, 0], payload].concat()
}

/// The frame that carries an IP packet.
pub(crate) fn framed(to: [u8; 6], from: [u8; 6], packet: &[u8]) -> Vec<u8> {
    let kind = if packet[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    [&to[..], &from, &kind, packet].concat()
}
