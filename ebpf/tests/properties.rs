//! What holds for every packet, not only for the golden ones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use golden::bytes_packet::BytesPacket;
use golden::case::{Entry, all};
use golden::members;
use golden::memory_tables::MemoryTables;
use golden::outside::UPLINK;
use golden::world::{PLACES, places};
use proptest::prelude::*;
use shunt_dataplane::abi::{End, FlowKey, PORT_DEFAULT_VLAN, PORT_MAPPED, PORT_MASQUERADED, PortKey};
use shunt_dataplane::stages::port::Missing;
use shunt_dataplane::wire::address::{Address, L4Port};
use shunt_dataplane::wire::packet::Tag;
use shunt_dataplane::{Delivery, DropReason, PassReason, Verdict, Way};

const ENTRIES: [Entry; 5] =
    [Entry::FromContainer, Entry::ToContainer, Entry::FromHost, Entry::FromMember, Entry::ToMember];

/// Those that may alter what they do not send themselves; each is counted as its golden packets say.
const TRANSLATING: [Entry; 3] = [Entry::FromMapped, Entry::FromWire, Entry::FromTunnel];

/// Whether `from_container` leaves what is for the node to `from_mapped`, which counts it.
fn is_left(entry: Entry, here: u32, tables: &MemoryTables) -> bool {
    let port = tables.ports.borrow().get(&PortKey { ifindex: here }).copied();
    entry == Entry::FromContainer
        && port.is_some_and(|port| port.flags & (PORT_MAPPED | PORT_MASQUERADED) != 0)
}

/// A packet is counted at the sender, and a delivered one at the receiver as well; a judged one was counted before.
fn assert_counted_once(entry: Entry, here: u32, verdict: Verdict, tables: &MemoryTables) {
    let expected = match verdict {
        // An answer to the node: it has the counters of its bridge, on which the question was counted. What the kernel goes on with has not
        // arrived.
        Verdict::Deliver(Delivery { way: Way::Into | Way::Onward, .. }) => 1,
        Verdict::Deliver(_) => 2,
        Verdict::Flooded(copies) => 1 + u64::from(copies),
        Verdict::Pass(PassReason::NoPort | PassReason::Judged) => 0,
        Verdict::Pass(PassReason::ToHost) if is_left(entry, here, tables) => 0,
        // Without an entry there are no counters; the drop itself is counted.
        Verdict::Drop(DropReason::NoPort) => {
            assert_eq!(tables.drops.borrow().values().map(|count| count.packets).sum::<u64>(), 1);
            0
        }
        Verdict::Pass(_) | Verdict::Drop(_) => 1,
    };
    assert_eq!(tables.counted(), expected, "{verdict:?}");
}

/// Whether a question has come back as its answer, to the interface `here` or to the node: what went to a group goes to whoever
/// sent it.
fn is_answer(verdict: Verdict, here: u32, question: &[u8], answer: &[u8]) -> bool {
    let came_back = matches!(verdict, Verdict::Deliver(Delivery { ifindex, way, .. }) if ifindex == here || way == Way::Into);
    came_back && question[0] & 1 == 1 && answer[..6] == question[6..12] && answer.len() == question.len()
}

#[test]
fn no_truncation_panics_and_each_is_counted() {
    for case in all() {
        for length in 0..case.packet.bytes.len().min(200) {
            for entry in ENTRIES {
                let tables = MemoryTables::of_world();
                let mut packet =
                    BytesPacket { bytes: case.packet.bytes[..length].to_vec(), ..case.packet.clone() };
                let verdict = entry.travel(&mut packet, case.here, case.missing, &tables);
                assert_counted_once(entry, case.here, verdict, &tables);
                assert!(
                    length >= 14 || !matches!(verdict, Verdict::Deliver(_)),
                    "{}: {length} bytes",
                    case.name
                );
            }
        }
    }
}

#[test]
fn how_much_is_directly_readable_changes_nothing() {
    for case in all() {
        // The kernel guarantees the Ethernet header at tc ingress and egress.
        for readable in 14..case.packet.bytes.len().min(120) {
            if case.packet.bytes.len() > 14 && !matches!(case.packet.bytes[12..14], [0x81, 0] | [0x88, 0xa8])
            {
                let mut packet = BytesPacket { readable, ..case.packet.clone() };
                let verdict = case.entry.travel(
                    &mut packet,
                    case.here,
                    case.missing,
                    &MemoryTables::for_packet(&case.packet),
                );
                assert_eq!(verdict.code(), case.expect, "{} with {readable} bytes readable", case.name);
            }
        }
    }
}

fn any_packet() -> impl Strategy<Value = BytesPacket> {
    let noise = prop::collection::vec(any::<u8>(), 0..200);
    // Noise behind a golden packet's first bytes gets past the first checks.
    let cases: Vec<Vec<u8>> = all().into_iter().map(|case| case.packet.bytes).collect();
    let start = (0..cases.len(), 0usize..80).prop_map(move |(which, keep)| {
        let bytes = &cases[which];
        bytes[..keep.min(bytes.len())].to_vec()
    });
    (start, noise, any::<bool>(), prop::option::of(any::<u16>()), 0usize..200, 0u32..3000).prop_map(
        |(mut bytes, noise, judged, tci, readable, segment_size)| {
            bytes.extend(noise);
            BytesPacket {
                bytes,
                tag: tci.map(Tag::customer),
                readable,
                segment_size,
                judged,
                ..BytesPacket::default()
            }
        },
    )
}

/// A golden packet of those that translate, where it belongs, with a few of its bytes changed and maybe cut.
fn nearly_translated() -> impl Strategy<Value = (Entry, u32, BytesPacket)> {
    let cases = all().into_iter().filter(|case| TRANSLATING.contains(&case.entry));
    let cases: Vec<_> = cases.map(|case| (case.entry, case.here, case.packet)).collect();
    let changes = prop::collection::vec((14usize..120, any::<u8>()), 0..3);
    let length = prop_oneof![3 => Just(usize::MAX), 1 => 0usize..120];
    (prop::sample::select(cases), changes, length, prop_oneof![3 => Just(usize::MAX), 1 => 14usize..120])
        .prop_map(|((entry, here, mut packet), changes, length, readable)| {
            for (at, byte) in changes {
                packet.bytes.get_mut(at).into_iter().for_each(|old| *old = byte);
            }
            packet.bytes.truncate(length);
            packet.readable = packet.readable.min(readable);
            (entry, here, packet)
        })
}

/// Any packet at any place, for those that translate.
fn hardly_translated() -> impl Strategy<Value = (Entry, u32, BytesPacket)> {
    let heres: Vec<_> = places().map(|place| place.ifindex).chain([UPLINK]).collect();
    (prop::sample::select(TRANSLATING.to_vec()), prop::sample::select(heres), any_packet())
}

fn any_address() -> impl Strategy<Value = Address> {
    prop_oneof![any::<[u16; 2]>().prop_map(Address::from_v4), any::<[u16; 8]>().prop_map(Address::from_v6)]
}

fn any_end() -> impl Strategy<Value = End> {
    (any_address(), any::<u16>()).prop_map(|(address, port)| End { address, port: L4Port::from(port) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_judged_without_a_panic_and_counted_once(
        packet in any_packet(), place in 0..places().count(), entry in 0..ENTRIES.len(),
    ) {
        let here = places().nth(place).expect("a place").ifindex;
        let tables = MemoryTables::of_world();
        let before = packet.bytes.clone();
        let mut packet = packet;
        let verdict = ENTRIES[entry].travel(&mut packet, here, Missing::Drop, &tables);
        assert_counted_once(ENTRIES[entry], here, verdict, &tables);
        let is_renamed = matches!(verdict, Verdict::Deliver(Delivery { way: Way::Onward, .. }));
        if ENTRIES[entry] != Entry::FromMember && !is_renamed && !is_answer(verdict, here, &before, &packet.bytes) {
            prop_assert_eq!(packet.bytes, before);
        }
    }

    #[test]
    fn what_was_rewritten_is_neither_punted_nor_dropped(
        (entry, here, packet) in prop_oneof![3 => nearly_translated(), 1 => hardly_translated()],
    ) {
        let (before, mut packet) = (packet.clone(), packet);
        let verdict = entry.travel(&mut packet, here, Missing::Pass, &MemoryTables::of_world());
        if let Verdict::Pass(_) | Verdict::Drop(_) = verdict {
            prop_assert_eq!((packet.bytes, packet.tag), (before.bytes, before.tag), "{:?} {:?}", entry, verdict);
        } else if let Verdict::Deliver(Delivery { way: Way::Back, .. }) = verdict {
            // Whatever was sent, an error is short, goes to its sender, and quotes it as it was.
            prop_assert_eq!(packet.bare, before.bare);
            let [said, sent] = [packet, before].map(|packet| packet.framed([0; 6], [0; 6]).bytes);
            prop_assert!(said.len() < sent.len());
            prop_assert_eq!(&said[..6], &sent[6..12]);
            let quoted = if sent[12] == 8 { 42 } else { 62 };
            prop_assert!(sent[14..].starts_with(&said[quoted..]));
        }
    }

    #[test]
    fn what_members_send_reaches_members_of_its_vlan_only_and_never_the_kernel(
        packet in any_packet(), sender in 0..members::PLACES.len(), receiver in 0..members::PLACES.len(),
        group in any::<bool>(), tci in prop::option::of((0u16..8, 0u16..35)),
    ) {
        let here = &members::PLACES[sender];
        let tci = tci.map(|(priority, vid)| priority << 13 | vid);
        let tag = tci.map(Tag::customer);
        let to = if group { [0xff; 6] } else { members::PLACES[receiver].mac().octets() };
        let bytes = [&to[..], &here.mac().octets(), &[0x88, 0xb5], &packet.bytes].concat();
        let mut packet = BytesPacket { readable: bytes.len(), bytes, tag, ..packet };
        let tables = MemoryTables::of_world();
        let verdict = Entry::FromMember.travel(&mut packet, here.ifindex, Missing::Drop, &tables);
        let vid = tci.map(|tci| tci & 0xfff).filter(|vid| *vid != 0).unwrap_or(here.vid);
        let reached = match verdict {
            Verdict::Pass(_) => return Err(TestCaseError::fail("left to the kernel")),
            Verdict::Deliver(delivery) => vec![(delivery.ifindex, packet.tag.map(Tag::tci))],
            Verdict::Flooded(_) => packet.copies.clone(),
            Verdict::Drop(_) => Vec::new(),
        };
        for (ifindex, tag) in reached {
            prop_assert_ne!(ifindex, here.ifindex);
            let there = members::PLACES.iter().find(|place| place.ifindex == ifindex).expect("a member");
            let tagged = tables.tagged.get(&PortKey { ifindex }).is_some_and(|vlans| vlans.has(vid));
            prop_assert_eq!(tag.map(|tci| tci & 0xfff), (there.vid != vid && tagged).then_some(vid));
            let default = vid == 1 && there.restrictions & PORT_DEFAULT_VLAN != 0;
            prop_assert!(there.vid == vid || tagged || default, "{} is not in VLAN {}", there.name, vid);
        }
    }

    #[test]
    fn nothing_is_delivered_across_bridges_or_back(packet in any_packet(), place in 0..PLACES.len()) {
        let here = &PLACES[place];
        let (question, mut packet) = (packet.bytes.clone(), packet);
        let verdict = Entry::FromContainer.travel(&mut packet, here.ifindex, Missing::Pass, &MemoryTables::of_world());
        if is_answer(verdict, here.ifindex, &question, &packet.bytes) {
            return Ok(());
        }
        if let Verdict::Deliver(delivery) = verdict {
            let there = PLACES.iter().find(|place| place.ifindex == delivery.ifindex).expect("a known place");
            prop_assert_eq!(there.bridge, here.bridge);
            prop_assert_ne!(there.ifindex, here.ifindex);
        }
    }

    #[test]
    fn both_directions_of_a_flow_have_one_key(one in any_end(), other in any_end(), protocol in any::<u8>()) {
        prop_assert_eq!(FlowKey::of(7, protocol, one, other), FlowKey::of(7, protocol, other, one));
    }

    #[test]
    fn two_flows_have_two_keys(one in any_end(), other in any_end(), third in any_end(), protocol in any::<u8>()) {
        prop_assume!(third != other && third != one);
        prop_assert_ne!(FlowKey::of(7, protocol, one, other), FlowKey::of(7, protocol, one, third));
    }
}
