//! Connections of host ports that the kernel has opened: what an end leaves of one, and who pays for what is noted.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use golden::case::{Case, all};
use golden::memory_tables::MemoryTables;
use golden::world;
use shunt_dataplane::abi::share::Side;
use shunt_dataplane::abi::translation::OUTSIDE;
use shunt_dataplane::abi::{
    ACCEPTED_LIBERAL, ACCEPTED_PRICE, HEEDING_MARKED_ROUTES, NO_SLOT, QUESTION_TRANSLATION,
    TRANSLATED_SEGMENTS,
};

/// Where the destination port of a segment of IPv4 is.
const TO: usize = 14 + 20 + 2;

/// The client's port of a connection that is carried.
const CARRIED: u16 = 40_010;

fn case(name: &str) -> Case {
    all().into_iter().find(|case| case.name == name).expect("a golden packet")
}

fn travel(case: &Case, tables: &MemoryTables) {
    case.entry.travel(&mut case.packet.clone(), case.here, case.missing, tables);
}

#[test]
fn a_connection_that_outlives_its_end_is_asked_for_again() {
    let tables = MemoryTables::of_world();
    tables.accepted.borrow_mut().values_mut().for_each(|flow| flow.flags = ACCEPTED_LIBERAL);
    let noted = tables.accepted.borrow().clone();
    travel(&case("wire_tracked_fin_v4"), &tables);
    // What the client sends next comes out of all hooks.
    let inwards = noted.into_iter().filter(|(key, _)| key.bridge != OUTSIDE);
    tables.accepted.borrow_mut().extend(inwards);
    let mut answer = case("own_answers_heeded_asks_v4");
    answer.packet.bytes[TO..TO + 2].copy_from_slice(&CARRIED.to_be_bytes());
    for _ in 0..TRANSLATED_SEGMENTS {
        travel(&answer, &tables);
    }
    assert_eq!(tables.opened.borrow().len(), 0);
    travel(&answer, &tables);
    assert_eq!(tables.opened.borrow().len(), 1);
}

#[test]
fn the_container_pays_for_its_answers() {
    let tables = MemoryTables::of_world();
    let paid = |slot: u32| tables.shares.borrow()[&slot].due[Side::Neighbor as usize];
    let slots = [world::slot("tau"), NO_SLOT];
    let before = slots.map(paid);
    travel(&case("own_answers_heeded_v4"), &tables);
    assert_eq!(slots.map(paid), [before[0] + ACCEPTED_PRICE, before[1]]);
}

#[test]
fn what_the_agent_is_asked_of_a_connection_that_the_kernel_masquerades_is_its_translation() {
    let tables = MemoryTables::of_world();
    travel(&case("stable_answered_asks_tcp_v4"), &tables);
    let asked = tables.opened.borrow();
    assert_eq!(asked.iter().map(|question| question.wanted).collect::<Vec<_>>(), [QUESTION_TRANSLATION]);
}

/// Its own entry is no other connection's, so that it keeps its port, whether or not others' rules are asked.
#[test]
fn what_is_carried_keeps_its_port_when_the_kernel_masquerades_all_of_it_again() {
    for name in ["own_carried_udp_v4", "own_carried_udp_v6"] {
        let mut tables = MemoryTables::of_world();
        tables.heeding.lease = 0;
        let case = case(name);
        let mut packet = case.packet.clone();
        case.entry.travel(&mut packet, case.here, case.missing, &tables);
        assert_eq!(packet.bytes, case.packet.bytes, "{name}");
    }
}

/// By its mark it may have taken another way than the one on which it would be carried.
#[test]
fn what_leaves_with_a_mark_where_routes_depend_on_marks_is_not_noted() {
    for name in ["own_carried_tcp_v4", "own_answers_heeded_v4"] {
        for (is_marked, flags, notes) in
            [(true, HEEDING_MARKED_ROUTES, 0), (true, 0, 1), (false, HEEDING_MARKED_ROUTES, 1)]
        {
            let mut tables = MemoryTables::of_world();
            tables.heeding.flags |= flags;
            let before = tables.accepted.borrow().len();
            let mut case = case(name);
            case.packet.marked = is_marked;
            travel(&case, &tables);
            assert_eq!(tables.accepted.borrow().len() - before, notes, "{name}, {is_marked}, {flags}");
        }
    }
}
