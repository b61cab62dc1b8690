//! Masqueraded connections by the hundred: each has a port of its own, which is nobody else's.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use std::collections::BTreeSet;
use std::net::IpAddr;

use golden::bytes_packet::BytesPacket;
use golden::case::{Case, Entry, all};
use golden::memory_tables::MemoryTables;
use golden::{outside, world};
use shunt_dataplane::abi::translation::{TRANSLATION_OPENER, TupleKey};
use shunt_dataplane::nat::{segment, snat};
use shunt_dataplane::stages::read_flow::{Flow, FlowOf, read_flow};
use shunt_dataplane::tables::{Claimant, KernelFlows as _, Route};
use shunt_dataplane::wire::address::Address;
use shunt_dataplane::{DropReason, PassReason, Tables as _, Verdict, wire};

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

/// Makes the tuple of a packet of [`begin`] the kernel's own.
fn claim(case: &Case, port: u16, tables: &MemoryTables) {
    let mut packet = BytesPacket::new(&case.packet.bytes);
    let frame = wire::frame(&packet).unwrap();
    let key = segment::read(&mut packet, &frame, 0).unwrap().key;
    let own = outside::NODE[0].0.parse::<IpAddr>().unwrap().into();
    let leaves = TupleKey { source: own, source_port: port.into(), ..key };
    tables.claim(Claimant::Own, &leaves.reversed(0), tables.boot_time());
}

#[test]
fn every_connection_keeps_its_port_where_nobody_has_it() {
    for name in ["masquerade_begins_tcp_v4", "masquerade_begins_udp_v4"] {
        let (case, tables) = (case(name), MemoryTables::of_world());
        for port in (1024..65_000).step_by(97).filter(|port| *port != outside::SOCKET) {
            assert_eq!(begin(&case, port, &tables).1, port, "{name}");
        }
    }
}

#[test]
fn a_thousand_connections_whose_ports_are_taken_have_a_thousand_others_and_none_of_the_nodes() {
    for name in ["masquerade_begins_tcp_v4", "masquerade_begins_udp_v4"] {
        let (case, tables) = (case(name), MemoryTables::of_world());
        let mut given = BTreeSet::new();
        for port in 40_100..41_100 {
            claim(&case, port, &tables);
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

/// As long as connection tracking would know the connection.
#[test]
fn a_claim_ends_when_nobody_has_used_it() {
    const SECOND: u64 = 1_000_000_000;
    for (name, seconds) in [("masquerade_begins_udp_v4", 120), ("masquerade_begins_tcp_v4", 5 * 24 * 60 * 60)]
    {
        for (later, is_kept) in [(0, true), (1, false)] {
            let (case, mut tables) = (case(name), MemoryTables::of_world());
            claim(&case, 40_100, &tables);
            tables.boot_time += (seconds - 1 + 2 * later) * SECOND;
            assert_eq!(begin(&case, 40_100, &tables).1 != 40_100, is_kept, "{name}");
        }
    }
}

/// Of the node's own datagrams and of what the kernel masquerades, which nobody could be asked for.
#[test]
fn a_claim_is_renewed_once_a_second() {
    let (case, mut tables) = (case("own_sends_udp_v4"), MemoryTables::of_world());
    let mut seen = |later: u64| {
        tables.boot_time += later;
        Entry::ToWire.travel(&mut case.packet.clone(), case.here, case.missing, &tables);
        let claims = tables.own_claims.borrow();
        tables.boot_time - claims.values().max().unwrap()
    };
    assert_eq!(seen(0), 0);
    assert_eq!(seen(400_000_000), 400_000_000);
    assert_eq!(seen(700_000_000), 0);
}

/// What the kernel cannot send with a tuple of its own is not sent with a container's.
#[test]
fn where_no_other_port_is_free_what_the_kernel_sends_is_dropped() {
    for name in ["own_taken_udp_v4", "own_taken_tcp_v6", "own_masqueraded_taken_v4"] {
        let (case, mut tables) = (case(name), MemoryTables::of_world());
        for outlet in tables.outlets.values_mut() {
            (outlet.low, outlet.high) = (1, u16::MAX);
        }
        let before = tables.flows.borrow().len();
        let verdict = Entry::ToWire.travel(&mut case.packet.clone(), case.here, case.missing, &tables);
        assert_eq!(verdict, Verdict::Drop(DropReason::TupleTaken), "{name}");
        assert_eq!(tables.flows.borrow().len(), before);
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
            let FlowOf::Flow(Flow { key, .. }) = read_flow(&mut packet, &frame, world::BRIDGE) else {
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
    claim(&case, 7000, &tables);
    let before = tables.flows.borrow().len();
    assert_eq!(begin(&case, 7000, &tables).0, Verdict::Pass(PassReason::TupleTaken));
    assert_eq!(tables.flows.borrow().len(), before);
}

#[test]
fn an_outlet_without_an_address_of_the_family_is_none() {
    let (case, mut tables) = (case("masquerade_begins_tcp_v4"), MemoryTables::of_world());
    tables.sources.retain(|(.., source)| !source.is_v4());
    assert_eq!(begin(&case, 7000, &tables).0, Verdict::Pass(PassReason::NoOutlet));
}

#[test]
fn an_address_is_chosen_by_the_next_hop_and_in_ipv6_by_the_destination() {
    let [[v4, gateway_v4], [v6, gateway_v6]] = ends();
    for (next_hop, destination, asked) in
        [(gateway_v4, v4, gateway_v4), (gateway_v6, v4, v4), (gateway_v6, v6, v6), (v4, v4, v4)]
    {
        let key = snat::source_key(&Route { ifindex: 7, next_hop }, destination);
        assert_eq!((key.ifindex, key.address), (7, asked));
    }
}

/// As conntrack's: another address that is chosen by now is none of its business.
#[test]
fn a_connection_keeps_its_address_until_that_goes() {
    for (family, [first, second]) in ["v4", "v6"].into_iter().zip(ends()) {
        let (case, mut tables) =
            (case(&format!("masquerade_continues_tcp_{family}")), MemoryTables::of_world());
        tables.sources.iter_mut().for_each(|(.., source)| *source = second);
        let run = |tables: &MemoryTables| {
            let mut packet = BytesPacket::new(&case.packet.bytes);
            Entry::FromMapped.travel(&mut packet, case.here, case.missing, tables)
        };
        assert!(matches!(run(&tables), Verdict::Deliver(_)));
        tables.outlets.retain(|key, _| key.address != first);
        assert_eq!(run(&tables), Verdict::Drop(DropReason::Rerouted));
    }
}

/// The uplink's addresses, by family.
fn ends() -> [[Address; 2]; 2] {
    let address = |(text, _): (&str, u8)| text.parse::<IpAddr>().unwrap().into();
    [[outside::NODE[0], outside::SECOND[0]], [outside::NODE[1], outside::SECOND[1]]].map(|of| of.map(address))
}

/// Of datagrams that were routed to a container: later it asks for itself.
#[test]
fn what_came_in_is_answered_for_two_minutes() {
    const SECOND: u64 = 1_000_000_000;
    for (later, is_kept) in [(119, true), (120, false)] {
        let (case, mut tables) = (case("masquerade_answers_incoming_v4"), MemoryTables::of_world());
        tables.boot_time += later * SECOND;
        let verdict = Entry::FromMapped.travel(&mut case.packet.clone(), case.here, case.missing, &tables);
        assert_eq!(verdict == Verdict::Pass(PassReason::KernelHeld), is_kept, "{verdict:?}");
    }
}
