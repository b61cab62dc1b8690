//! How many connections a container may have, and how fast they may be opened.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "golden/mod.rs"]
mod golden;

use golden::memory_tables::MemoryTables;
use golden::world::slot;
use shunt_dataplane::abi::NO_SLOT;
use shunt_dataplane::abi::share::{Share, Side};
use shunt_dataplane::stages::share::{Excess, charge};

const SECOND: u64 = 1_000_000_000;
/// When it is, in nanoseconds.
const NOW: u64 = 2_000_000 * SECOND;

/// Tables in which `nu` has this share.
fn tables(share: Share) -> MemoryTables {
    let tables = MemoryTables::of_world();
    tables.shares.borrow_mut().insert(slot("nu"), share);
    tables
}

/// How many openings are let through at one moment.
fn burst(tables: &MemoryTables, side: Side, now: u64) -> usize {
    (0..10_000).take_while(|_| charge(slot("nu"), side, now, tables).is_ok()).count()
}

#[test]
fn a_second_of_openings_may_come_at_once_and_then_as_many_as_the_rate_allows() {
    let price = (SECOND / 500) as u32;
    let tables = tables(Share { price, ..Share::default() });
    assert_eq!(burst(&tables, Side::Own, NOW), 501);
    assert_eq!(charge(slot("nu"), Side::Own, NOW, &tables), Err(Excess::Openings));
    assert_eq!(burst(&tables, Side::TcpClient, NOW), 501, "clients' openings are another matter");
    assert_eq!(
        burst(&tables, Side::DatagramClient, NOW),
        501,
        "a flood of datagrams shuts out no connection"
    );
    assert_eq!(burst(&tables, Side::Own, NOW + SECOND / 10), 50);
    assert_eq!(burst(&tables, Side::Own, NOW + 100 * SECOND), 501, "what was not used is not saved up");
}

#[test]
fn other_containers_and_those_without_a_limit_are_not_asked() {
    let tables = tables(Share { price: 1, assured: 5, most: 5, ..Share::default() });
    assert_eq!(charge(slot("nu"), Side::Own, NOW, &tables), Err(Excess::Connections));
    assert_eq!(charge(slot("nu"), Side::TcpClient, NOW, &tables), Err(Excess::Connections));
    assert_eq!(charge(slot("tau"), Side::Own, NOW, &tables), Ok(()));
    for _ in 0..2_000 {
        assert_eq!(charge(NO_SLOT, Side::Own, NOW, &tables), Ok(()), "nobody's slot");
    }
    let negative = Share { price: 1, assured: -3, most: 5, ..Share::default() };
    tables.shares.borrow_mut().insert(slot("nu"), negative);
    assert_eq!(charge(slot("nu"), Side::Own, NOW, &tables), Ok(()), "corrected by the agent meanwhile");
}
