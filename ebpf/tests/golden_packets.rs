//! Every golden packet through the pure code: its decision, its counters, and what the maps remember afterwards.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use std::collections::BTreeSet;

use golden::bytes_packet::BytesPacket;
use golden::case::{Case, Entry, all};
use golden::filled_tables::lanes;
use golden::memory_tables::MemoryTables;
use golden::shares;
use golden::world::{NOW, places};
use shunt_dataplane::abi::share::{Share, Side};
use shunt_dataplane::abi::{ACCEPTED_PRICE, AcceptedFlow, FlowKey, KernelShare, MAX_SLOTS};
use shunt_dataplane::nat::fragments::LIFETIME;
use shunt_dataplane::stages::port::Missing;
use shunt_dataplane::wire::packet::{Readable as _, Tag};
use shunt_dataplane::{PassReason, Verdict};

/// The counters of one packet of `bytes` bytes, as golden files name them; what is dropped is counted as it came.
fn counted(tables: &MemoryTables, case: &Case, bytes: u64) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (slot, counters) in tables.counters.borrow().iter() {
        let place = places().find(|place| place.slot() == *slot).expect("a slot of the world");
        for (lane, count) in lanes(counters).into_iter().filter(|(_, count)| count.packets != 0) {
            assert_eq!(count.packets, 1, "{}: {}.{lane}", case.name, place.name);
            let bytes = if lane == "from_dropped" { case.packet.length().into() } else { bytes };
            assert_eq!(count.bytes, bytes, "{}: {}.{lane}", case.name, place.name);
            names.insert(format!("{}.{lane}", place.name));
        }
    }
    names
}

/// Which place has to pay how many nanoseconds more than before, or than nothing.
fn charged(before: &MemoryTables, after: &MemoryTables) -> Option<(u32, u64)> {
    let (before, after) = (before.policers.borrow(), after.policers.borrow());
    let (slot, paid) = after.iter().find(|(slot, policer)| before[*slot] != **policer)?;
    let place = places().find(|place| place.slot() == *slot % MAX_SLOTS).expect("a slot of the world");
    Some((place.ifindex, paid.due - before[slot].due.max(NOW)))
}

/// How many stations and addresses are elsewhere than before.
fn moved(before: &MemoryTables, after: &MemoryTables) -> usize {
    let (had, has) = (before.stations.borrow(), after.stations.borrow());
    let stations = had.iter().filter(|(key, station)| has[*key] != **station).count();
    let (had, has) = (before.addresses.borrow(), after.addresses.borrow());
    stations + had.iter().filter(|(key, owner)| has[*key] != **owner).count()
}

/// The bytes that went in, without a tag that was in them and is in the packet's no more.
fn without_tag(case: &Case, packet: &BytesPacket) -> Vec<u8> {
    let mut bytes = case.becomes.clone();
    if packet.bytes.len() < bytes.len() {
        assert!(matches!(bytes[12..14], [0x81, 0x00]), "{}: a tag was taken off", case.name);
        bytes.drain(12..16);
    }
    bytes
}

/// Whether a frame leaves with the mark for its port's guard: only what is left to the kernel does, on restricted ports.
fn is_checked(case: &Case) -> bool {
    let is_left = case.expect.0 == 0;
    match case.entry {
        Entry::FromContainer | Entry::ToContainer => is_left && case.missing == Missing::Drop,
        Entry::FromMapped => is_left && case.packet.checked,
        _ => false,
    }
}

#[test]
fn golden_packets_go_where_their_files_say() {
    for case in all() {
        let before = MemoryTables::for_packet(&case.packet);
        let after = before.clone();
        let mut packet = case.packet.clone();
        let verdict = case.entry.travel(&mut packet, case.here, case.missing, &after);

        let is_told = case.expect.0 == 8;
        assert_eq!(verdict.code(), case.expect, "{}: {verdict:?}", case.name);
        assert_eq!(packet.bytes, without_tag(&case, &packet), "{}: bytes", case.name);
        assert!(
            matches!(verdict, Verdict::Deliver(_) | Verdict::Flooded(_)) || packet.bytes == case.packet.bytes,
            "{}: only what is delivered is ever altered",
            case.name
        );
        assert_eq!(packet.copies, case.copies, "{}: copies", case.name);
        if let Some(leaves) = case.leaves {
            assert_eq!(packet.tag.map(Tag::tci), leaves, "{}: the tag that it leaves with", case.name);
        }
        assert_eq!(
            packet.own,
            case.expect.0 == 2,
            "{}: a peer's frame, and only that, is made its own",
            case.name
        );
        assert_eq!(
            packet.judged,
            matches!(case.expect.0, 3 | 5) || is_told && !case.counts.is_empty(),
            "{}: a port's frame, and only that, is marked",
            case.name
        );
        assert_eq!(packet.checked, is_checked(&case), "{}: marked as checked", case.name);
        let brings = case.entry == Entry::FromUplink && case.expect == (0, 0, PassReason::ToHost as u32);
        assert_eq!(packet.outside, brings, "{}: marked as from outside", case.name);
        let whole = if is_told { packet.length() } else { case.packet.length() };
        assert_eq!(counted(&after, &case, whole.into()), case.counts, "{}: counters", case.name);
        let drops: Vec<_> = after.drops.borrow().values().map(|count| (count.packets, count.bytes)).collect();
        let dropped = (is_told || case.expect.0 == 1).then_some((1, case.packet.length().into()));
        assert_eq!(drops, Vec::from_iter(dropped), "{}: drop counters", case.name);

        if case.entry == Entry::FromMapped {
            assert_eq!(after.handed.get().ifindex, 0, "{}: what is handed on is taken", case.name);
        }

        let grown =
            |count: fn(&MemoryTables) -> usize| count(&after).cast_signed() - count(&before).cast_signed();
        assert_eq!(grown(entries), case.flows, "{}: entries of connections", case.name);
        let assured = grown(|tables| tables.assured.borrow().len());
        assert_eq!(assured, case.assured, "{}: assured entries", case.name);
        let share =
            |tables: &MemoryTables| tables.shares.borrow().values().map(|share| share.assured).sum::<i64>();
        // A half that is forgotten or begins anew is not counted off: the agent sees to that.
        let counted = if assured % 2 == 0 && case.flows == 0 { assured as i64 } else { 0 };
        assert_eq!(share(&after) - share(&before), counted, "{}: counted as assured", case.name);
        let opened = (case.openings, noted_anew(&before, &after));
        assert_eq!(openings(&before, &after), opened, "{}: openings charged", case.name);
        let firsts = after.fragments.borrow().len() - before.fragments.borrow().len();
        assert_eq!(firsts, case.firsts, "{}: first fragments written down", case.name);
        let (known, heard) = (before.learned.borrow(), after.learned.borrow());
        let learned = heard.iter().filter(|(key, value)| known.get(key) != Some(value)).count();
        assert_eq!(learned, case.learns, "{}: stations learned", case.name);
        let forgotten = known.keys().filter(|key| !heard.contains_key(key)).count();
        assert_eq!(forgotten, case.unlearns, "{}: stations forgotten", case.name);
        let (had, has) = (before.link_locals.borrow().len(), after.link_locals.borrow().len());
        assert_eq!(
            has.cast_signed() - had.cast_signed(),
            case.chooses,
            "{}: link-local addresses",
            case.name
        );
        assert_eq!(moved(&before, &after), case.moves, "{}: stations and addresses elsewhere", case.name);
        let noted = after.kernel_flows.borrow().len() - before.kernel_flows.borrow().len();
        assert_eq!(noted, case.notes, "{}: flows noticed", case.name);
        let accepted = after.accepted.borrow().len() as isize - before.accepted.borrow().len() as isize;
        assert_eq!(accepted, case.accepts, "{}: flows that were let through", case.name);
        assert_eq!(
            after.opened.borrow().len(),
            case.opens,
            "{}: connections to be tracked liberally",
            case.name
        );
        let noted = after.incoming_flows.borrow().len() - before.incoming_flows.borrow().len();
        assert_eq!(noted, case.incoming, "{}: flows noticed that began outside", case.name);
        let claims = |tables: &MemoryTables| tables.claims.borrow().len() + tables.own_claims.borrow().len();
        let noted = claims(&after) - claims(&before);
        assert_eq!(noted, case.claims, "{}: flows noticed outside", case.name);
        let shares =
            |tables: &MemoryTables| tables.kernel_shares.borrow().values().copied().collect::<Vec<_>>();
        let sum =
            |tables: &MemoryTables, of: fn(&KernelShare) -> u64| shares(tables).iter().map(of).sum::<u64>();
        let flows = |share: &KernelShare| share.flows.cast_unsigned();
        let counted = sum(&after, flows) - sum(&before, flows);
        assert_eq!(counted, 2 * case.notes as u64, "{}: counted as its container's and among all", case.name);
        if let Some(payer) = &case.pays {
            let place = places().find(|place| place.name == *payer).expect("a place");
            let of = |tables: &MemoryTables| tables.kernel_shares.borrow()[&place.slot()].flows;
            assert_eq!(of(&after), of(&before) + 1, "{}: {payer} pays", case.name);
        }
        let refused = |share: &KernelShare| share.refused;
        let refused = sum(&after, refused) - sum(&before, refused);
        assert_eq!(refused, 2 * case.apart, "{}: no room, of its container's and among all", case.name);
        let asking: Vec<u32> = (before.ports.borrow().values().zip(after.ports.borrow().iter()))
            .filter(|(was, (_, is))| was.affinity != is.affinity)
            .map(|(_, (key, _))| key.ifindex)
            .collect();
        assert_eq!(asking, case.lookups, "{}: ports that ask from now on", case.name);
        assert_eq!(charged(&before, &after), case.charges, "{}: charged", case.name);
    }
}

/// How many entries of connections there are, in whichever map.
fn entries(tables: &MemoryTables) -> usize {
    let (assured, flows) = (tables.assured.borrow(), tables.flows.borrow());
    assured.len() + flows.keys().filter(|key| !assured.contains_key(key)).count()
}

/// Flows with neighbors that were not known between these ports before.
fn noted_anew(before: &MemoryTables, after: &MemoryTables) -> i64 {
    let (known, now) = (before.accepted.borrow(), after.accepted.borrow());
    let is_new =
        |(key, flow): &(&FlowKey, &AcceptedFlow)| known.get(key).is_none_or(|known| known.ends != flow.ends);
    now.iter().filter(is_new).count() as i64
}

/// Openings that were charged: of connections, and of flows with neighbors.
fn openings(before: &MemoryTables, after: &MemoryTables) -> (i64, i64) {
    let paid = |tables: &MemoryTables, sides: &[Side]| {
        let dues =
            |share: &Share| sides.iter().map(|side| i128::from(share.due[*side as usize])).sum::<i128>();
        tables.shares.borrow().values().map(dues).sum::<i128>()
    };
    let charged = |sides: &[Side], price: i128| ((paid(after, sides) - paid(before, sides)) / price) as i64;
    (
        charged(&[Side::Own, Side::TcpClient, Side::DatagramClient], shares::PRICE.into()),
        charged(&[Side::Neighbor], ACCEPTED_PRICE.into()),
    )
}

#[test]
fn what_is_for_the_node_is_handed_on() {
    let handed_on = all().iter().filter(|case| case.packet.handed).count();
    assert!(handed_on >= 100, "only {handed_on} packets are handed on to `from_mapped`");
}

#[test]
fn a_port_without_kernel_flows_does_not_read_past_the_ethernet_header() {
    for case in all().iter().filter(|case| case.name.starts_with("alpha_to_beta")) {
        let mut packet = case.packet.clone();
        packet.readable = 14;
        let verdict = case.entry.travel(&mut packet, case.here, case.missing, &MemoryTables::of_world());
        assert_eq!(verdict.code(), case.expect, "{}", case.name);
        assert_eq!(packet.linearized, 0, "{}", case.name);
    }
}

#[test]
fn a_copy_for_the_node_differs_by_its_sender_alone_and_is_left_to_it() {
    let mut copied = 0;
    for case in all() {
        let mut packet = case.packet.clone();
        case.entry.travel(&mut packet, case.here, case.missing, &MemoryTables::of_world());
        let Some(bytes) = packet.copied_in else { continue };
        assert_eq!((&bytes[6..12], &bytes[12..]), (&bytes[..6], &case.packet.bytes[12..]), "{}", case.name);
        let mut copy = BytesPacket::new(&bytes);
        let verdict = case.entry.travel(&mut copy, case.here, case.missing, &MemoryTables::of_world());
        assert_eq!(verdict, Verdict::Pass(PassReason::Copied), "{}", case.name);
        assert_eq!((copy.bytes, copy.copies), (bytes, Vec::new()), "{}", case.name);
        copied += 1;
    }
    assert!(copied >= 10, "only {copied} are copied");
}

#[test]
fn a_fragment_is_told_by_its_first_one_for_half_a_minute() {
    let cases: Vec<_> =
        all().into_iter().filter(|case| case.name.starts_with("wire_fragment_later_v")).collect();
    assert_eq!(cases.len(), 2);
    for case in cases {
        for (age, expected) in
            [(LIFETIME - 1, case.expect), (LIFETIME, (0, 0, PassReason::FirstUnseen as u32))]
        {
            let tables = MemoryTables::of_world();
            tables.fragments.borrow_mut().values_mut().for_each(|first| first.seen -= age);
            let verdict = case.entry.travel(&mut case.packet.clone(), case.here, case.missing, &tables);
            assert_eq!(verdict.code(), expected, "{} after {age} ns", case.name);
        }
    }
}
