//! Stations and addresses that move: an open port takes what it announces, as on a kernel bridge; a checked one keeps its own.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Conversation, Echo, Namespace, Protocol, patience};

use crate::restrictions::{assert_talk_to_gateway, tap};
use crate::stage::Stage;
use crate::uplinks::{self, add_in};
use crate::wire::{BROADCAST, Mac, Wire, arp, frame, says, tagged};

/// How soon an address has to answer after it has moved: with a neighbour that believes the old place, it takes far longer.
const SOON: Duration = Duration::from_secs(3);

fn ip(namespace: &Namespace, arguments: &[&str]) {
    namespace.command("ip", arguments).unwrap();
}

fn text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Gives an interface a MAC address, of which its kernel tells everybody.
fn set_mac(namespace: &Namespace, mac: Mac) {
    ip(namespace, &["link", "set", "eth0", "address", &text(mac)]);
}

/// An address of the stage's subnets, with its prefix length.
fn in_subnet(address: &IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv4() { 24 } else { 64 })
}

fn forget_neighbours(namespace: &Namespace, ifname: &str) {
    for family in ["-4", "-6"] {
        ip(namespace, &[family, "neighbour", "flush", "dev", ifname]);
    }
}

/// A conversation with `echo` works soon.
fn assert_reached(who: &str, from: &Namespace, echo: &Echo) {
    let begun = Instant::now();
    loop {
        let talk = Conversation::open(from, Protocol::Udp, echo.address());
        match talk.and_then(|mut talk| talk.chat(3, 200)) {
            Ok(()) => return,
            Err(error) if begun.elapsed() > patience(SOON) => {
                panic!("{who} to {}: {error:#}", echo.address())
            }
            Err(_) => {}
        }
    }
}

/// The node and the `neighbour`th container reach `addresses` of the `owner`th, with what they know of neighbours, and without.
fn assert_found(stage: &Stage, neighbour: usize, owner: usize, addresses: &[IpAddr], port: u16) {
    let (neighbour, node) = (stage.sandboxes[neighbour].namespace(), stage.node.namespace());
    for address in addresses {
        let echo = stage.sandboxes[owner].echo(*address, port).unwrap();
        assert_reached("a neighbour", neighbour, &echo);
        assert_reached("the node", node, &echo);
        forget_neighbours(neighbour, "eth0");
        forget_neighbours(node, "cni0");
        assert_reached("a neighbour that asks", neighbour, &echo);
        assert_reached("the node that asks", node, &echo);
    }
}

/// The addresses go from one container to another, whose kernel announces them.
fn hand_over(stage: &Stage, from: usize, to: usize, addresses: &[IpAddr]) {
    let (from, to) = (&stage.sandboxes[from], &stage.sandboxes[to]);
    for address in addresses {
        ip(from.namespace(), &["address", "delete", &in_subnet(address), "dev", "eth0"]);
        ip(to.namespace(), &["address", "add", &in_subnet(address), "dev", "eth0", "nodad"]);
    }
    set_mac(to.namespace(), tap(to).mac());
}

#[test]
fn a_container_with_another_mac_address_is_found_by_neighbours_and_node() {
    let stage = Stage::set();
    let addresses = stage.sandboxes[0].addresses();
    assert_found(&stage, 1, 0, &addresses, 7300);
    set_mac(stage.sandboxes[0].namespace(), [2, 0xab, 0, 0, 0, 1]);
    assert_found(&stage, 1, 0, &addresses, 7301);
}

#[test]
fn an_address_goes_to_another_port_and_back() {
    let stage = Stage::set();
    let addresses = stage.sandboxes[0].addresses();
    assert_found(&stage, 2, 0, &addresses, 7300);
    hand_over(&stage, 0, 1, &addresses);
    assert_found(&stage, 2, 1, &addresses, 7301);
    hand_over(&stage, 1, 0, &addresses);
    assert_found(&stage, 2, 0, &addresses, 7302);
}

/// As a virtual machine migrates, or a bond over two ports of one bridge changes its active one.
#[test]
fn a_mac_address_and_its_addresses_go_to_another_port_and_back_and_no_agent_is_needed() {
    let mut stage = Stage::set();
    let addresses = stage.sandboxes[0].addresses();
    let [first, second] = [0, 1].map(|index| tap(&stage.sandboxes[index]).mac());
    assert_found(&stage, 2, 0, &addresses, 7300);
    stage.node.agent_mut().kill().unwrap();
    set_mac(stage.sandboxes[0].namespace(), [2, 0xab, 0, 0, 0, 1]);
    set_mac(stage.sandboxes[1].namespace(), first);
    hand_over(&stage, 0, 1, &addresses);
    assert_found(&stage, 2, 1, &addresses, 7301);
    // An agent that starts leaves it where it is.
    stage.node.restart_agent().unwrap();
    assert_found(&stage, 2, 1, &addresses, 7302);
    set_mac(stage.sandboxes[1].namespace(), second);
    set_mac(stage.sandboxes[0].namespace(), first);
    hand_over(&stage, 1, 0, &addresses);
    assert_found(&stage, 2, 0, &addresses, 7303);
}

#[test]
fn an_address_that_has_moved_is_its_containers_again_once_the_other_is_gone() {
    let mut stage = Stage::set();
    let addresses = stage.sandboxes[0].addresses();
    hand_over(&stage, 0, 1, &addresses);
    assert_found(&stage, 2, 1, &addresses, 7300);
    let other = stage.sandboxes.remove(1);
    other.delete(&stage.node, &stage.network).unwrap();
    let one = stage.sandboxes[0].namespace();
    for address in &addresses {
        ip(one, &["address", "add", &in_subnet(address), "dev", "eth0", "nodad"]);
    }
    set_mac(one, tap(&stage.sandboxes[0]).mac());
    assert_found(&stage, 1, 0, &addresses, 7301);
}

/// As a virtual machine migrates to another node, and back. No agent is needed.
#[test]
fn a_mac_address_and_its_addresses_go_beyond_an_uplink_and_back() {
    let (mut stage, outside) = uplinks::stage();
    stage.add("one");
    stage.add("two");
    let addresses = stage.sandboxes[0].addresses();
    let one = stage.sandboxes[0].namespace();
    let (own, another): (Mac, Mac) = (tap(&stage.sandboxes[0]).mac(), [2, 0xab, 0, 0, 0, 1]);
    let hand_over = |from: &Namespace, to: &Namespace| {
        set_mac(from, another);
        for address in &addresses {
            ip(from, &["address", "delete", &in_subnet(address), "dev", "eth0"]);
            ip(to, &["address", "add", &in_subnet(address), "dev", "eth0", "nodad"]);
        }
        set_mac(to, own);
    };
    stage.node.agent_mut().kill().unwrap();
    hand_over(one, &outside);
    let neighbour = stage.sandboxes[1].namespace();
    for address in &addresses {
        // It asks for a neighbour, and all hear where it is.
        let of_two =
            stage.sandboxes[1].addresses().into_iter().find(|other| other.is_ipv4() == address.is_ipv4());
        let echo = stage.sandboxes[1].echo(of_two.unwrap(), 7300).unwrap();
        assert_reached("the station", &outside, &echo);
        let echo = Echo::listen(&outside, *address, 7301).unwrap();
        assert_reached("a neighbour", neighbour, &echo);
        forget_neighbours(neighbour, "eth0");
        assert_reached("a neighbour that asks", neighbour, &echo);
    }
    hand_over(&outside, one);
    for address in addresses {
        let echo = stage.sandboxes[0].echo(address, 7302).unwrap();
        assert_reached("a neighbour", neighbour, &echo);
    }
    let _ = stage.node.restart_agent();
}

#[test]
fn in_a_vlan_a_mac_address_and_its_addresses_go_to_another_port_and_back() {
    let mut stage = Stage::empty();
    let network = stage.network.clone().with("isDefaultGateway", json!(false));
    stage.network = network.with("vlan", json!(10));
    for id in ["one", "two", "three"] {
        stage.add(id);
    }
    let addresses = stage.sandboxes[0].addresses();
    let [first, second] = [0, 1].map(|index| tap(&stage.sandboxes[index]).mac());
    let found = |owner: usize, port: u16| {
        let neighbour = stage.sandboxes[2].namespace();
        for address in &addresses {
            let echo = stage.sandboxes[owner].echo(*address, port).unwrap();
            assert_reached("a neighbour", neighbour, &echo);
            forget_neighbours(neighbour, "eth0");
            assert_reached("a neighbour that asks", neighbour, &echo);
        }
    };
    found(0, 7300);
    set_mac(stage.sandboxes[0].namespace(), [2, 0xab, 0, 0, 0, 1]);
    set_mac(stage.sandboxes[1].namespace(), first);
    hand_over(&stage, 0, 1, &addresses);
    found(1, 7301);
    set_mac(stage.sandboxes[1].namespace(), second);
    set_mac(stage.sandboxes[0].namespace(), first);
    hand_over(&stage, 1, 0, &addresses);
    found(0, 7302);
}

/// Somebody beyond the uplink sends from its address, or sends its own frame back.
#[test]
fn a_trunk_that_was_heard_beyond_an_uplink_is_found_again_once_it_speaks() {
    let (mut stage, outside) = uplinks::stage();
    add_in(&mut stage, "ten", "vlan", json!(10));
    add_in(&mut stage, "trunk", "vlanTrunk", json!([{ "id": 10 }, { "id": 20 }]));
    let [ten, trunk] = [0, 1].map(|index| tap(&stage.sandboxes[index]));
    let wire = Wire::tap(&outside, "eth0");
    wire.send(&tagged(10, frame(BROADCAST, trunk.mac(), "it is me")));
    ten.until(|frame| says(frame, "it is me"));
    trunk.send(&tagged(10, frame(BROADCAST, trunk.mac(), "no, me")));
    ten.until(|frame| says(frame, "no, me"));
    ten.send(&frame(trunk.mac(), ten.mac(), "from a neighbour"));
    trunk.until(|frame| says(frame, "from a neighbour"));
    wire.send(&tagged(10, frame(trunk.mac(), wire.mac(), "from beyond")));
    trunk.until(|frame| says(frame, "from beyond"));
}

/// Everything that the third container can say to have the place of the first, whose port is checked.
#[test]
fn an_open_container_takes_nothing_from_a_checked_one_nor_from_the_node() {
    for key in ["macspoofchk", "ipspoofchk"] {
        let stage = crate::restrictions::stage(key);
        let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
        let (victim, attacker) = (tap(one).mac(), tap(three));
        let gateway = Wire::tap(stage.node.namespace(), "cni0").mac();
        let own = one.attachment().ipv4().unwrap().octets();
        for _ in 0..3 {
            for (mac, address) in [
                (attacker.mac(), own),
                (victim, own),
                (attacker.mac(), [10, 77, 0, 1]),
                (gateway, [10, 77, 0, 1]),
            ] {
                attacker.send(&arp(BROADCAST, mac, 1, address, address));
                attacker.send(&arp(BROADCAST, mac, 2, address, address));
                attacker.send(&frame(BROADCAST, mac, "it is me"));
            }
        }
        for namespace in [one, two].map(|sandbox| sandbox.namespace()) {
            forget_neighbours(namespace, "eth0");
        }
        forget_neighbours(stage.node.namespace(), "cni0");
        assert_found(&stage, 1, 0, &one.addresses(), 7300);
        for sandbox in [one, two] {
            assert_talk_to_gateway(&stage, sandbox);
        }
        let entries = stage.node.namespace().command("bridge", &["fdb", "show", "br", "cni0"]).unwrap();
        let port = stage.node.agent().port("one").unwrap().host_ifname;
        let placed = |line: &str| line.contains(&format!("dev {port} ")) && line.contains("sticky");
        assert!(
            entries.lines().any(|line| line.starts_with(&text(victim)) && placed(line)),
            "{key}:\n{entries}"
        );
    }
}

/// Neighbours and node knew the one that had the address before.
#[test]
fn an_address_that_the_next_container_gets_works_at_once() {
    let mut stage = Stage::set();
    let addresses = stage.sandboxes[0].addresses();
    assert_found(&stage, 1, 0, &addresses, 7300);
    for round in 0..3u16 {
        let before = stage.sandboxes.remove(0);
        before.delete(&stage.node, &stage.network).unwrap();
        drop(before);
        let network = stage.network.clone();
        let given = addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
        stage.network = network.clone().with("args", json!({ "cni": { "ips": given } }));
        stage.add(&format!("next-{round}"));
        stage.network = network;
        let last = stage.sandboxes.pop().unwrap();
        stage.sandboxes.insert(0, last);
        assert_eq!(stage.sandboxes[0].addresses(), addresses);
        for address in &addresses {
            let echo = stage.sandboxes[0].echo(*address, 7301 + round).unwrap();
            assert_reached("a neighbour", stage.sandboxes[1].namespace(), &echo);
            assert_reached("the node", stage.node.namespace(), &echo);
        }
    }
}

/// A guest behind a bridge in a container, as a virtual machine is.
#[test]
fn a_guest_behind_a_bridge_inside_a_container_is_reached_despite_hairpin_mode() {
    let mut stage = Stage::empty();
    stage.network = stage.network.clone().with("hairpinMode", json!(true));
    for id in ["one", "two"] {
        stage.add(id);
    }
    let host = stage.sandboxes[0].namespace();
    let guest = stage.lab.namespace("guest").unwrap();
    let there = guest.path().to_str().unwrap();
    ip(host, &["link", "add", "br0", "type", "bridge"]);
    ip(host, &["address", "flush", "dev", "eth0"]);
    ip(host, &["link", "set", "eth0", "master", "br0"]);
    ip(host, &["link", "add", "tap0", "type", "veth", "peer", "name", "eth0", "netns", there]);
    ip(host, &["link", "set", "tap0", "master", "br0", "up"]);
    ip(host, &["link", "set", "br0", "up"]);
    ip(&guest, &["link", "set", "lo", "up"]);
    ip(&guest, &["address", "add", "10.77.0.200/24", "dev", "eth0"]);
    ip(&guest, &["address", "add", "fd77::200/64", "dev", "eth0", "nodad"]);
    ip(&guest, &["link", "set", "eth0", "up"]);
    let _up = Wire::tap(&guest, "eth0");
    for address in ["10.77.0.200", "fd77::200"] {
        let echo = Echo::listen(&guest, address.parse().unwrap(), 7300).unwrap();
        for namespace in [stage.sandboxes[1].namespace(), stage.node.namespace()] {
            assert_reached("somebody", namespace, &echo);
        }
    }
    for address in stage.sandboxes[1].addresses() {
        // The guest has to ask, and what asks everybody comes back.
        forget_neighbours(&guest, "eth0");
        let echo = stage.sandboxes[1].echo(address, 7301).unwrap();
        assert_reached("the guest", &guest, &echo);
    }
}
