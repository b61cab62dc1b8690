//! What an uplink's driver does with a frame, in pure code and in the kernel. A driver has the tag among the bytes, where it is on
//! the wire.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use shunt_dataplane::Verdict;
use shunt_dataplane::abi::StationKey;
use shunt_dataplane::abi::learning::Learned;
use shunt_dataplane::programs::from_nic;

use crate::golden::bytes_packet::BytesPacket;
use crate::golden::case::{Case, Entry, all};
use crate::golden::memory_tables::MemoryTables;
use crate::golden::uplinks;
use crate::kernel::{Kernel, boot_time};
use crate::world_namespace::in_world_namespace;

const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_REDIRECT: u32 = 4;

fn tables() -> MemoryTables {
    let tables = MemoryTables { boot_time: boot_time(), ..MemoryTables::of_world() };
    *tables.learned.borrow_mut() = uplinks::learned(tables.boot_time).into_iter().collect();
    tables
}

fn whenever(learned: &BTreeMap<StationKey, Learned>) -> BTreeMap<StationKey, Learned> {
    learned.iter().map(|(key, value)| (*key, Learned { seen: 0, ..*value })).collect()
}

/// As a driver has it.
fn on_the_wire(packet: &BytesPacket) -> BytesPacket {
    let mut bytes = packet.bytes.clone();
    if let Some(tag) = packet.tag {
        bytes.splice(12..12, tag.bytes());
    }
    BytesPacket { readable: bytes.len(), bytes, tag: None, segment_size: 0, ..packet.clone() }
}

fn assert_alike(kernel: &mut Kernel, here: u32, packet: &BytesPacket, name: &str) {
    let tables = tables();
    let frame = on_the_wire(packet);
    let verdict = from_nic::run(&frame, here, &tables);
    kernel.fill(tables.boot_time);
    let action = match verdict {
        None => XDP_PASS,
        Some(Verdict::Drop(_)) => XDP_DROP,
        Some(Verdict::Deliver(_)) => XDP_REDIRECT,
        Some(other) => panic!("{name}: {other:?} is no driver's to do"),
    };
    assert_eq!(kernel.drive(here, &frame.bytes), (action, frame.bytes), "{name}: {verdict:?}");
    let remembered = kernel.remembered();
    assert_eq!(remembered.counters, *tables.counters.borrow(), "{name}: counters");
    assert_eq!(remembered.drops, *tables.drops.borrow(), "{name}: drops");
    assert_eq!(remembered.uplinks, *tables.uplinks.borrow(), "{name}: uplinks");
    let learned = tables.learned.borrow();
    assert_eq!(whenever(&remembered.learned), whenever(&learned), "{name}: learned");
}

#[test]
fn golden_frames_fare_alike_in_pure_code_and_driver() {
    in_world_namespace(|| {
        let mut kernel = Kernel::shipped();
        let cases = all().into_iter().filter(|case| case.entry == Entry::FromUplink);
        let cases: Vec<_> = cases.filter(|case| on_the_wire(&case.packet).bytes.len() > 14).collect();
        assert!(cases.len() >= 20, "only {} golden packets can be run", cases.len());
        for Case { here, packet, name, .. } in cases {
            assert_alike(&mut kernel, here, &packet, &name);
        }
    });
}

#[test]
fn random_frames_fare_alike_in_pure_code_and_driver() {
    in_world_namespace(|| {
        let mut kernel = Kernel::shipped();
        let cases: Vec<_> = all().into_iter().filter(|case| case.entry == Entry::FromUplink).collect();
        let changes = prop::collection::vec((0usize..24, any::<u8>()), 0..3);
        let mut runner = TestRunner::new(Config {
            cases: crate::random_packets() / 3,
            failure_persistence: None,
            ..Config::default()
        });
        let kernel = std::cell::RefCell::new(&mut kernel);
        let outcome =
            runner.run(&(0..cases.len(), 0..uplinks::NICS.len(), changes), |(which, nic, changes)| {
                let mut packet = cases[which].packet.clone();
                for (at, byte) in changes {
                    if let Some(target) = packet.bytes.get_mut(at) {
                        *target = byte;
                    }
                }
                packet.readable = packet.bytes.len();
                if on_the_wire(&packet).bytes.len() <= 14 {
                    return Err(TestCaseError::reject("no frame"));
                }
                let name = format!("{packet:02x?}");
                assert_alike(&mut kernel.borrow_mut(), uplinks::NICS[nic], &packet, &name);
                Ok(())
            });
        if let Err(error) = outcome {
            panic!("{error}");
        }
    });
}
