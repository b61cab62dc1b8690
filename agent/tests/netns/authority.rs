//! `ipspoofchk` and what hosts believe of their routers: advertisements, redirects, DHCP, and link-local addresses.

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Sandbox, patience};

use crate::datagram::{ICMP, UDP, framed, packet, udp};
use crate::restrictions::{drops, tap};
use crate::stage::Stage;
use crate::wire::{BROADCAST, Mac, Wire, frame, says};

const ALL_NODES: Mac = [0x33, 0x33, 0, 0, 0, 1];
/// An address that no MAC address makes.
const CHOSEN: &str = "fe80::a11:ce";
/// Less than this, and a neighbour may still object.
const OBJECTION: Duration = Duration::from_millis(1100);

/// One container whose network sets `keys`, and two open ones, on a bridge on which everybody hears what is announced.
fn stage(keys: &[&str]) -> Stage {
    let mut stage = Stage::empty_by("announcements = 'all'\n");
    let open = stage.network.clone();
    for key in keys {
        stage.network = stage.network.clone().with(key, json!(true));
    }
    stage.add("one");
    stage.network = open;
    stage.add("two");
    stage.add("three");
    stage.node.settle().unwrap();
    stage
}

/// The link-local address of a MAC address (RFC 4291, appendix A).
pub(crate) fn link_local([a, b, c, d, e, f]: Mac) -> Ipv6Addr {
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// An ICMPv6 message of the type `kind` to all hosts, whose text is an option that nobody reads.
pub(crate) fn message(speaker: &Wire, from: Ipv6Addr, kind: u8, fixed: &[u8], text: &str) -> Vec<u8> {
    let body = [&[kind, 0, 0, 0][..], fixed, &[253, 2], text.as_bytes(), &[0; 14]].concat();
    let body = body[..4 + fixed.len() + 16].to_vec();
    let all = IpAddr::from([0xff02, 0, 0, 0, 0, 0, 0, 1_u16]);
    framed(ALL_NODES, speaker.mac(), &packet(ICMP[1], from.into(), all, 255, body))
}

fn advertisement(speaker: &Wire, from: Ipv6Addr, of: Ipv6Addr, text: &str) -> Vec<u8> {
    let fixed = [&[0x20, 0, 0, 0][..], &of.octets(), &[2, 1], &speaker.mac()].concat();
    message(speaker, from, 136, &fixed, text)
}

/// A probe for an address (RFC 4862): from nobody, to those who would have it.
fn probe(speaker: &Wire, of: Ipv6Addr) -> Vec<u8> {
    let body = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &of.octets()].concat();
    let [.., a, b, c] = of.octets();
    let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
    let nobody = Ipv6Addr::UNSPECIFIED.into();
    let probe = packet(ICMP[1], nobody, group.into(), 255, body);
    framed([0x33, 0x33, 0xff, a, b, c], speaker.mac(), &probe)
}

/// What a router and a DHCP server say.
fn orders(stage: &Stage, speaker: &Wire) -> Vec<Vec<u8>> {
    let own = link_local(speaker.mac());
    let v4 = stage.sandboxes[0].addresses()[0];
    let [two_v4, two_v6] = stage.sandboxes[1].addresses()[..] else { unreachable!("one of each family") };
    let router = message(speaker, own, 134, &[64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0], "an order");
    let redirect =
        [&[0; 4][..], &own.octets(), &[0xfd, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]].concat();
    let redirect = message(speaker, own, 137, &redirect, "an order");
    let everybody = "255.255.255.255".parse().unwrap();
    let offer = packet(UDP, v4, everybody, 64, udp([67, 68], b"an order"));
    let reply = packet(UDP, own.into(), two_v6, 64, udp([547, 546], b"an order"));
    let redirect_v4 = [&[5, 1, 0, 0, 10, 77, 0, 2][..], b"an order"].concat();
    let redirect_v4 = packet(ICMP[0], v4, two_v4, 64, redirect_v4);
    let two = tap(&stage.sandboxes[1]).mac();
    vec![
        router,
        redirect,
        framed(BROADCAST, speaker.mac(), &offer),
        framed(two, speaker.mac(), &reply),
        framed(two, speaker.mac(), &redirect_v4),
    ]
}

/// Sends frames and returns how many of them the listener has seen.
fn heard(from: &Wire, to: &Wire, frames: &[Vec<u8>], text: &str) -> usize {
    frames.iter().for_each(|frame| from.send(frame));
    from.send(&frame(to.mac(), from.mac(), "the last"));
    let seen = to.until(|frame| says(frame, "the last"));
    // Not what the listener's kernel sends back.
    seen.iter().filter(|frame| frame[6..12] == from.mac() && says(frame, text)).count()
}

#[test]
fn a_container_held_to_its_addresses_is_no_router_and_no_dhcp_server() {
    let stage = stage(&["ipspoofchk"]);
    let (from, to) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    let orders = orders(&stage, &from);
    assert_eq!(heard(&from, &to, &orders, "an order"), 0);
    assert_eq!(drops(&stage, "one", "untrusted"), orders.len() as u64, "{:?}", stage.node.agent().drops());
    // An open container is what it likes to be.
    let other = tap(&stage.sandboxes[2]);
    let advertised =
        message(&other, link_local(other.mac()), 134, &[64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0], "an order");
    assert_eq!(heard(&other, &to, &[advertised], "an order"), 1);
    stage.assert_talk(0, 1);
}

#[test]
fn a_trusted_container_and_one_held_to_its_mac_address_alone_are_what_they_like_to_be() {
    for keys in [&["ipspoofchk", "trusted"][..], &["macspoofchk"], &["trusted"]] {
        let stage = stage(keys);
        let (from, to) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
        let orders = orders(&stage, &from);
        assert_eq!(heard(&from, &to, &orders, "an order"), orders.len(), "{keys:?}");
        assert_eq!(drops(&stage, "one", "untrusted"), 0, "{keys:?}");
    }
}

#[test]
fn the_gateways_and_a_neighbours_link_local_address_are_theirs() {
    let stage = stage(&["ipspoofchk"]);
    let (from, to) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    let bridge = Wire::tap(stage.node.namespace(), "cni0");
    let third = tap(&stage.sandboxes[2]);
    let own = link_local(from.mac());
    let mut lies = Vec::new();
    for claimed in [bridge.mac(), third.mac(), [2, 0xbe, 0xef, 0, 0, 1]].map(link_local) {
        lies.extend([own, claimed].map(|source| advertisement(&from, source, claimed, "a lie")));
        lies.push(probe(&from, claimed));
        // As if it had been probed for.
        lies.push(advertisement(&from, claimed, claimed, "a lie"));
    }
    assert_eq!(heard(&from, &to, &lies, "a lie"), 0);
    assert_eq!(
        drops(&stage, "one", "address_spoofed"),
        lies.len() as u64,
        "{:?}",
        stage.node.agent().drops()
    );
    assert_eq!(heard(&from, &to, &[advertisement(&from, own, own, "the truth")], "the truth"), 1);
}

/// The container's kernel chooses an address, and looks whether anybody has it.
fn choose(sandbox: &Sandbox, address: &str) {
    let run = |program: &str, arguments: &[&str]| sandbox.namespace().command(program, arguments).unwrap();
    run("sysctl", &["-qw", "net.ipv6.conf.eth0.accept_dad=1"]);
    run("ip", &["address", "add", &format!("{address}/64"), "dev", "eth0"]);
    let begun = Instant::now();
    while run("ip", &["-6", "address", "show", "dev", "eth0", "tentative"]).contains(address) {
        assert!(begun.elapsed() < patience(Duration::from_secs(10)), "{address} stays tentative");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_link_local_address_that_the_container_has_chosen_is_its_own() {
    let stage = stage(&["ipspoofchk"]);
    let (from, to) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    choose(&stage.sandboxes[0], CHOSEN);
    let chosen = CHOSEN.parse().unwrap();
    assert_eq!(heard(&from, &to, &[advertisement(&from, chosen, chosen, "mine")], "mine"), 1);
    // One and no more.
    let another = "fe80::a11:cf".parse().unwrap();
    from.send(&probe(&from, another));
    std::thread::sleep(OBJECTION);
    assert_eq!(heard(&from, &to, &[advertisement(&from, another, another, "mine")], "mine"), 0);
    // It outlives the agent.
    let mut stage = stage;
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    assert_eq!(heard(&from, &to, &[advertisement(&from, chosen, chosen, "mine")], "mine"), 1);
}

#[test]
fn a_neighbours_chosen_link_local_address_cannot_be_chosen_again() {
    let stage = stage(&["ipspoofchk"]);
    let (from, to) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    // An open neighbour's, of which nobody has heard yet, and the gateway's.
    choose(&stage.sandboxes[2], CHOSEN);
    let gateway = "fe80::1:1";
    stage
        .node
        .namespace()
        .command("ip", &["address", "add", &format!("{gateway}/64"), "dev", "cni0", "nodad"])
        .unwrap();
    for claimed in [CHOSEN, gateway].map(|address| address.parse().unwrap()) {
        from.send(&probe(&from, claimed));
        assert_eq!(heard(&from, &to, &[advertisement(&from, claimed, claimed, "a lie")], "a lie"), 0);
        std::thread::sleep(OBJECTION);
        assert_eq!(
            heard(&from, &to, &[advertisement(&from, claimed, claimed, "a lie")], "a lie"),
            0,
            "{claimed}"
        );
    }
}
