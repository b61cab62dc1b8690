//! A container's MAC or IP address never takes the gateway's, the bridge's or a neighbour's place.

use serde_json::json;
use shunt_lab::cni::Refusal;
use shunt_lab::{Container, Lacking, Network, skip};

use crate::restrictions::{assert_talk_to_gateway, tap};
use crate::stage::Stage;
use crate::wire::{Mac, Wire};

/// Where Debian has the reference plugins.
const STATIC: &str = "/usr/lib/cni/static";

fn text([a, b, c, d, e, f]: Mac) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

/// The ADD of a container called late is refused with code 106 and leaves nothing; its words.
fn refused(stage: &Stage, network: &Network) -> String {
    let container = Container::create(&stage.lab, "late").unwrap();
    let before = stage.node.inventory().unwrap();
    let error = network.add(stage.node.namespace(), &container).unwrap_err();
    let refusal = error.downcast::<Refusal>().unwrap();
    assert_eq!(refusal.code, 106, "{refusal}");
    assert!(container.namespace().command("ip", &["link", "show", "eth0"]).is_err());
    let left: Vec<_> = stage.node.inventory().unwrap().since(&before);
    assert_eq!(left, Vec::<String>::new());
    network.del(stage.node.namespace(), &container, &json!(null)).unwrap();
    refusal.to_string()
}

/// The bridge's own entries of its forwarding database.
fn own_entries(stage: &Stage) -> Vec<String> {
    let shown = stage.node.namespace().command("bridge", &["fdb", "show", "br", "cni0"]).unwrap();
    let own = |line: &&str| line.contains("master cni0") && line.contains("permanent");
    let mut lines: Vec<_> = shown.lines().filter(own).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn assert_everybody_is_served(stage: &Stage) {
    for sandbox in &stage.sandboxes {
        assert_talk_to_gateway(stage, sandbox);
    }
    stage.assert_talk(0, 1);
    stage.assert_talk(2, 1);
}

/// A network like the stage's, whose container gets this MAC address by any of the ways that there are.
fn with_mac(stage: &Stage, mac: &str) -> [Network; 2] {
    let network = &stage.network;
    [
        network.clone().with("args", json!({ "cni": { "mac": mac } })),
        network.clone().with("runtimeConfig", json!({ "mac": mac })),
    ]
}

#[test]
fn the_bridges_own_mac_address_is_refused_and_every_container_keeps_the_gateway() {
    let stage = Stage::set();
    stage.node.settle().unwrap();
    let before = own_entries(&stage);
    assert!(!before.is_empty());
    let bridge = Wire::tap(stage.node.namespace(), "cni0").mac();
    for network in with_mac(&stage, &text(bridge)) {
        let why = refused(&stage, &network);
        assert!(why.contains("cni0") && why.contains(&text(bridge)), "{why}");
        assert_eq!(own_entries(&stage), before);
        assert_everybody_is_served(&stage);
    }
    // A port's own address, which is the node's as well.
    let port = stage.node.agent().port("one").unwrap().host_ifname;
    let ends = Wire::tap(stage.node.namespace(), &port).mac();
    for network in with_mac(&stage, &text(ends)) {
        let why = refused(&stage, &network);
        assert!(why.contains(&port), "{why}");
        assert_eq!(own_entries(&stage), before);
    }
}

#[test]
fn a_neighbours_mac_address_is_refused_by_the_neighbours_name_and_an_operators_by_the_ports() {
    let stage = Stage::set();
    stage.node.settle().unwrap();
    let one = text(tap(&stage.sandboxes[0]).mac());
    for network in with_mac(&stage, &one) {
        let why = refused(&stage, &network);
        assert!(why.contains("one") && why.contains(&one), "{why}");
    }
    // A station that an operator has told the bridge of stays where it is.
    let node = stage.node.namespace();
    let (foreign, told) = ("foreign0", "02:ab:cd:00:00:01");
    node.command("ip", &["link", "add", foreign, "type", "veth", "peer", "name", "foreign1"]).unwrap();
    node.command("ip", &["link", "set", foreign, "master", "cni0"]).unwrap();
    node.command("bridge", &["fdb", "add", told, "dev", foreign, "master", "static"]).unwrap();
    for network in with_mac(&stage, told) {
        let why = refused(&stage, &network);
        assert!(why.contains(foreign) && why.contains(told), "{why}");
        let shown = node.command("bridge", &["fdb", "show", "br", "cni0"]).unwrap();
        assert!(shown.lines().any(|line| line.contains(told) && line.contains(foreign)), "{shown}");
    }
    node.command("ip", &["link", "del", foreign]).unwrap();
    assert_everybody_is_served(&stage);
}

/// A network whose IPAM gives what it is told to.
fn with_address(stage: &Stage, address: &str, gateway: &str) -> Network {
    let program = stage.node.plugins().join("static");
    if !program.exists() {
        std::os::unix::fs::symlink(STATIC, program).unwrap();
    }
    let given = json!([{ "address": address, "gateway": gateway }]);
    stage.network.clone().with("ipam", json!({ "type": "static", "addresses": given }))
}

#[test]
fn the_gateways_and_a_neighbours_ip_address_are_refused_by_their_owners_names() {
    let stage = Stage::set();
    stage.node.settle().unwrap();
    if !std::path::Path::new(STATIC).exists() {
        return skip(Lacking::Package("containernetworking-plugins"));
    }
    let [v4, v6] = stage.sandboxes[1].addresses()[..] else { unreachable!("one of each family") };
    for (address, gateway, owner) in [
        ("10.77.0.1/24".to_owned(), "10.77.0.1", "cni0"),
        ("fd77::1/64".to_owned(), "fd77::1", "cni0"),
        (format!("{v4}/24"), "10.77.0.1", "two"),
        (format!("{v6}/64"), "fd77::1", "two"),
    ] {
        let network = with_address(&stage, &address, gateway);
        let why = refused(&stage, &network);
        let ip = address.split('/').next().unwrap();
        assert!(why.contains(owner) && why.contains(ip), "{why}");
        assert_everybody_is_served(&stage);
    }
}

#[test]
fn what_a_container_has_left_is_free_for_the_next() {
    let mut stage = Stage::set();
    let mac = text(tap(&stage.sandboxes[2]).mac());
    let third = stage.sandboxes.pop().unwrap();
    third.delete(&stage.node, &stage.network).unwrap();
    let [with_args, _] = with_mac(&stage, &mac);
    stage.network = with_args;
    stage.add("four");
    assert_everybody_is_served(&stage);
}
