//! What a policer lets through: everything that conforms, and of the rest what the limit allows.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use golden::memory_tables::MemoryTables;
use golden::world;
use proptest::prelude::*;
use shunt_dataplane::abi::policer::{PRICED, Policer};
use shunt_dataplane::stages::police;

/// What both properties are about: a nanosecond a byte, and a burst of 100 µs.
const LIMITED: Policer = Policer { due: 0, price: PRICED, tolerance: 100_000 };

/// The longest packet that is sent here (BIG TCP), and what it takes.
const LONGEST: u32 = 524_294;

/// Whether each packet passes that comes so many nanoseconds after the one before it.
fn passes(packets: &[(u64, u32)]) -> Vec<bool> {
    let tables = MemoryTables::of_world();
    let place = world::PLACES.iter().find(|place| place.name == "rho").unwrap();
    let port = tables.ports.borrow()[&shunt_dataplane::abi::PortKey { ifindex: place.ifindex }];
    tables.policers.borrow_mut().insert(port.slot, LIMITED);
    let send = |(pause, bytes): &(u64, u32)| {
        tables.now.set(tables.now.get() + pause);
        police::conforming(&port, *bytes, &tables).is_ok()
    };
    packets.iter().map(send).collect()
}

proptest! {
    #[test]
    fn what_waits_for_its_turn_always_passes(lengths in prop::collection::vec(1..LONGEST, 1..200)) {
        // Each comes when the one before it is paid for.
        let mut packets = Vec::new();
        let mut before = 0;
        for bytes in lengths {
            packets.push((u64::from(before), bytes));
            before = bytes;
        }
        prop_assert!(passes(&packets).iter().all(|passed| *passed));
    }

    #[test]
    fn whoever_does_not_wait_gets_no_more_than_the_rate_and_one_burst(
        packets in prop::collection::vec((0u64..20_000, 1..LONGEST), 1..500)
    ) {
        let passed = passes(&packets);
        let sent: u64 = packets.iter().zip(passed).filter(|(_, passed)| *passed).map(|((_, bytes), _)| u64::from(*bytes)).sum();
        let time: u64 = packets.iter().map(|(pause, _)| *pause).sum();
        let most = time + LIMITED.tolerance + u64::from(LONGEST);
        prop_assert!(sent <= most, "{sent} bytes in {time} ns");
    }

    #[test]
    fn a_flood_gets_the_whole_rate(bytes in 64..LONGEST, pause in 1u64..50) {
        let packets = vec![(pause, bytes); 20_000];
        let passed = passes(&packets).into_iter().filter(|passed| *passed).count() as u64;
        let time = pause * packets.len() as u64;
        let offered = u64::from(bytes) * packets.len() as u64;
        prop_assert!(passed * u64::from(bytes) + u64::from(bytes) >= time.min(offered), "{passed} packets in {time} ns");
    }
}
