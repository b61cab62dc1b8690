//! `from_nic` decides nothing that `from_uplink` behind it would not. A driver has the tag among the
//! bytes, where it is on the wire.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use golden::bytes_packet::BytesPacket;
use golden::case::{Case, Entry, all};
use golden::memory_tables::MemoryTables;
use golden::{uplinks, world};
use proptest::prelude::*;
use shunt_dataplane::Verdict;
use shunt_dataplane::abi::AFFINITY_LOOKUP;
use shunt_dataplane::programs::{from_nic, from_uplink};
use shunt_dataplane::wire::packet::Tag;

/// The frame of a golden packet, as a driver has it.
fn in_driver(packet: &BytesPacket) -> BytesPacket {
    let mut bytes = packet.bytes.clone();
    if let Some(tag) = packet.tag {
        bytes.splice(12..12, tag.bytes());
    }
    BytesPacket { readable: bytes.len(), bytes, tag: None, segment_size: 0, ..packet.clone() }
}

/// The same frame as the stack has it: the kernel takes the outermost tag out. None where it cannot.
fn in_stack(packet: &BytesPacket) -> Option<BytesPacket> {
    let mut packet = in_driver(packet);
    packet.tag = Tag::among(&packet.bytes).ok()?;
    if packet.tag.is_some() {
        packet.bytes.drain(12..16);
        packet.readable = packet.bytes.len();
    }
    Some(packet)
}

/// A driver's verdict, which is its stack's, or none.
fn driven(here: u32, packet: &BytesPacket, name: &str) -> Option<Verdict> {
    let (driver, stack) = (MemoryTables::of_world(), MemoryTables::of_world());
    driven_with(&driver, &stack, here, packet, name)
}

fn driven_with(
    driver: &MemoryTables,
    stack: &MemoryTables,
    here: u32,
    packet: &BytesPacket,
    name: &str,
) -> Option<Verdict> {
    let frame = in_driver(packet);
    let verdict = from_nic::run(&frame, here, driver);
    let Some(mut behind) = in_stack(packet) else { return verdict };
    let behind_it = from_uplink::run(&mut behind, here, stack);
    let counters = driver.counters.borrow().clone();
    if let Some(verdict) = verdict {
        assert_eq!(verdict, behind_it, "{name}");
        assert_eq!(counters, *stack.counters.borrow(), "{name}: counters");
        assert_eq!(*driver.drops.borrow(), *stack.drops.borrow(), "{name}: drops");
        assert_eq!(in_driver(&behind).bytes, frame.bytes, "{name}: bytes");
    } else {
        assert!(counters.is_empty() && driver.drops.borrow().is_empty(), "{name}: would be counted twice");
    }
    verdict
}

fn cases() -> BTreeMap<String, Case> {
    let of_uplinks = all().into_iter().filter(|case| case.entry == Entry::FromUplink);
    of_uplinks.map(|case| (case.name.clone(), case)).collect()
}

#[test]
fn a_driver_does_what_the_stack_would_do_or_leaves_it_to_it() {
    let verdicts: BTreeMap<_, _> = cases()
        .into_iter()
        .map(|(name, case)| (name.clone(), driven(case.here, &case.packet, &name)))
        .collect();
    let delivered = |name: &str| matches!(verdicts[name], Some(Verdict::Deliver(_)));
    let dropped = |name: &str| matches!(verdicts[name], Some(Verdict::Drop(_)));
    assert!(delivered("rear_to_friend") && delivered("rear_tagged_to_far"), "{verdicts:?}");
    assert!(dropped("gate_service_tag") && dropped("gate_tagged_hairpin"), "{verdicts:?}");
    for name in
        ["gate_to_shed", "gate_to_broadcast", "gate_tagged_to_stall", "gate_tagged_unknown", "gate_priority"]
    {
        assert_eq!(verdicts[name], None, "{name}");
    }
}

#[test]
fn what_is_too_large_for_the_other_wire_is_the_stacks() {
    for name in ["rear_to_friend", "rear_tagged_to_far"] {
        let mut case = cases().remove(name).unwrap();
        let largest = 14 + 1500;
        case.packet.bytes.resize(largest, 0);
        case.packet.readable = largest;
        assert!(driven(case.here, &case.packet, name).is_some(), "{name}");
        case.packet.bytes.resize(largest + 1, 0);
        case.packet.readable = largest + 1;
        assert_eq!(driven(case.here, &case.packet, name), None, "{name}");
    }
}

#[test]
fn where_there_were_flows_of_the_kernels_the_stack_reads_the_headers() {
    let case = cases().remove("rear_to_friend").unwrap();
    let asking = || {
        let tables = MemoryTables::of_world();
        let gate = world::ifindex("gate");
        tables
            .ports
            .borrow_mut()
            .entry(shunt_dataplane::abi::PortKey { ifindex: gate })
            .and_modify(|port| port.affinity = AFFINITY_LOOKUP);
        tables
    };
    assert_eq!(driven_with(&asking(), &asking(), case.here, &case.packet, "asking"), None);
}

#[test]
fn to_an_uplink_whose_driver_runs_no_program_the_stack_sends() {
    let case = cases().remove("rear_to_friend").unwrap();
    let alone = || MemoryTables { nics: [case.here].into(), ..MemoryTables::of_world() };
    assert_eq!(driven_with(&alone(), &alone(), case.here, &case.packet, "alone"), None);
}

proptest! {
    #[test]
    fn whatever_comes_a_driver_says_nothing_that_the_stack_would_not(
        which in any::<prop::sample::Index>(),
        nic in 0..uplinks::NICS.len(),
        changes in prop::collection::vec((0usize..24, any::<u8>()), 0..3),
    ) {
        static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| cases().into_values().collect());
        let mut packet = which.get(&CASES).packet.clone();
        for (at, byte) in changes {
            if let Some(target) = packet.bytes.get_mut(at) {
                *target = byte;
            }
        }
        let name = format!("{packet:02x?}");
        driven(uplinks::NICS[nic], &packet, &name);
    }
}
