//! Parity: the golden packets, and random ones made of them, through the pure code and through the loaded programs.
//! Decision, bytes, counters and what the maps remember must agree.
//!
//! `BPF_PROG_TEST_RUN` cannot see where a redirect goes (a redirect to nowhere returns 7 as well), so the debug build of
//! the programs writes its decisions down. It cannot put a tag into the metadata or make a frame non-linear either:
//! those golden packets are left to the tests of the pure code and to namespaces.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "parity/duration.rs"]
mod duration;
#[path = "parity/explained.rs"]
mod explained;
#[path = "../../ebpf/tests/golden/mod.rs"]
mod golden;
#[path = "parity/kernel.rs"]
mod kernel;
#[path = "parity/native.rs"]
mod native;
#[path = "parity/said.rs"]
mod said;
#[path = "parity/watched.rs"]
mod watched;
#[path = "parity/world_namespace.rs"]
mod world_namespace;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use golden::bytes_packet::BytesPacket;
use golden::case::{Case, Entry, all};
use golden::memory_tables::MemoryTables;
use golden::{accepted, interfaces, outside, shares, uplinks, world};
use kernel::{Kernel, Left, Run};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::learning::Learned;
use shunt_dataplane::abi::policer::Policer;
use shunt_dataplane::abi::share::Share;
use shunt_dataplane::abi::translation::{Translation, TupleKey};
use shunt_dataplane::abi::{AcceptedFlow, FlowKey, LinkLocal, PortKey, StationKey};
use shunt_dataplane::stages::port::Missing;
use shunt_dataplane::wire::packet::Tag;
use shunt_dataplane::{Delivery, Verdict, Way};
use world_namespace::in_world_namespace;

/// The programs for open ports, for restricted ones, and for those in VLANs.
const SETS: [u32; 3] = [0, 1, 2];

const BOTH: [Missing; 2] = [Missing::Pass, Missing::Drop];

const TC_ACT_UNSPEC: u32 = u32::MAX;
const TC_ACT_SHOT: u32 = 2;
const TC_ACT_REDIRECT: u32 = 7;

/// What `BPF_PROG_TEST_RUN` can be given. It wants a byte behind the Ethernet header, and of IP a whole header.
fn can_run(packet: &BytesPacket) -> bool {
    if packet.bare.is_some() {
        return can_run(&packet.clone().framed([0; 6], [0; 6]));
    }
    let least = match packet.bytes.get(12..14) {
        Some([0x08, 0x00]) => 14 + 20,
        Some([0x86, 0xdd]) => 14 + 40,
        _ => 15,
    };
    packet.tag.is_none() && packet.readable == packet.bytes.len() && packet.bytes.len() >= least
}

/// How many random packets are sent; `SHUNT_RANDOM_PACKETS` says how many, where it is to be more.
fn random_packets() -> u32 {
    std::env::var("SHUNT_RANDOM_PACKETS").ok().and_then(|number| number.parse().ok()).unwrap_or(1500)
}

/// As `Decision::tag` has it.
fn present(tag: Tag) -> u32 {
    u32::from(tag.tci()) | 1 << 16
}

/// The tables of the pure code before a packet.
fn tables_for(packet: &BytesPacket) -> MemoryTables {
    let tables = MemoryTables { boot_time: kernel::boot_time(), ..MemoryTables::of_world() };
    *tables.accepted.borrow_mut() = accepted::flows(tables.boot_time).into_iter().collect();
    *tables.learned.borrow_mut() = uplinks::learned(tables.boot_time).into_iter().collect();
    *tables.link_locals.borrow_mut() = world::link_locals(tables.boot_time).into_iter().collect();
    *tables.assured.borrow_mut() = outside::assured(tables.boot_time).into_iter().collect();
    *tables.flows.borrow_mut() = outside::flows(tables.boot_time).into_iter().collect();
    *tables.shares.borrow_mut() = shares::for_packet(packet, tables.boot_time);
    *tables.fragments.borrow_mut() = outside::fragments(tables.boot_time).into_iter().collect();
    tables
}

fn assert_parity(
    kernel: &mut Kernel,
    (entry, missing): (Entry, Missing),
    here: u32,
    packet: &BytesPacket,
    name: &str,
) {
    // What is measured from now on is not how long the verifier takes.
    kernel.ready(entry.program());
    let tables = tables_for(packet);
    let mut pure = packet.clone();
    let verdict = entry.travel(&mut pure, here, missing, &tables);

    kernel.fill(tables.boot_time);
    let shares = shares::for_packet(packet, tables.boot_time);
    kernel.share_out(&shares);
    let Run { decision, left } = kernel.run(entry.program(), here, packet);
    assert_left(left, (&verdict, &pure), name);
    assert_eq!((decision.verdict, decision.target, decision.reason), verdict.code(), "{name}: decision");
    assert_eq!(decision.unicast != 0, pure.own, "{name}: made its own");
    assert_eq!(decision.tag, pure.tag.map_or(0, present), "{name}: tag");
    let copies = (1u32..).zip(&pure.copies).fold(0u32, |sum, (place, (ifindex, tci))| {
        let tag = tci.map_or(0, |tci| present(Tag::customer(tci)));
        sum.wrapping_add(ifindex.wrapping_add(tag).wrapping_mul(place))
    });
    assert_eq!(decision.copies, copies, "{name}: copies to {:?}", pure.copies);
    assert_remembered(kernel, (tables, &shares), name);
}

/// What a run has left of a packet is what the pure code has.
fn assert_left(mut left: Left, (verdict, pure): (&Verdict, &BytesPacket), name: &str) {
    if pure.bare.is_some() {
        // It was run as a frame.
        left.bytes.drain(..14);
    }
    let action = match verdict {
        Verdict::Pass(_) | Verdict::Deliver(Delivery { way: Way::Onward, .. }) => TC_ACT_UNSPEC,
        Verdict::Drop(_) | Verdict::Flooded(_) => TC_ACT_SHOT,
        Verdict::Deliver(_) => TC_ACT_REDIRECT,
    };
    assert_eq!(left.action, action, "{name}: action for {verdict:?}");
    assert_eq!(left.mark_left, pure.judged, "{name}: marked as judged");
    assert_eq!(left.checked, pure.checked, "{name}: marked as checked");
    assert_eq!(left.outside, pure.outside, "{name}: marked as from outside");
    assert_eq!(left.bytes, pure.bytes, "{name}: bytes");
}

/// What the maps hold is what the pure code's tables do.
fn assert_remembered(
    kernel: &mut Kernel,
    (tables, shares): (MemoryTables, &BTreeMap<u32, Share>),
    name: &str,
) {
    let remembered = kernel.remembered();
    assert_eq!(remembered.counters, *tables.counters.borrow(), "{name}: counters");
    assert_eq!(remembered.drops, *tables.drops.borrow(), "{name}: drops");
    assert_eq!(remembered.kernel_flows, *tables.kernel_flows.borrow(), "{name}: kernel flows");
    assert_eq!(remembered.kernel_shares, *tables.kernel_shares.borrow(), "{name}: shares of kernel flows");
    let known = |flows: &BTreeMap<FlowKey, AcceptedFlow>| -> BTreeMap<FlowKey, AcceptedFlow> {
        let whether =
            |flow: &AcceptedFlow| AcceptedFlow { seen: flow.seen.map(|seen| u64::from(seen != 0)), ..*flow };
        flows.iter().map(|(key, flow)| (*key, whether(flow))).collect()
    };
    assert_eq!(remembered.opened, *tables.opened.borrow(), "{name}: connections to be tracked liberally");
    assert_eq!(known(&remembered.accepted), known(&tables.accepted.borrow()), "{name}: accepted flows");
    let incoming = BTreeSet::from_iter(tables.incoming_flows.borrow().keys().copied());
    assert_eq!(remembered.incoming_flows, incoming, "{name}: incoming flows");
    let claimed = [&tables.claims, &tables.own_claims];
    let claimed = claimed.map(|claims| BTreeSet::from_iter(claims.borrow().keys().copied()));
    assert_eq!(remembered.claims, claimed, "{name}: flows outside that are the kernel's");
    assert_eq!(remembered.ports, *tables.ports.borrow(), "{name}: ports");
    assert_eq!(remembered.handed, tables.handed.get(), "{name}: what is handed on");
    assert_eq!(remembered.stations, *tables.stations.borrow(), "{name}: stations");
    assert_eq!(remembered.addresses, *tables.addresses.borrow(), "{name}: addresses");
    let timeless = |flows: BTreeMap<TupleKey, Translation>| -> BTreeMap<TupleKey, Translation> {
        flows.into_iter().map(|(key, flow)| (key, Translation { touched: 0, begun: 0, ..flow })).collect()
    };
    assert_eq!(timeless(remembered.flows), timeless(tables.flows.into_inner()), "{name}: flows");
    assert_eq!(timeless(remembered.assured), timeless(tables.assured.into_inner()), "{name}: assured");
    let changed = |now: &BTreeMap<u32, Share>| -> Vec<(u32, Share)> {
        now.iter()
            .filter(|(slot, share)| shares.get(slot) != Some(share))
            .map(|(slot, share)| (*slot, *share))
            .collect()
    };
    assert_eq!(changed(&remembered.shares), changed(&tables.shares.borrow()), "{name}: shares");
    let whenever = |fragments: BTreeMap<FragmentKey, FragmentTranslation>| -> BTreeMap<_, _> {
        fragments.into_iter().map(|(key, first)| (key, FragmentTranslation { seen: 0, ..first })).collect()
    };
    assert_eq!(whenever(remembered.fragments), whenever(tables.fragments.into_inner()), "{name}: fragments");
    assert_eq!(remembered.uplinks, *tables.uplinks.borrow(), "{name}: uplinks");
    let whenever = |learned: BTreeMap<StationKey, Learned>| -> BTreeMap<StationKey, Learned> {
        learned.into_iter().map(|(key, value)| (key, Learned { seen: 0, ..value })).collect()
    };
    assert_eq!(whenever(remembered.learned), whenever(tables.learned.into_inner()), "{name}: learned");
    let chosen = |addresses: BTreeMap<PortKey, LinkLocal>| -> BTreeMap<PortKey, LinkLocal> {
        addresses.into_iter().map(|(key, chosen)| (key, LinkLocal { since: 0, ..chosen })).collect()
    };
    let link_locals = chosen(tables.link_locals.into_inner());
    assert_eq!(chosen(remembered.link_locals), link_locals, "{name}: link-local addresses");
    assert_eq!(comparable(&remembered.policers), comparable(&tables.policers.borrow()), "{name}: policers");
}

/// The policers, but for what was paid by the clock: the kernel has another one.
fn comparable(policers: &BTreeMap<u32, Policer>) -> Vec<(u32, Policer)> {
    let by_the_clock = |due| (1..world::FAR).contains(&due);
    let read = |(slot, policer): (&u32, &Policer)| {
        let due = if by_the_clock(policer.due) { 1 } else { policer.due };
        (*slot, Policer { due, ..*policer })
    };
    policers.iter().map(read).collect()
}

#[test]
fn golden_packets_fare_alike_in_pure_code_and_kernel() {
    in_world_namespace(|| {
        let mut kernels = SETS.map(Kernel::load);
        let cases: Vec<Case> = all().into_iter().filter(|case| can_run(&case.packet)).collect();
        assert!(cases.len() >= 60, "only {} golden packets can be run", cases.len());
        for case in cases {
            let kernel = &mut kernels[case.entry.set(case.missing) as usize];
            assert_parity(kernel, (case.entry, case.missing), case.here, &case.packet, &case.name);
        }
    });
}

#[test]
fn random_packets_fare_alike_in_pure_code_and_kernel() {
    in_world_namespace(|| {
        let kernels = RefCell::new(SETS.map(Kernel::load));
        let cases: Vec<Case> = all().into_iter().filter(|case| can_run(&case.packet)).collect();
        let change = (0usize..120, any::<u8>());
        let program = (0..Entry::ALL.len(), 0..BOTH.len());
        let everywhere: Vec<_> = world::places().collect();
        let places = (0..everywhere.len(), prop::option::of(0..everywhere.len()));
        let changes = prop::collection::vec(change, 0..4);
        let input = (0..cases.len(), program, places, changes, 15usize..2000);
        let mut runner = TestRunner::new(Config {
            cases: random_packets(),
            failure_persistence: None,
            ..Config::default()
        });
        let outcome = runner.run(&input, |(which, (entry, missing), (place, origin), changes, length)| {
            let (entry, missing) = (Entry::ALL[entry], BOTH[missing]);
            let here = match everywhere[place].ifindex {
                _ if entry == Entry::FromTrunk => interfaces::MASTER,
                _ if entry == Entry::ToTrunk => interfaces::PARENT,
                _ if matches!(entry, Entry::FromTunnel | Entry::ToWire | Entry::ToTunnel) => outside::UPLINK,
                ifindex if entry != Entry::FromWire || ifindex == world::BRIDGE => ifindex,
                _ => outside::UPLINK,
            };
            let mut packet = cases[which].packet.clone();
            packet = match entry {
                Entry::FromTunnel | Entry::ToTunnel => packet.bared(),
                _ => packet.framed(world::mac(here), [2; 6]),
            };
            packet.bytes.truncate(length);
            for (at, byte) in changes {
                if let Some(target) = packet.bytes.get_mut(at) {
                    *target = byte;
                }
            }
            packet.readable = packet.bytes.len();
            packet.origin = origin.map_or(0, |origin| everywhere[origin].ifindex);
            // A copy really leaves by a device, which cannot cut what a test run only says is to be cut.
            let copies =
                matches!(entry, Entry::FromMember | Entry::FromVlan | Entry::FromTrunk | Entry::FromUplink);
            let is_cut = copies && packet.segment_size != 0;
            if is_cut || !can_run(&packet) {
                return Err(TestCaseError::reject("a packet that no test run takes"));
            }
            let kernel = &mut kernels.borrow_mut()[entry.set(missing) as usize];
            let name = format!("{packet:02x?}");
            assert_parity(kernel, (entry, missing), here, &packet, &name);
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{error}");
        }
    });
}
