//! Where a socket of the node is led that asks for a port of the node.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use std::net::IpAddr;

use golden::memory_tables::MemoryTables;
use golden::world::PLACES;
use shunt_dataplane::nat::connect::{Target, leads_to, leads_to_by_whomever};
use shunt_dataplane::wire::address::Address;

const TCP: u8 = 6;
const UDP: u8 = 17;

fn address(text: &str) -> Address {
    text.parse::<IpAddr>().unwrap().into()
}

fn of(name: &str) -> [Address; 2] {
    PLACES.iter().find(|place| place.name == name).unwrap().addresses().map(Address::from)
}

fn led(to: &str, port: u16, protocol: u8, bound: &str) -> Option<(Address, u16)> {
    let target = Target { address: address(to), port: port.into(), protocol };
    let to = leads_to(&target, address(bound), &MemoryTables::of_world())?;
    assert_eq!(to.protocol, protocol);
    Some((to.address, to.port.number()))
}

#[test]
fn every_name_of_the_node_leads_to_the_containers_address_of_its_family() {
    let [v4, v6] = of("tau");
    for own in ["192.0.2.1", "127.0.0.1", "127.255.0.1", "0.0.0.0"] {
        assert_eq!(led(own, 8080, TCP, "0.0.0.0"), Some((v4, 80)), "{own}");
        assert_eq!(led(own, 8053, UDP, "0.0.0.0"), Some((v4, 53)), "{own}");
    }
    for own in ["2001:db8::1", "::1", "::"] {
        assert_eq!(led(own, 8080, TCP, "::"), Some((v6, 80)), "{own}");
    }
    assert_eq!(led("192.0.2.1", 8080, TCP, "192.0.2.1"), Some((v4, 80)), "bound to an address of the node");
}

#[test]
fn a_mapping_of_the_very_address_comes_before_one_of_any() {
    assert_eq!(led("192.0.2.1", 8081, TCP, "0.0.0.0"), Some((of("tau")[0], 81)));
    assert_eq!(led("127.0.0.1", 8081, TCP, "0.0.0.0"), Some((of("zeta")[0], 82)));
}

/// Others' rules are asked who may use port 8066.
#[test]
fn the_kernel_translates_what_asks_the_node_for_a_port_that_it_opens_and_nobody_else_the_loopback() {
    let [v4, v6] = of("tau");
    for protocol in [TCP, UDP] {
        for (own, loopback, to) in [("192.0.2.1", "127.0.0.1", v4), ("2001:db8::1", "::1", v6)] {
            assert_eq!(led(own, 8066, protocol, "::"), None, "{own}");
            assert_eq!(led(loopback, 8066, protocol, "::"), Some((to, 66)), "{loopback}");
            let target = Target { address: address(own), port: 8066.into(), protocol };
            let by_whomever = leads_to_by_whomever(&target, address("::"), &MemoryTables::of_world());
            assert_eq!(by_whomever.map(|it| it.address), Some(to), "it is the host port all the same");
        }
    }
}

#[test]
fn everybody_else_is_left_alone() {
    for (what, to, port, protocol, bound) in [
        ("another host's port of the same number", "192.0.2.9", 8080, TCP, "0.0.0.0"),
        ("another host's in IPv6", "2001:db8::9", 8080, TCP, "::"),
        ("a port that is not mapped", "127.0.0.1", 8082, TCP, "0.0.0.0"),
        ("a port of another protocol", "127.0.0.1", 8080, UDP, "0.0.0.0"),
        ("a container without an address of that family", "::1", 8090, UDP, "::"),
        ("a socket on the loopback", "127.0.0.1", 8080, TCP, "127.0.0.1"),
        ("a socket on IPv6's loopback", "::1", 8080, TCP, "::1"),
        ("what only ends like the loopback", "2001:db8::", 8080, TCP, "::"),
    ] {
        assert_eq!(led(to, port, protocol, bound), None, "{what}");
    }
}
