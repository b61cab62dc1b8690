#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::IpAddr;

use ipnet::IpNet;
use shunt_netlink::address::{Address, AddressFlags, AddressScope};

use super::choices;
use crate::resources::clock::processor_time;

fn own(prefix: &str) -> Address {
    let prefix: IpNet = prefix.parse().unwrap();
    let flags = AddressFlags::empty();
    Address { index: 2, prefix, peer: prefix.addr(), scope: AddressScope::Universe, flags }
}

fn temporary(prefix: &str) -> Address {
    Address { flags: AddressFlags::Secondary, ..own(prefix) }
}

/// What is chosen for a destination: that of the longest prefix with it.
fn chosen(addresses: &[Address], to: &str) -> Option<IpAddr> {
    chosen_as(addresses, false, to)
}

fn chosen_as(addresses: &[Address], prefers_temporary: bool, to: &str) -> Option<IpAddr> {
    let to: IpAddr = to.parse().unwrap();
    let choices = choices(addresses, prefers_temporary);
    let matching = choices.into_iter().filter(|(prefix, _)| prefix.contains(&to));
    matching.max_by_key(|(prefix, _)| prefix.prefix_len()).map(|(_, source)| source)
}

fn ip(text: &str) -> Option<IpAddr> {
    Some(text.parse().unwrap())
}

#[test]
fn of_ipv4_the_subnet_of_the_next_hop_decides_and_else_the_first() {
    let addresses = [own("192.0.2.1/24"), own("198.51.100.1/24"), own("192.0.2.130/25"), own("10.0.0.1/8")];
    for (to, source) in [
        ("192.0.2.9", "192.0.2.1"),
        // Also in a smaller subnet of a later one.
        ("192.0.2.140", "192.0.2.1"),
        ("198.51.100.7", "198.51.100.1"),
        ("10.9.9.9", "10.0.0.1"),
        ("203.0.113.1", "192.0.2.1"),
    ] {
        assert_eq!(chosen(&addresses, to), ip(source), "{to}");
    }
    assert_eq!(chosen(&addresses, "2001:db8::1"), None);
    assert_eq!(chosen(&[own("192.0.2.130/25"), own("192.0.2.1/24")], "192.0.2.140"), ip("192.0.2.130"));
}

#[test]
fn of_a_point_to_point_link_the_subnet_is_the_peers() {
    let link = Address { peer: "10.1.1.2".parse().unwrap(), ..own("192.0.2.7/32") };
    let addresses = [own("198.51.100.1/24"), link];
    assert_eq!(chosen(&addresses, "10.1.1.2"), ip("192.0.2.7"));
    assert_eq!(chosen(&addresses, "192.0.2.7"), ip("198.51.100.1"));
}

#[test]
fn of_ipv6_the_longest_common_prefix_decides_up_to_the_addresss_own_length() {
    let addresses = [own("2001:db8:1::1/64"), own("2001:db8:2::1/64"), own("2a00::1/32")];
    for (to, source) in [
        ("2001:db8:2:5::9", "2001:db8:2::1"),
        ("2001:db8:1:5::9", "2001:db8:1::1"),
        ("2001:db8:3::9", "2001:db8:2::1"),
        ("2a00:5::9", "2a00::1"),
        // As many bits in common with all of them: the first.
        ("4001::1", "2001:db8:1::1"),
    ] {
        assert_eq!(chosen(&addresses, to), ip(source), "{to}");
    }
    // Beyond its own length nothing counts: the first of two in one subnet.
    let addresses = [own("2001:db8::1/64"), own("2001:db8::2/64")];
    assert_eq!(chosen(&addresses, "2001:db8::3"), ip("2001:db8::1"));
    let addresses = [own("2001:db8::2/48"), own("2001:db8::1/64")];
    assert_eq!(chosen(&addresses, "2001:db8::3"), ip("2001:db8::1"));
    assert_eq!(chosen(&addresses, "2001:db8:0:8000::3"), ip("2001:db8::2"));
}

#[test]
fn unique_local_destinations_are_reached_from_such_an_address_and_no_others() {
    let addresses = [own("fd00:1::1/64"), own("2001:db8::1/64")];
    assert_eq!(chosen(&addresses, "fd99::1"), ip("fd00:1::1"));
    assert_eq!(chosen(&addresses, "2a00::1"), ip("2001:db8::1"));
    // Shares more bits with the other one.
    assert_eq!(chosen(&addresses, "f000::1"), ip("2001:db8::1"));
    assert_eq!(chosen(&[own("fd00:1::1/64")], "2a00::1"), ip("fd00:1::1"));
}

#[test]
fn destinations_with_a_label_of_their_own_are_reached_as_by_the_kernel() {
    let addresses = [own("2001:10::1/64"), own("3ffe:1::1/64"), own("2001:db8:1::1/64")];
    for (to, source) in [
        ("2001:10::9", "2001:10::1"),
        // The kernel's own rule: an ORCHID for ORCHIDs alone, whatever it has in common.
        ("2001:0:1::5", "2001:db8:1::1"),
        ("2002::5", "2001:db8:1::1"),
        ("3ffe:9::1", "3ffe:1::1"),
        ("8000::1", "2001:db8:1::1"),
        ("3fff::1", "2001:db8:1::1"),
    ] {
        assert_eq!(chosen(&addresses, to), ip(source), "{to}");
    }
    assert_eq!(chosen(&[own("fd99::1/64"), own("2001:10::1/64")], "2001:db8:9::1"), ip("fd99::1"));
}

#[test]
fn thousands_of_ipv4_addresses_take_no_time() {
    let many: Vec<_> = (0..4_000).map(|n| own(&format!("10.{}.{}.{}/32", n / 256, n % 256, 1))).collect();
    let begun = processor_time();
    assert_eq!(choices(&many, false).len(), 4_001);
    let worked = processor_time() - begun;
    assert!(worked < std::time::Duration::from_millis(500), "{worked:?}");
}

#[test]
fn temporary_addresses_are_taken_where_they_are_preferred_only() {
    let addresses = [temporary("2001:db8::aaaa/64"), own("2001:db8::1/64"), own("2001:db8:1::1/64")];
    assert_eq!(chosen(&addresses, "2001:db8::9"), ip("2001:db8::1"));
    assert_eq!(chosen_as(&addresses, true, "2001:db8::9"), ip("2001:db8::aaaa"));
    // Before the common prefix.
    assert_eq!(chosen_as(&addresses, true, "2001:db8:1::9"), ip("2001:db8::aaaa"));
}

#[test]
fn with_too_many_addresses_of_ipv6_the_kernel_chooses() {
    let many: Vec<_> = (0..65).map(|number| own(&format!("2001:db8:{number:x}::1/64"))).collect();
    assert_eq!(chosen(&many, "2001:db8::9"), None);
    assert!(chosen(&many[1..], "2001:db8::9").is_some());
}
