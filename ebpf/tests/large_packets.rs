//! Packets of more than 64 KiB (BIG TCP): their headers say a length of 0, and those of IPv6 have a jumbo header behind the first.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use golden::bytes_packet::BytesPacket;
use golden::case::{Case, all};
use golden::memory_tables::MemoryTables;
use shunt_dataplane::Verdict;
use shunt_dataplane::wire::packet::Readable as _;
use shunt_dataplane::wire::{self, Network, Protocol};

const ETHERNET_BYTES: usize = 14;
const IPV4_LENGTH: std::ops::Range<usize> = 16..18;
const IPV6_LENGTH: std::ops::Range<usize> = 18..20;
const IPV6_NEXT: usize = 20;
const IPV6_PAYLOAD: usize = 54;
/// The kernel's largest packet (`GSO_MAX_SIZE`).
const LARGEST: usize = 8 * 65_535;

fn case(name: &str) -> Case {
    all().into_iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no packet {name}"))
}

/// The same packet with so many bytes of payload that no length says them, as the kernel writes its headers; `segment` bytes of it go into
/// a segment.
fn large(packet: &BytesPacket, segment: u32) -> BytesPacket {
    let mut bytes = packet.bytes.clone();
    if bytes[12..ETHERNET_BYTES] == [0x08, 0x00] {
        bytes[IPV4_LENGTH].fill(0);
    } else {
        let next = std::mem::replace(&mut bytes[IPV6_NEXT], 0);
        bytes[IPV6_LENGTH].fill(0);
        // RFC 2675: the next header, the length of this one, the option and its length, the payload's length.
        let payload = u32::try_from(LARGEST - IPV6_PAYLOAD).unwrap().to_be_bytes();
        let jumbo = [&[next, 0, 0xc2, 4][..], &payload].concat();
        bytes.splice(IPV6_PAYLOAD..IPV6_PAYLOAD, jumbo);
    }
    bytes.resize(LARGEST, 0x61);
    BytesPacket { readable: bytes.len(), bytes, segment_size: segment, ..packet.clone() }
}

fn travel(case: &Case, mut packet: BytesPacket) -> (Verdict, MemoryTables) {
    let tables = MemoryTables::for_packet(&case.packet);
    let verdict = case.entry.travel(&mut packet, case.here, case.missing, &tables);
    (verdict, tables)
}

#[test]
fn headers_of_packets_whose_length_no_header_says_are_read() {
    for (name, payload) in
        [("wire_continues_tcp_v4", 34), ("wire_continues_tcp_v6", 62), ("masquerade_continues_tcp_v6", 62)]
    {
        let packet = large(&case(name).packet, 1400);
        let frame = wire::frame(&packet).unwrap();
        let Ok(Network::Ip(ip)) = wire::network(&packet, &frame) else { panic!("{name} is no IP") };
        assert_eq!((ip.protocol, ip.payload), (Protocol::TCP, payload), "{name}");
        let small = case(name).packet;
        let Ok(Network::Ip(small_ip)) = wire::network(&small, &frame) else { panic!("{name} is no IP") };
        assert_eq!(wire::transport(&packet, &ip), wire::transport(&small, &small_ip), "{name}");
    }
}

#[test]
fn large_packets_go_where_small_ones_of_their_flow_go_and_count_whole() {
    for name in [
        "wire_continues_tcp_v4",
        "wire_continues_tcp_v6",
        "masquerade_continues_tcp_v4",
        "masquerade_continues_tcp_v6",
    ] {
        let case = case(name);
        let (verdict, tables) = travel(&case, large(&case.packet, 1200));
        assert_eq!(verdict.code(), case.expect, "{name}: {verdict:?}");
        let counters = tables.counters.borrow();
        let bytes: Vec<u64> = counters
            .values()
            .flat_map(golden::filled_tables::lanes)
            .filter(|(_, count)| count.packets != 0)
            .map(|(_, count)| count.bytes)
            .collect();
        let length = u64::from(large(&case.packet, 1200).length());
        assert!(!bytes.is_empty() && bytes.iter().all(|counted| *counted == length), "{name}: {bytes:?}");
    }
}

#[test]
fn the_segments_of_a_large_packet_are_judged_and_not_the_whole() {
    // Without its jumbo header, which no segment gets.
    for (name, headers) in [("masquerade_continues_tcp_v4", 40), ("masquerade_continues_tcp_v6", 60)] {
        let case = case(name);
        let (fits, _) = travel(&case, large(&case.packet, 1500 - headers));
        assert_eq!(fits.code(), case.expect, "{name}: {fits:?}");
        let (too_big, _) = travel(&case, large(&case.packet, 1501 - headers));
        // The kernel tells the sender, or the programs have.
        assert!(matches!(too_big.code().0, 0 | 8), "{name}: {too_big:?}");
    }
}
