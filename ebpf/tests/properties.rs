//! What holds for every packet, not only for the golden ones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use dataplane::abi::FlowKey;
use dataplane::address::{Address, L4Port};
use dataplane::flow::End;
use dataplane::packet::Tag;
use dataplane::port::Missing;
use dataplane::{DropReason, PassReason, Verdict};
use golden::bytes_packet::BytesPacket;
use golden::case::{Entry, all};
use golden::memory_tables::MemoryTables;
use golden::world::PLACES;
use proptest::prelude::*;

const ENTRIES: [Entry; 3] = [Entry::FromContainer, Entry::ToContainer, Entry::FromHost];

/// A packet is counted at the sender, and a delivered one at the receiver as well; a judged one was counted before.
fn assert_counted_once(verdict: Verdict, tables: &MemoryTables) {
    let expected = match verdict {
        Verdict::Deliver(_) => 2,
        Verdict::Pass(PassReason::NoPort | PassReason::Judged | PassReason::MayAnswer) => 0,
        // Without an entry there are no counters; the drop itself is counted.
        Verdict::Drop(DropReason::NoPort) => {
            assert_eq!(tables.drops.borrow().values().map(|count| count.packets).sum::<u64>(), 1);
            0
        }
        Verdict::Pass(_) | Verdict::Drop(_) => 1,
    };
    assert_eq!(tables.counted(), expected, "{verdict:?}");
}

#[test]
fn no_truncation_panics_and_each_is_counted() {
    for case in all() {
        for length in 0..case.packet.bytes.len().min(200) {
            for entry in ENTRIES {
                let tables = MemoryTables::of_world();
                let mut packet =
                    BytesPacket { bytes: case.packet.bytes[..length].to_vec(), ..case.packet.clone() };
                let verdict = entry.travel(&mut packet, case.here, case.missing, &tables);
                assert_counted_once(verdict, &tables);
                assert!(
                    length >= 14 || !matches!(verdict, Verdict::Deliver(_)),
                    "{}: {length} bytes",
                    case.name
                );
            }
        }
    }
}

#[test]
fn how_much_is_directly_readable_changes_nothing() {
    for case in all() {
        // The kernel guarantees the Ethernet header at tc ingress and egress.
        for readable in 14..case.packet.bytes.len().min(120) {
            if case.packet.bytes.len() > 14 && !case.name.contains("tag") {
                let mut packet = BytesPacket { readable, ..case.packet.clone() };
                let verdict =
                    case.entry.travel(&mut packet, case.here, case.missing, &MemoryTables::of_world());
                assert_eq!(verdict.code(), case.expect, "{} with {readable} bytes readable", case.name);
            }
        }
    }
}

fn any_packet() -> impl Strategy<Value = BytesPacket> {
    let noise = prop::collection::vec(any::<u8>(), 0..200);
    // Noise behind a golden packet's first bytes gets past the first checks.
    let cases: Vec<Vec<u8>> = all().into_iter().map(|case| case.packet.bytes).collect();
    let start = (0..cases.len(), 0usize..80).prop_map(move |(which, keep)| {
        let bytes = &cases[which];
        bytes[..keep.min(bytes.len())].to_vec()
    });
    (start, noise, any::<bool>(), prop::option::of(any::<u16>()), 0usize..200, 0u32..3000).prop_map(
        |(mut bytes, noise, judged, tci, readable, segment_size)| {
            bytes.extend(noise);
            BytesPacket {
                bytes,
                tag: tci.map(|tci| Tag { tci }),
                readable,
                segment_size,
                judged,
                ..BytesPacket::default()
            }
        },
    )
}

fn any_address() -> impl Strategy<Value = Address> {
    prop_oneof![any::<[u16; 2]>().prop_map(Address::from_v4), any::<[u16; 8]>().prop_map(Address::from_v6)]
}

fn any_end() -> impl Strategy<Value = End> {
    (any_address(), any::<u16>()).prop_map(|(address, port)| End { address, port: L4Port::from(port) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_judged_without_a_panic_and_counted_once(
        packet in any_packet(), place in 0..PLACES.len(), entry in 0..ENTRIES.len(),
    ) {
        let tables = MemoryTables::of_world();
        let before = packet.bytes.clone();
        let mut packet = packet;
        let verdict = ENTRIES[entry].travel(&mut packet, PLACES[place].ifindex, Missing::Drop, &tables);
        assert_counted_once(verdict, &tables);
        prop_assert_eq!(packet.bytes, before);
    }

    #[test]
    fn nothing_is_delivered_across_bridges_or_back(packet in any_packet(), place in 0..PLACES.len()) {
        let here = &PLACES[place];
        let mut packet = packet;
        let verdict = Entry::FromContainer.travel(&mut packet, here.ifindex, Missing::Pass, &MemoryTables::of_world());
        if let Verdict::Deliver(delivery) = verdict {
            let there = PLACES.iter().find(|place| place.ifindex == delivery.ifindex).expect("a known place");
            prop_assert_eq!(there.bridge, here.bridge);
            prop_assert_ne!(there.ifindex, here.ifindex);
        }
    }

    #[test]
    fn both_directions_of_a_flow_have_one_key(one in any_end(), other in any_end(), protocol in any::<u8>()) {
        prop_assert_eq!(FlowKey::of(7, protocol, one, other), FlowKey::of(7, protocol, other, one));
    }

    #[test]
    fn two_flows_have_two_keys(one in any_end(), other in any_end(), third in any_end(), protocol in any::<u8>()) {
        prop_assume!(third != other && third != one);
        prop_assert_ne!(FlowKey::of(7, protocol, one, other), FlowKey::of(7, protocol, one, third));
    }
}
