//! A host port follows its container: to another MAC address, and by whatever interface a packet comes to the node.

use std::net::IpAddr;

use serde_json::json;
use shunt_lab::{Conversation, Lab, Namespace, Protocol};

use crate::stage::{NODE, Stage, give, join, mapping};

const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];

fn mapped(stage: &mut Stage) {
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
}

fn opened(stage: &Stage, client: &Namespace) -> Vec<Conversation> {
    let mut talks = Vec::new();
    for node in NODE {
        for protocol in BOTH {
            talks.push(stage.open(client, protocol, node, 8080));
        }
    }
    talks
}

fn chat(talks: &mut [Conversation], what: &str) {
    for (at, talk) in talks.iter_mut().enumerate() {
        talk.chat(20, 1000).unwrap_or_else(|error| panic!("{what}, {at}: {error:#}"));
    }
}

#[test]
fn a_container_that_changes_its_mac_address_keeps_its_host_ports_and_their_connections() {
    let mut stage = Stage::new();
    mapped(&mut stage);
    stage.add("two", &[]);
    let _echo = stage.echo(0, 7000);
    let neighbor = stage.sandboxes[1].namespace();
    let mut held = opened(&stage, &stage.outside);
    held.extend(opened(&stage, neighbor));
    chat(&mut held, "before");
    for mac in ["02:00:00:00:77:01", "02:00:00:00:77:02"] {
        stage.sandboxes[0].namespace().command("ip", &["link", "set", "eth0", "address", mac]).unwrap();
        chat(&mut held, "a connection that was there");
        chat(&mut opened(&stage, &stage.outside), "a new one from outside");
        chat(&mut opened(&stage, neighbor), "a new one from a neighbour");
    }
}

#[test]
fn a_checked_containers_host_port_stays_where_its_mac_address_is() {
    let mut stage = Stage::new();
    let network = stage.mapped(&[mapping(8080, 7000, "tcp")]).with("macspoofchk", json!(true));
    stage.sandboxes.push(shunt_lab::Sandbox::start(&stage.lab, &stage.node, &network, "one").unwrap());
    stage.add("two", &[]);
    let _echo = stage.echo(0, 7000);
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(20, 1000).unwrap();
    // The neighbour says that it has the address.
    let own = stage.sandboxes[0].addresses()[0];
    claim(&stage, 1, own);
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(20, 1000).unwrap();
}

/// Has the `index`th container announce an address as its own.
fn claim(stage: &Stage, index: usize, own: IpAddr) {
    let inside = stage.sandboxes[index].namespace();
    give(inside, "eth0", &format!("{own}/24"));
    inside.command("ip", &["link", "set", "eth0", "down"]).unwrap();
    inside.command("ip", &["link", "set", "eth0", "up"]).unwrap();
}

/// A client behind an interface of the node that has no address there.
fn behind_a_nameless_link(stage: &Stage) -> Namespace {
    let other = stage.lab.namespace("other").unwrap();
    join(&stage.node, "up1", &other, "eth0");
    for (own, node, length) in [("198.51.100.9", NODE[0], "32"), ("2001:db8:1::9", NODE[1], "128")] {
        give(&other, "eth0", &format!("{own}/{length}"));
        other.command("ip", &["route", "add", &format!("{node}/{length}"), "dev", "eth0"]).unwrap();
        let back = format!("{own}/{length}");
        stage.node.namespace().command("ip", &["route", "add", &back, "dev", "up1"]).unwrap();
    }
    // Nobody answers there for an IPv6 address that another interface has.
    let shown = stage.node.namespace().command("ip", &["-o", "link", "show", "up1"]).unwrap();
    let mac = shown.split_whitespace().skip_while(|word| *word != "link/ether").nth(1).unwrap();
    other.command("ip", &["neighbor", "add", NODE[1], "lladdr", mac, "dev", "eth0"]).unwrap();
    other
}

#[test]
fn interfaces_without_an_address_lead_to_host_ports_whether_uplinks_are_declared_or_not() {
    for arguments in [&[][..], &["--uplink", "up0"]] {
        let mut stage = Stage::with(Lab::with_all_programs().unwrap(), arguments);
        let early = behind_a_nameless_link(&stage);
        mapped(&mut stage);
        let _echo = stage.echo(0, 7000);
        stage.wait_until("it runs there", |_| stage.wires() == ["cni0", "up0", "up1"]);
        chat(&mut opened(&stage, &early), &format!("{arguments:?}"));
        chat(&mut opened(&stage, &stage.outside), &format!("{arguments:?}, by the address"));
        // One that comes later, and is no port of anybody's.
        join(&stage.node, "up2", &stage.outside, "eth2");
        stage.wait_until("it runs there, too", |_| stage.wires() == ["cni0", "up0", "up1", "up2"]);
        // As a port of a bridge it leads to the bridge.
        stage.node.namespace().command("ip", &["link", "add", "br9", "type", "bridge"]).unwrap();
        stage.node.namespace().command("ip", &["link", "set", "up2", "master", "br9"]).unwrap();
        stage.wait_until("not there any more", |_| !stage.wires().contains(&"up2".to_owned()));
        stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
        stage.wait_until("nothing runs where nothing leads", |_| stage.wires().is_empty());
    }
}
