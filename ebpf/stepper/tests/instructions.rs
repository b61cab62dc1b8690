//! The golden packets through the shipped programs, step by step: they must fare as their files say, and take no more
//! instructions than they did.
//!
//! This also runs what `BPF_PROG_TEST_RUN` cannot be given: tags beside the frame, and frames in more than one piece.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

#[path = "../../tests/golden/mod.rs"]
mod golden;
#[path = "instructions/record.rs"]
mod record;
#[path = "instructions/world_machine.rs"]
mod world_machine;

use std::collections::BTreeMap;

use golden::bytes_packet::BytesPacket;
use golden::case::{Case, Entry, all};
use golden::memory_tables::MemoryTables;
use record::Cost;
use shunt_dataplane::wire::packet::Tag;
use stepper::{Outcome, Redirect};
use world_machine::{PACKET_HOST, Programs};

const TC_ACT_UNSPEC: u32 = u32::MAX;
const TC_ACT_SHOT: u32 = 2;
const TC_ACT_REDIRECT: u32 = 7;

/// What the shipped programs show of a verdict.
fn expected(case: &Case) -> (u32, Option<Redirect>) {
    let (verdict, target, _) = case.expect;
    match verdict {
        0 | 9 => (TC_ACT_UNSPEC, None),
        2 => (TC_ACT_REDIRECT, Some(Redirect::Peer(target))),
        3 => (TC_ACT_REDIRECT, Some(Redirect::Port(target))),
        4 => (TC_ACT_REDIRECT, Some(Redirect::Neighbor(target))),
        6 | 8 => (TC_ACT_REDIRECT, Some(Redirect::Port(target))),
        7 => (TC_ACT_REDIRECT, Some(Redirect::Into(target))),
        _ => (TC_ACT_SHOT, None),
    }
}

/// The same packet by the pure code: its bytes, tag and copies.
fn by_pure_code(case: &Case) -> BytesPacket {
    let mut packet = case.packet.clone();
    case.entry.travel(&mut packet, case.here, case.missing, &MemoryTables::for_packet(&case.packet));
    packet
}

fn assert_fares_as_its_file_says(case: &Case, outcome: &Outcome) {
    let name = &case.name;
    assert_eq!((outcome.action, outcome.redirect), expected(case), "{name}: what is returned");
    let pure = by_pure_code(case);
    assert_eq!(outcome.packet.frame, pure.bytes, "{name}: bytes");
    let tag = outcome.packet.tag.map(|(_, tci)| tci);
    assert_eq!(tag, pure.tag.map(Tag::tci), "{name}: tag");
    assert_eq!(outcome.copies, pure.copies, "{name}: copies");
    // A kernel that does not see to it itself (before 6.1.139 and 6.12.29) would have the container drop it.
    if matches!(outcome.redirect, Some(Redirect::Peer(_))) {
        assert_eq!(outcome.packet.packet_type, PACKET_HOST, "{name}: the packet is for whoever gets it");
    }
}

#[test]
fn golden_packets_fare_as_their_files_say_and_cost_no_more_than_they_did() {
    let sets = [0, 1, 2].map(Programs::read);
    let mut costs = BTreeMap::new();
    for case in all() {
        let outcome = sets[case.entry.set(case.missing) as usize].run(&case);
        assert_fares_as_its_file_says(&case, &outcome);
        costs.insert(case.name, Cost::of(&outcome));
    }
    record::check(costs);
}

/// What a watcher of drops costs packets that are not dropped, and those of host ports and masquerading, whose programs also drop
/// packets that they answer.
const INSTRUCTIONS_WATCHED: u64 = 64;
const INSTRUCTIONS_WATCHED_IN_NAT: u64 = 256;

#[test]
fn watched_programs_judge_like_the_plain_ones_and_cost_what_is_not_dropped_next_to_nothing() {
    let plain = [0, 1, 2].map(Programs::read);
    let mut worst = [0, 0];
    for capturing in [0, 1] {
        let watched = [0, 1, 2].map(|restricted| Programs::watched(restricted, capturing));
        for case in all() {
            let set = case.entry.set(case.missing) as usize;
            let outcome = watched[set].run(&case);
            assert_fares_as_its_file_says(&case, &outcome);
            // One that is answered as too big is dropped, and told.
            if capturing == 1 || outcome.action == TC_ACT_SHOT || case.expect.0 == 8 {
                continue;
            }
            let in_nat = ["from_mapped", "from_wire", "from_tunnel", "to_wire", "to_tunnel"];
            let is_in_nat = in_nat.contains(&case.entry.program());
            let most = if is_in_nat { INSTRUCTIONS_WATCHED_IN_NAT } else { INSTRUCTIONS_WATCHED };
            let more = outcome.instructions.saturating_sub(plain[set].run(&case).instructions);
            worst[usize::from(is_in_nat)] = worst[usize::from(is_in_nat)].max(more);
            assert!(more <= most, "{}: {more} instructions more", case.name);
        }
    }
    println!("instructions more: {} of a port's programs, {} of NAT's", worst[0], worst[1]);
}

#[test]
fn a_packet_that_is_known_takes_four_look_ups() {
    let case = all().into_iter().find(|case| case.name == "alpha_to_beta_tcp_v4").expect("a golden packet");
    assert_eq!(case.entry, Entry::FromContainer);
    let cost = Cost::of(&Programs::read(0).run(&case));
    assert_eq!(cost.look_ups, 4, "two ports, and the counters of both");
    assert_eq!(cost.calls, 6, "they, its type, and where it goes");
}
