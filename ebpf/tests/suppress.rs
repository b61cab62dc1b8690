//! What is suppressed of frames to groups, after others have said something.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use golden::case::all;
use golden::memory_tables::MemoryTables;
use golden::world;
use shunt_dataplane::abi::{AddressKey, PORT_SPARING, PortKey};
use shunt_dataplane::wire::address::{Address, Mac};
use shunt_dataplane::{PassReason, Tables as _, Verdict, Way};

const HEARD: Verdict = Verdict::Pass(PassReason::Group);

/// [`Verdict::code`] of a packet that comes in by another interface.
const INTO: u32 = 7;

/// Sends a golden packet.
fn say(tables: &MemoryTables, name: &str) -> Verdict {
    let case = all().into_iter().find(|case| case.name == name).unwrap();
    case.entry.travel(&mut case.packet.clone(), case.here, case.missing, tables)
}

fn is_suppressed(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Deliver(delivery) if delivery.way == Way::Into)
}

/// Whether a packet is suppressed, and whether it still is once others have been said.
fn before_and_after(said: &[&str], name: &str) -> (bool, bool) {
    let tables = MemoryTables::of_world();
    let before = is_suppressed(say(&tables, name));
    said.iter().for_each(|said| _ = say(&tables, said));
    let verdict = say(&tables, name);
    assert!(is_suppressed(verdict) || verdict == HEARD, "{name}: {verdict:?}");
    (before, is_suppressed(verdict))
}

#[test]
fn what_an_owner_says_to_a_probe_is_heard_and_so_is_all_that_it_announces_from_then_on() {
    for announcement in ["anew_advertises_itself", "anew_announces_itself"] {
        assert_eq!(before_and_after(&["again_probes_anews_address"], announcement), (true, false));
    }
}

#[test]
fn an_address_that_has_moved_and_is_back_is_announced_to_everybody_each_time() {
    let moved = ["again_announces_anews_address", "anew_announces_itself"];
    assert_eq!(before_and_after(&moved, "anew_announces_itself"), (true, false));
}

#[test]
fn a_report_is_heard_once_somebody_has_queried() {
    for query in ["again_queries_listeners", "common_queries_listeners"] {
        assert_eq!(before_and_after(&[query], "anew_reports_groups_of_the_link"), (true, false));
        assert_eq!(before_and_after(&[query], "anew_looks_for_routers"), (true, true));
    }
}

#[test]
fn a_question_for_routers_is_heard_once_there_may_be_one() {
    for router in ["again_advertises_as_router", "again_reports_all_routers", "anew_reports_too_many"] {
        assert_eq!(before_and_after(&[router], "anew_looks_for_routers"), (true, false));
        assert_eq!(before_and_after(&[router], "anew_reports_groups_of_the_link"), (true, true));
    }
}

#[test]
fn a_link_local_address_that_somebody_has_asked_for_is_announced_to_everybody() {
    let tables = MemoryTables::of_world();
    let again = world::ifindex("again");
    let own = Address::link_local_of(Mac::new(world::mac(again)));
    assert!(is_suppressed(say(&tables, "again_advertises_link_local")));
    tables.mention(&AddressKey::new(world::ifindex("common"), 0, own));
    assert_eq!(say(&tables, "again_advertises_link_local"), HEARD);
}

#[test]
fn whoever_asks_for_an_address_that_nobody_has_is_remembered() {
    let tables = MemoryTables::of_world();
    let asked = std::net::IpAddr::from([10, 9, 27, 200]);
    let key = AddressKey::new(world::ifindex("common"), 0, asked.into());
    assert!(!tables.is_mentioned(&key));
    assert_eq!(say(&tables, "again_asks_for_nobodys_address"), HEARD);
    assert!(tables.is_mentioned(&key));
}

#[test]
fn a_bridge_that_does_not_spare_hears_everything() {
    let tables = MemoryTables::of_world();
    for bridge in ["common", "queried"] {
        tables.mark_port(&PortKey { ifindex: world::ifindex(bridge) }, PORT_SPARING, false);
    }
    let mut heard = 0;
    for case in all().into_iter().filter(|case| [70, 71].contains(&(case.here / 100))) {
        if case.expect.0 == INTO {
            assert_eq!(say(&tables, &case.name), HEARD, "{}", case.name);
            heard += 1;
        }
    }
    assert!(heard >= 7, "only {heard}");
}
