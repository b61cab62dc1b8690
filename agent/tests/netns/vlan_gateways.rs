//! The node as the gateway of VLANs: reached as a bridge's gateway is, on kernels whose bridge knows no VLANs, too.

use std::net::IpAddr;

use serde_json::{Value, json};
use shunt_lab::cni::Refusal;
use shunt_lab::{Container, Conversation, Echo, Namespace, Network, Node, Protocol, Sandbox};

use crate::masquerade::{NODE, OUTSIDE, World};
use crate::restrictions::{drops, tap};
use crate::stage::Stage;
use crate::wire::{BROADCAST, Wire, frame, says};

pub(crate) const GATEWAY: [&str; 2] = ["10.77.0.1", "fd77::1"];

/// A network in a VLAN, whose default gateway the node is.
pub(crate) fn in_vlan(stage: &Stage, vid: u16) -> Network {
    stage.network.clone().with("vlan", json!(vid))
}

/// Another network on the same bridge, in another VLAN, with a subnet of its own.
pub(crate) fn other_vlan(stage: &Stage, vid: u16) -> Network {
    let network = stage.node.network("others", "cni0", &["10.78.0.0/24", "fd78::/64"]);
    network.with("vlan", json!(vid))
}

/// Two containers in VLAN 10, and one in VLAN 20.
pub(crate) fn two_vlans() -> Stage {
    let mut stage = Stage::empty();
    let pods = stage.network.clone();
    stage.network = in_vlan(&stage, 10);
    stage.add("one");
    stage.add("two");
    stage.network = other_vlan(&stage, 20);
    stage.add("three");
    stage.network = pods;
    stage
}

pub(crate) fn talk(from: &Namespace, to: &Namespace, address: &str, port: u16) -> Result<(), String> {
    let address: IpAddr = address.parse().unwrap();
    let echo = Echo::listen(to, address, port).map_err(|error| format!("{error:#}"))?;
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let talk =
            Conversation::open(from, protocol, echo.address()).and_then(|mut talk| talk.chat(20, 1200));
        talk.map_err(|error| format!("{protocol:?}: {error:#}"))?;
    }
    Ok(())
}

/// A container and the node talk, whoever begins, over both families.
pub(crate) fn assert_talks_to_node(stage: &Stage, sandbox: &Sandbox, gateways: [&str; 2]) {
    let (inside, node) = (sandbox.namespace(), stage.node.namespace());
    // The node has to ask, too.
    ip(stage, &["neighbor", "flush", "all"]);
    for address in sandbox.addresses() {
        let address = address.to_string();
        talk(node, inside, &address, 7201).unwrap_or_else(|error| panic!("to {address}: {error}"));
    }
    for gateway in gateways {
        talk(inside, node, gateway, 7200).unwrap_or_else(|error| panic!("to {gateway}: {error}"));
    }
}

pub(crate) fn links(stage: &Stage) -> Vec<String> {
    let shown = stage.node.namespace().command("ip", &["-j", "link", "show"]).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    shown.as_array().unwrap().iter().filter_map(|link| link["ifname"].as_str()).map(str::to_owned).collect()
}

pub(crate) fn has_gateway(stage: &Stage, name: &str) -> bool {
    links(stage).iter().any(|link| link == name)
}

pub(crate) fn ip(stage: &Stage, arguments: &[&str]) -> String {
    stage.node.namespace().command("ip", arguments).unwrap()
}

/// Nothing is left but the bridge, and the programs of VLANs, which stay loaded.
pub(crate) fn assert_nothing_left(stage: &Stage) {
    let left: Vec<_> = stage.left().into_iter().filter(|line| !line.contains("v2/members/")).collect();
    assert_eq!(left, Vec::<String>::new());
}

pub(crate) fn refused(stage: &Stage, network: &Network, id: &str) -> Refusal {
    let container = Container::create(&stage.lab, id).unwrap();
    let error = network.add(stage.node.namespace(), &container).map(drop).unwrap_err();
    error.downcast().unwrap()
}

/// Another node, at the other end of the wire by which the stage's bridge leads out, with a container in VLAN 10 that has more
/// addresses: those of the gateway's subnets.
fn neighbor_node(stage: &Stage) -> (Node, Sandbox) {
    let far = Node::start(&stage.lab, "far").unwrap();
    stage.node.namespace().pair("up0", far.namespace(), "up0").unwrap();
    let network = far.network("far", "cni0", &["10.77.0.128/25"]).with("isDefaultGateway", json!(false));
    let network = network.with("vlan", json!(10)).with("uplink", json!("up0"));
    let beyond = Sandbox::start(&stage.lab, &far, &network, "beyond").unwrap();
    for address in ["10.77.0.200/24", "fd77::200/64"] {
        let add = ["address", "add", address, "dev", "eth0"];
        let nodad = address.contains(':').then_some("nodad");
        beyond.namespace().command("ip", &add.into_iter().chain(nodad).collect::<Vec<_>>()).unwrap();
    }
    (far, beyond)
}

#[test]
fn the_gateway_of_a_vlan_serves_those_beyond_its_uplink() {
    let mut stage = Stage::empty();
    let (far, beyond) = neighbor_node(&stage);
    let network = in_vlan(&stage, 10).with("uplink", json!("up0"));
    stage.network = network;
    stage.add("one");
    stage.network = other_vlan(&stage, 20);
    stage.add("three");
    stage.node.settle().unwrap();
    let (node, inside) = (stage.node.namespace(), beyond.namespace());
    let say = |what: &str, error: String| -> ! {
        panic!("{what}: {error}\n{}\n{}", stage.node.agent().log_tail(), far.agent().log_tail());
    };
    for (gateway, own) in GATEWAY.into_iter().zip(["10.77.0.200", "fd77::200"]) {
        talk(inside, node, gateway, 7200).unwrap_or_else(|error| say(gateway, error));
        talk(node, inside, own, 7201).unwrap_or_else(|error| say(own, error));
    }
    // Within the VLAN, from node to node, and by the gateway into another VLAN of the first.
    for (subnet, gateway) in [("10.78.0.0/24", GATEWAY[0]), ("fd78::/64", GATEWAY[1])] {
        inside.command("ip", &["route", "add", subnet, "via", gateway]).unwrap();
    }
    for (sandbox, port) in stage.sandboxes.iter().zip([7202, 7203]) {
        for address in sandbox.addresses() {
            let address = address.to_string();
            talk(inside, sandbox.namespace(), &address, port).unwrap_or_else(|error| say(&address, error));
        }
    }
    let [uplink] = &stage.node.agent().status().unwrap().bridge_uplinks[..] else {
        panic!("there is one uplink");
    };
    assert!(uplink.from.fast > 100 && uplink.to.fast > 100, "{uplink:?}");
}

#[test]
fn containers_of_a_vlan_and_their_gateway_talk() {
    let mut stage = two_vlans();
    stage.node.settle().unwrap();
    assert_talks_to_node(&stage, &stage.sandboxes[0], GATEWAY);
    assert_talks_to_node(&stage, &stage.sandboxes[1], GATEWAY);
    assert_talks_to_node(&stage, &stage.sandboxes[2], ["10.78.0.1", "fd78::1"]);
    stage.assert_talk(0, 1);

    // The gateway is the fourth of the result's interfaces, as the reference plugin's is.
    let result = &stage.sandboxes[0].attachment().result;
    assert_eq!(result["interfaces"][3]["name"], "cni0.10", "{result}");
    let shown: Value = serde_json::from_str(&ip(&stage, &["-j", "link", "show", "cni0.10"])).unwrap();
    assert_eq!(result["interfaces"][3]["mac"], shown[0]["address"], "{result}");
    for sandbox in &stage.sandboxes[..2] {
        let network = in_vlan(&stage, 10);
        network.check(stage.node.namespace(), sandbox.container(), &sandbox.attachment().result).unwrap();
    }

    let status = stage.node.agent().status().unwrap();
    let known: Vec<_> = status.vlan_gateways.iter().map(|it| (it.name.as_str(), it.vlan)).collect();
    assert_eq!(known, [("cni0.10", 10), ("cni0.20", 20)]);
    assert_eq!(status.vlan_gateways[0].addresses, ["10.77.0.1/24", "fd77::1/64"].map(String::from));
    assert!(status.vlan_gateways[0].from.fast > 20 && status.vlan_gateways[0].to.fast > 20, "{status:?}");
    assert_eq!(status.attachments, 3);
    let fdb = stage.node.agent().ask("fdb").unwrap();
    let own = fdb.as_array().unwrap().iter().find(|entry| entry["port"] == "cni0.10").unwrap();
    assert_eq!((&own["vid"], &own["mac"]), (&json!(10), &shown[0]["address"]), "{fdb}");
    let audit = stage.node.agent().ask("check").unwrap();
    assert_eq!(audit["consistent"], true, "{audit}");

    // With the last container of its VLAN, and not before.
    let [one, two, three] = [0; 3].map(|_| stage.sandboxes.remove(0));
    one.delete(&stage.node, &in_vlan(&stage, 10)).unwrap();
    assert!(has_gateway(&stage, "cni0.10"));
    two.delete(&stage.node, &in_vlan(&stage, 10)).unwrap();
    assert!(!has_gateway(&stage, "cni0.10") && has_gateway(&stage, "cni0.20"));
    three.delete(&stage.node, &other_vlan(&stage, 20)).unwrap();
    assert!(!links(&stage).iter().any(|name| name.contains('.')), "{:?}", links(&stage));
    assert_nothing_left(&stage);
}

#[test]
fn two_vlans_meet_by_the_node_alone() {
    let mut stage = two_vlans();
    stage.network = stage.node.network("open", "cni0", &["10.79.0.0/24", "fd79::/64"]);
    stage.add("four");
    stage.node.settle().unwrap();
    let [one, _, three, four] = &stage.sandboxes[..] else { unreachable!("four were added") };
    for (from, to) in [(one, three), (three, one), (one, four), (four, three)] {
        for address in to.addresses() {
            let address = address.to_string();
            talk(from.namespace(), to.namespace(), &address, 7000)
                .unwrap_or_else(|error| panic!("{} to {address}: {error:#}", from.id()));
        }
    }
    // The node has routed it: neither hears the other's frames.
    let (from, other, bridge) = (tap(one), tap(three), Wire::tap(stage.node.namespace(), "cni0"));
    from.send(&frame(BROADCAST, from.mac(), "for VLAN 10"));
    from.send(&frame(other.mac(), from.mac(), "for VLAN 10"));
    Wire::tap(stage.node.namespace(), "cni0.20").send(&frame(BROADCAST, gateway_mac(&stage, 20), "the last"));
    let heard = other.until(|frame| says(frame, "the last"));
    assert!(!heard.iter().any(|frame| says(frame, "for VLAN 10")), "{heard:02x?}");
    assert!(!bridge.until_silence().iter().any(|frame| says(frame, "for VLAN 10")));
}

pub(crate) fn gateway_mac(stage: &Stage, vid: u16) -> crate::wire::Mac {
    let status = stage.node.agent().status().unwrap();
    let gateway = status.vlan_gateways.iter().find(|it| it.vlan == vid).unwrap();
    let bytes: Vec<u8> = gateway.mac.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

#[test]
fn the_world_is_reached_and_masqueraded_by_the_kernels_rule() {
    let mut world = World::new();
    world.network = world.network.clone().with("vlan", json!(10));
    world.add("one");
    world.node.settle().unwrap();
    let inside = world.sandboxes[0].namespace();
    for (outside, node) in OUTSIDE.into_iter().zip(NODE) {
        let address: IpAddr = outside.parse().unwrap();
        let echo = Echo::listen(&world.outside, address, 7000).unwrap();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            Conversation::open(inside, protocol, echo.address()).unwrap().chat(20, 1400).unwrap();
        }
        let server = world.outside.enter(|| std::net::TcpListener::bind((address, 7001)).unwrap()).unwrap();
        let client = inside.enter(|| std::net::TcpStream::connect((address, 7001)).unwrap()).unwrap();
        let (_, peer) = server.accept().unwrap();
        assert_eq!(peer.ip(), node.parse::<IpAddr>().unwrap());
        drop(client);
    }
}

#[test]
fn isolated_containers_of_a_vlan_reach_their_gateway_and_not_each_other() {
    let mut stage = Stage::empty();
    let pods = stage.network.clone();
    let vlan = in_vlan(&stage, 10);
    stage.network = vlan.with("portIsolation", json!(true)).with("macspoofchk", json!(true));
    stage.network = stage.network.clone().with("ipspoofchk", json!(true));
    stage.add("one");
    stage.add("two");
    stage.network = pods;
    stage.node.settle().unwrap();
    for sandbox in &stage.sandboxes {
        assert_talks_to_node(&stage, sandbox, GATEWAY);
    }
    let (one, two) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    one.send(&frame(two.mac(), one.mac(), "not for the other"));
    one.send(&frame(BROADCAST, one.mac(), "not for the other"));
    assert!(!two.until_silence().iter().any(|frame| says(frame, "not for the other")));
    assert!(drops(&stage, "one", "isolated") > 0);
}

#[test]
fn a_container_in_no_vlan_reaches_a_gateway_by_its_own_only() {
    let mut stage = two_vlans();
    stage.add("open");
    let (open, node) = (tap(&stage.sandboxes[3]), Wire::tap(stage.node.namespace(), "cni0.10"));
    for destination in [gateway_mac(&stage, 10), BROADCAST] {
        open.send(&frame(destination, open.mac(), "from no VLAN"));
    }
    let inside = tap(&stage.sandboxes[0]);
    inside.send(&frame(BROADCAST, inside.mac(), "the last"));
    let heard = node.until(|frame| says(frame, "the last"));
    assert!(!heard.iter().any(|frame| says(frame, "from no VLAN")), "{heard:02x?}");
}

#[test]
fn a_name_that_is_somebody_elses_is_refused_and_nothing_is_left() {
    let mut stage = Stage::empty();
    ip(&stage, &["link", "add", "cni0.10", "type", "bridge"]);
    stage.empty = stage.node.inventory().unwrap();
    let refusal = refused(&stage, &in_vlan(&stage, 10), "one");
    assert_eq!(refusal.code, 999, "{refusal}");
    assert!(refusal.to_string().contains("cni0.10"), "{refusal}");
    assert_nothing_left(&stage);
    assert!(has_gateway(&stage, "cni0.10"), "it is not ours to delete");
    stage.network = in_vlan(&stage, 20);
    stage.add("two");
    assert_talks_to_node(&stage, &stage.sandboxes[0], GATEWAY);
}

#[test]
fn a_bridge_with_a_long_name_has_gateways_with_short_ones() {
    let mut stage = Stage::empty();
    let long = stage.node.network("long", "fifteen-letters", &["10.81.0.0/24"]);
    stage.network = long.with("vlans", json!({ "untagged": 4094, "tagged": [7] }));
    stage.add("one");
    let gateway = stage.node.agent().status().unwrap().vlan_gateways.remove(0);
    assert!(gateway.name.len() <= 15 && gateway.name.ends_with(".4094"), "{gateway:?}");
    let inside = stage.sandboxes[0].namespace();
    talk(inside, stage.node.namespace(), "10.81.0.1", 7200).unwrap();
}

#[test]
fn nobody_takes_a_gateways_place() {
    let stage = two_vlans();
    stage.node.settle().unwrap();
    let status = stage.node.agent().status().unwrap();
    let mac = &status.vlan_gateways[0].mac;
    let runtime = json!({ "mac": mac });
    let thief = in_vlan(&stage, 10).with("runtimeConfig", runtime);
    let refusal = refused(&stage, &thief, "thief");
    assert!(refusal.to_string().contains(mac.as_str()), "{refusal}");
    // A container that sends in its name moves nobody.
    let one = tap(&stage.sandboxes[0]);
    one.send(&frame(BROADCAST, gateway_mac(&stage, 10), "I am the gateway"));
    assert_talks_to_node(&stage, &stage.sandboxes[1], GATEWAY);
}

#[test]
fn what_a_gateway_routes_is_another_bridges_to_who_takes_that_of_its_own_only() {
    let mut stage = two_vlans();
    let pods = stage.network.clone();
    stage.network = stage.node.network("shut", "cni1", &["10.79.0.0/24", "fd79::/64"]);
    stage.network = stage.network.clone().with("ingressPolicy", json!("same-bridge"));
    stage.add("shut");
    stage.network = pods;
    stage.node.settle().unwrap();
    let [one, .., shut] = &stage.sandboxes[..] else { unreachable!("four were added") };
    for address in shut.addresses() {
        let echo = shut.echo(address, 7400).unwrap();
        assert!(one.talk_to(Protocol::Tcp, &echo).is_err(), "{address}");
        talk(stage.node.namespace(), shut.namespace(), &address.to_string(), 7401).unwrap();
    }
    // In the VLAN itself the node could not tell whose a packet is.
    for policy in ["same-bridge", "isolated"] {
        let refusal = refused(&stage, &in_vlan(&stage, 10).with("ingressPolicy", json!(policy)), policy);
        assert_eq!(refusal.code, 100, "{refusal}");
    }
    let member = in_vlan(&stage, 10).with("isDefaultGateway", json!(false));
    let refusal = refused(&stage, &member.with("ingressPolicy", json!("same-bridge")), "member");
    assert_eq!(refusal.code, 100, "{refusal}");
}
