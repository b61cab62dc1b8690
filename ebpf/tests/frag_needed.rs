//! What whoever sent too large a packet is told, and who is told nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use golden::bytes_packet::BytesPacket;
use golden::case::{Case, Entry, all};
use golden::memory_tables::MemoryTables;
use shunt_dataplane::{Delivery, DropReason, PassReason, Verdict, Way};

const ETHERNET_BYTES: usize = 14;
/// What zeta's link takes, and what is told of it: a link of IPv6 takes 1280 at least.
const TAKES: [(&str, usize, u32); 2] = [("v4", 576, 576), ("v6", 1280, 1280)];

fn case(name: &str) -> Case {
    all().into_iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no packet {name}"))
}

fn travel(case: &Case, bytes: &[u8]) -> (Verdict, Vec<u8>) {
    let mut packet = BytesPacket { bytes: bytes.to_vec(), readable: bytes.len(), ..case.packet.clone() };
    let verdict =
        case.entry.travel(&mut packet, case.here, case.missing, &MemoryTables::for_packet(&case.packet));
    (verdict, packet.bytes)
}

/// Whether it was dropped, and what is left of it is for its sender.
fn is_told(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Deliver(Delivery { way: Way::Back, .. }))
}

/// What half words add up to, with everything that carries over: all ones where a checksum among them is right.
fn sum(parts: &[&[u8]]) -> u16 {
    let halves = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 = halves.map(|half| u32::from(u16::from_be_bytes([half[0], half[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The bytes of both addresses in an IP header.
fn ends(ip: &[u8]) -> (&[u8], &[u8]) {
    if ip[0] >> 4 == 4 { ip[12..20].split_at(4) } else { ip[8..40].split_at(16) }
}

/// Takes an error apart; it must be right in all but the MTU, which it returns.
fn told(error: &[u8], sent: &[u8]) -> u32 {
    assert_eq!((&error[..6], &error[6..12]), (&sent[6..12], &sent[..6]), "it goes back where it came from");
    assert_eq!(error[12..14], sent[12..14]);
    assert!(error.len() < sent.len(), "it is no longer than what it answers");
    let (ip, was) = (&error[ETHERNET_BYTES..], &sent[ETHERNET_BYTES..]);
    let ((from, to), (source, destination)) = (ends(ip), ends(was));
    assert_eq!((from, to), (destination, source), "it is from whom was asked, to whoever asked");
    let icmp = if ip[0] >> 4 == 4 {
        assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), ip.len());
        assert_eq!((ip[0], ip[8], ip[9]), (0x45, 64, 1), "20 bytes of header, 64 hops, ICMP");
        assert_eq!(sum(&[&ip[..20]]), 0xffff, "the header's checksum");
        assert_eq!(sum(&[&ip[20..]]), 0xffff, "that of ICMP");
        assert_eq!(ip[20..22], [3, 4], "fragmentation needed");
        assert_eq!(ip[24..26], [0, 0]);
        &ip[20..]
    } else {
        let length = ip.len() - 40;
        assert_eq!(usize::from(u16::from_be_bytes([ip[4], ip[5]])), length);
        assert_eq!(ip[6..8], [58, 64], "ICMP, 64 hops");
        let pseudo = [u16::try_from(length).unwrap().to_be_bytes(), [0, 58]].concat();
        assert_eq!(sum(&[from, to, &pseudo, &ip[40..]]), 0xffff, "the checksum, with the pseudo header");
        assert_eq!(ip[40..42], [2, 0], "packet too big");
        &ip[40..]
    };
    let quoted = &icmp[8..];
    assert!(was.starts_with(quoted), "what is quoted is what was sent");
    let header = if was[0] >> 4 == 4 { usize::from(was[0] & 15) * 4 } else { 40 };
    assert!(quoted.len() >= header + 8, "the header, and eight bytes of what is behind it");
    u32::from_be_bytes([icmp[4], icmp[5], icmp[6], icmp[7]])
}

/// A bare packet as a frame whose Ethernet header says nothing.
fn framed_if(bare: bool, bytes: &[u8]) -> Vec<u8> {
    let header: &[u8] = if bare { &[0; ETHERNET_BYTES] } else { &[] };
    [header, bytes].concat()
}

#[test]
fn every_error_is_a_right_one() {
    let mut errors = [0, 0];
    for case in all() {
        let (verdict, bytes) = travel(&case, &case.packet.bytes);
        if is_told(verdict) {
            let bare = case.packet.bare.is_some();
            let [error, sent] = [&bytes, &case.packet.bytes].map(|bytes| framed_if(bare, bytes));
            assert!(told(&error, &sent) >= 576, "{}", case.name);
            errors[usize::from(bare)] += 1;
        }
    }
    assert!(errors[0] >= 15 && errors[1] >= 4, "only {errors:?} packets are answered");
}

#[test]
fn what_just_fits_is_delivered_and_one_byte_more_is_answered() {
    for (family, takes, mtu) in TAKES {
        let case = case(&format!("wire_too_big_udp_{family}"));
        let sent = &case.packet.bytes[..ETHERNET_BYTES + takes + 1];
        let (verdict, error) = travel(&case, sent);
        assert!(is_told(verdict), "{family}: {verdict:?}");
        assert_eq!(told(&error, sent), mtu, "{family}");
        let (verdict, _) = travel(&case, &sent[..sent.len() - 1]);
        match (family, verdict) {
            ("v4", Verdict::Deliver(_)) | ("v6", Verdict::Drop(DropReason::TooBig)) => {}
            _ => panic!("{family}: {verdict:?}"),
        }
    }
}

#[test]
fn nobody_is_told_who_is_no_one_host() {
    let v4 = ["0.0.0.0", "127.0.0.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"];
    let v6 = ["::", "::1", "ff02::1", "ff0e::5"];
    for (name, at, sources) in [("wire_too_big_udp_v4", 26, &v4[..]), ("wire_too_big_udp_v6", 22, &v6[..])] {
        let case = case(name);
        for source in sources {
            let octets = match source.parse().unwrap() {
                std::net::IpAddr::V4(address) => address.octets().to_vec(),
                std::net::IpAddr::V6(address) => address.octets().to_vec(),
            };
            let mut bytes = case.packet.bytes.clone();
            bytes[at..at + octets.len()].copy_from_slice(&octets);
            let (verdict, left) = travel(&case, &bytes);
            // A martian's is left to the stack, which drops it.
            let is_quiet =
                matches!(verdict, Verdict::Drop(DropReason::TooBig) | Verdict::Pass(PassReason::Martian));
            assert!(is_quiet, "from {source}: {verdict:?}");
            assert_eq!(left, bytes, "from {source}");
        }
    }
}

#[test]
fn nothing_else_that_is_dropped_is_answered() {
    let answering = [Entry::FromWire, Entry::FromTunnel, Entry::FromMapped];
    for case in all().iter().filter(|case| !answering.contains(&case.entry)) {
        let (verdict, _) = travel(case, &case.packet.bytes);
        assert!(!is_told(verdict), "{}: {verdict:?}", case.name);
    }
}
