//! What is known of stations beyond uplinks, against a model that remembers everything.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use std::collections::{BTreeMap, BTreeSet};

use golden::memory_tables::MemoryTables;
use proptest::prelude::*;
use shunt_dataplane::abi::learning::{AGEING, Learning, MAX_HELD, REFRESH};
use shunt_dataplane::abi::{PortKey, StationKey};
use shunt_dataplane::stages::learn;
use shunt_dataplane::wire::address::Mac;

const UPLINKS: [u32; 3] = [7, 8, 9];

fn station(number: u8) -> StationKey {
    StationKey { bridge: 1, vid: 0, mac: Mac::new([2, 0, 0, 0, 0, number]) }
}

/// Nothing is known yet, and of each uplink `held` stations are counted.
fn tables(held: u64) -> MemoryTables {
    let tables = MemoryTables::default();
    let learning = Learning { mtu: 1500, held, ..Learning::default() };
    tables.uplinks.borrow_mut().extend(UPLINKS.map(|ifindex| (PortKey { ifindex }, learning)));
    tables
}

proptest! {
    #[test]
    fn a_station_is_where_it_was_heard_last_until_it_was_not_heard_for_long(
        steps in prop::collection::vec((0..AGEING / 4, 0..6u8, 0..UPLINKS.len()), 1..200),
    ) {
        let mut tables = tables(0);
        let mut model: BTreeMap<u8, (u32, u64)> = BTreeMap::new();
        for (pause, number, place) in steps {
            tables.boot_time += pause;
            let now = tables.boot_time;
            for number in 0..6 {
                let known = learn::beyond(&station(number), &tables).map(|station| station.ifindex);
                match model.get(&number) {
                    // When it was heard is not written down each time, so it may go by so much too early.
                    Some((here, seen)) if now - seen < AGEING - REFRESH => prop_assert_eq!(known, Some(*here)),
                    Some((here, seen)) if now - seen < AGEING => prop_assert!(known.is_none_or(|known| known == *here)),
                    _ => prop_assert_eq!(known, None),
                }
            }
            learn::heard(&station(number), 0, UPLINKS[place], &tables);
            model.insert(number, (UPLINKS[place], now));
        }
        let heard: BTreeSet<u8> = model.into_keys().collect();
        prop_assert_eq!(tables.learned.borrow().len(), heard.len());
    }

    #[test]
    fn an_uplink_without_room_counts_whom_it_does_not_learn_and_forgets_nobody(
        room in 0..20u64,
        numbers in prop::collection::vec(0..40u8, 1..200),
    ) {
        let tables = tables(MAX_HELD - room);
        let mut known = BTreeSet::new();
        let mut refused = 0;
        for number in numbers {
            learn::heard(&station(number), 0, UPLINKS[0], &tables);
            if known.contains(&number) || (known.len() as u64) < room {
                known.insert(number);
            } else {
                refused += 1;
            }
        }
        let learning = tables.uplinks.borrow()[&PortKey { ifindex: UPLINKS[0] }];
        prop_assert_eq!((learning.held, learning.refused), (MAX_HELD - room + known.len() as u64, refused));
        prop_assert!(known.iter().all(|number| learn::beyond(&station(*number), &tables).is_some()));
        prop_assert_eq!(tables.learned.borrow().len(), known.len());
    }
}
