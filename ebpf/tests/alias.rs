//! Which port of a container a socket of the node sends to that asks it by several names.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use std::net::IpAddr;

use golden::memory_tables::MemoryTables;
use golden::outside::SOCKET;
use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::abi::{Alias, AliasKey};
use shunt_dataplane::nat::alias::{Asker, claim, name, of_answer, of_question};
use shunt_dataplane::nat::connect::Target;
use shunt_dataplane::wire::address::Address;

const UDP: u8 = 17;
const SECOND: u64 = 1_000_000_000;

fn address(text: &str) -> Address {
    text.parse::<IpAddr>().unwrap().into()
}

fn container() -> Target {
    Target { address: address("10.9.0.9"), port: 53.into(), protocol: UDP }
}

fn asker(socket: u64, name: &str) -> Asker {
    let name = address(name);
    Asker { socket, port: 40_001.into(), source: address("10.9.255.254"), name, name_port: 8053.into() }
}

fn at(seconds: u64, tables: &MemoryTables) -> MemoryTables {
    MemoryTables { boot_time: tables.boot_time + seconds * SECOND, ..tables.clone() }
}

fn claimed(asker: &Asker, tables: &MemoryTables) -> u16 {
    claim(asker, &container(), tables).expect("an alias").number()
}

/// A datagram of the asker's socket, as it leaves the node.
fn question(source: &str, source_port: u16, port: u16) -> TupleKey {
    TupleKey {
        source_port: source_port.into(),
        destination_port: port.into(),
        source: address(source),
        destination: container().address,
        protocol: UDP,
        ..TupleKey::default()
    }
}

#[test]
fn each_name_of_a_socket_has_one_alias_and_keeps_it() {
    let tables = MemoryTables::of_world();
    let [one, other] = ["192.0.2.1", "192.0.2.65"].map(|name| claimed(&asker(7, name), &tables));
    assert_ne!(one, other);
    assert_ne!(claimed(&asker(8, "192.0.2.1"), &tables), one, "another socket's is another");
    assert_eq!(claimed(&asker(7, "192.0.2.1"), &at(1_000, &tables)), one, "however late");
    let named = |own: u16, port: u16| name(own.into(), container().address, port.into(), &tables);
    assert_eq!(named(40_001, one), Some((address("192.0.2.1"), 8053.into())));
    assert_eq!(named(40_001, other), Some((address("192.0.2.65"), 8053.into())));
    assert_eq!(named(40_002, one), None, "another port has asked nothing");
    assert_eq!(named(40_001, 53), None);
}

#[test]
fn an_alias_leads_only_what_its_socket_sends_while_it_is_held() {
    let tables = MemoryTables::of_world();
    let port = claimed(&asker(7, "192.0.2.1"), &tables);
    let leads_at = |seconds, key| of_question(&key, &at(seconds, &tables)).is_some();
    assert!(leads_at(0, question("192.0.2.1", 40_001, port)));
    assert!(leads_at(119, question("192.0.2.1", 40_001, port)));
    assert!(!leads_at(120, question("192.0.2.1", 40_001, port)), "nobody has asked for two minutes");
    assert!(!leads_at(0, question("192.0.2.1", 40_002, port)), "another port of the node");
    assert!(!leads_at(0, question("192.0.2.1", 40_001, 53)), "the container's port itself");
    let later = at(60, &tables);
    claimed(&asker(7, "192.0.2.1"), &later);
    let becomes =
        of_question(&question("192.0.2.1", 40_001, port), &at(119, &later)).expect("who asks on keeps it");
    assert_eq!((becomes.source_port.number(), becomes.destination_port.number()), (port, 53));
    let answer = becomes.reversed(becomes.domain);
    let told = of_answer(&answer, &at(119, &later)).expect("the answer is known");
    assert_eq!((told.source_port.number(), told.destination_port.number()), (port, 40_001));
    let of_other_port = TupleKey { source_port: 54.into(), ..answer };
    assert_eq!(of_answer(&of_other_port, &later), None, "another port of the container");
    let to_outside = TupleKey { destination: address("192.0.2.9"), ..answer };
    assert_eq!(of_answer(&to_outside, &later), None, "somebody outside has the same port");
}

#[test]
fn what_is_held_or_a_sockets_is_nobody_elses_and_what_is_left_is_had_again() {
    let tables = MemoryTables::of_world();
    let mine = asker(7, "192.0.2.1");
    let first = claimed(&mine, &tables);
    let key = |port: u16| AliasKey { address: container().address, port: port.into(), pad: [0; 2] };
    let others = Alias { socket: 99, asked: tables.boot_time, ..Alias::default() };

    tables.aliases.borrow_mut().insert(key(first), others);
    let second = claimed(&mine, &tables);
    assert_eq!(second, if first == u16::MAX { 61_000 } else { first + 1 });
    assert_eq!(tables.aliases.borrow()[&key(first)], others);

    let later = at(120, &tables);
    later.aliases.borrow_mut().remove(&key(second));
    assert_eq!(claimed(&mine, &later), first, "its socket has not asked for two minutes");
}

#[test]
fn where_all_that_are_tried_are_held_there_is_none() {
    let tables = MemoryTables::of_world();
    for port in 61_000..=u16::MAX {
        let key = AliasKey { address: container().address, port: port.into(), pad: [0; 2] };
        let held = Alias { socket: 99, asked: tables.boot_time, ..Alias::default() };
        tables.aliases.borrow_mut().insert(key, held);
    }
    assert_eq!(claim(&asker(7, "192.0.2.1"), &container(), &tables), None);
}

#[test]
fn no_alias_is_in_the_range_that_the_kernel_gives_to_sockets() {
    const { assert!(SOCKET < 61_000, "the world's socket has none of them") };
    let tables = MemoryTables::of_world();
    for socket in 0..500 {
        assert!(claimed(&asker(socket, "192.0.2.1"), &tables) >= 61_000);
    }
}
