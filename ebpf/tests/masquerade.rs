//! Masqueraded connections by the hundred: each has a port of its own, which is nobody else's.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use std::collections::BTreeSet;

use golden::bytes_packet::BytesPacket;
use golden::case::{Case, Entry, all};
use golden::memory_tables::MemoryTables;
use golden::{outside, world};
use shunt_dataplane::abi::PortKey;
use shunt_dataplane::abi::translation::{Outlet, TRANSLATION_OPENER};
use shunt_dataplane::nat::segment;
use shunt_dataplane::stages::read_flow::{FlowOf, read_flow};
use shunt_dataplane::{PassReason, Verdict, wire};

/// Where the source port is behind an IPv4 header without options.
const SOURCE_PORT: std::ops::Range<usize> = 34..36;

fn case(name: &str) -> Case {
    all().into_iter().find(|case| case.name == name).expect("a golden packet")
}

/// Sends the first packet of a connection from a port.
fn begin(case: &Case, port: u16, tables: &MemoryTables) -> (Verdict, u16) {
    let mut packet = BytesPacket::new(&case.packet.bytes);
    packet.bytes[SOURCE_PORT].copy_from_slice(&port.to_be_bytes());
    let verdict = Entry::FromMapped.travel(&mut packet, case.here, case.missing, tables);
    (verdict, u16::from_be_bytes(packet.bytes[SOURCE_PORT].try_into().unwrap()))
}

#[test]
fn a_thousand_connections_have_a_thousand_ports_and_none_of_the_nodes() {
    for name in ["masquerade_begins_tcp_v4", "masquerade_begins_udp_v4"] {
        let (case, tables) = (case(name), MemoryTables::of_world());
        let mut given = BTreeSet::new();
        for port in 40_100..41_100 {
            let (verdict, port) = begin(&case, port, &tables);
            assert!(matches!(verdict, Verdict::Deliver(_)), "{verdict:?}");
            assert!((1024..32_768).contains(&port) || port > 60_999, "{name}: {port}");
            assert_ne!(port, outside::SOCKET);
            assert!(given.insert(port), "{name}: {port} twice");
        }
        let flows = tables.flows.borrow();
        let begun = flows.iter().filter(|(key, flow)| {
            flow.flags & TRANSLATION_OPENER != 0
                && flow.holder == case.here
                && key.source_port.number() >= 40_100
        });
        let begun: Vec<_> = begun.collect();
        assert_eq!(begun.len(), 1000);
        for (key, flow) in begun {
            let other = flows[&flow.becomes.reversed(0)];
            assert_eq!(other.becomes.reversed(key.domain), *key);
            assert_eq!((other.begun, other.holder), (flow.begun, case.here));
        }
    }
}

/// The kernel's conntrack has an echo by its identifier at both ends, and a connection of it is looked for by the same key.
#[test]
fn what_asks_has_the_flow_that_its_bytes_tell() {
    for name in ["echo_begins", "masquerade_begins_udp", "masquerade_begins_tcp"] {
        for family in ["v4", "v6"] {
            let mut packet = case(&format!("{name}_{family}")).packet;
            let frame = wire::frame(&packet).unwrap();
            let segment = segment::read(&mut packet, &frame, world::BRIDGE).unwrap();
            let FlowOf::Flow { key, .. } = read_flow(&mut packet, &frame, world::BRIDGE) else {
                panic!("{name}: no flow");
            };
            assert!(segment.opens() && segment.flow() == key, "{name}: {:?}", segment.flow());
        }
    }
}

#[test]
fn where_every_port_is_the_nodes_the_kernel_masquerades() {
    let (case, mut tables) = (case("masquerade_begins_tcp_v4"), MemoryTables::of_world());
    for outlet in tables.outlets.values_mut() {
        (outlet.low, outlet.high) = (1, u16::MAX);
    }
    let before = tables.flows.borrow().len();
    assert_eq!(begin(&case, 7000, &tables).0, Verdict::Pass(PassReason::TupleTaken));
    assert_eq!(tables.flows.borrow().len(), before);
}

#[test]
fn an_outlet_without_an_address_of_the_family_is_none() {
    let (case, mut tables) = (case("masquerade_begins_tcp_v4"), MemoryTables::of_world());
    let key = PortKey { ifindex: outside::UPLINK };
    let v6 = tables.outlets[&key].v6;
    tables.outlets.insert(key, Outlet { v6, low: 1, high: 2, ..Outlet::default() });
    assert_eq!(begin(&case, 7000, &tables).0, Verdict::Pass(PassReason::NoOutlet));
}
