//! What an operator sets on a container's port of the kernel's bridge: the fast path heeds it within a second, and `ports` says why a
//! port takes the kernel's way. What is taken back is fast again.

use std::time::{Duration, Instant};

use serde_json::json;
use shunt_agent_api::PortReport;
use shunt_lab::{Conversation, Echo, Lacking, Protocol, patience, skip};

use crate::restrictions::tap;
use crate::stage::Stage;
use crate::wire::{BROADCAST, Wire, frame, says};

/// By when what was set is heeded.
const A_SECOND: Duration = Duration::from_secs(1);

/// How long a conversation that is cut off may be waited for.
const PATIENCE: Duration = Duration::from_secs(10);

fn bridge(stage: &Stage, arguments: &[&str]) {
    stage.node.namespace().command("bridge", arguments).unwrap();
}

fn report(stage: &Stage, index: usize) -> PortReport {
    stage.node.agent().port(stage.sandboxes[index].id()).unwrap()
}

/// Sets something on a container's port, and waits for a second.
fn set(stage: &Stage, index: usize, what: &[&str]) {
    let port = report(stage, index).host_ifname;
    bridge(stage, &[&["link", "set", "dev", &port], what].concat());
    std::thread::sleep(A_SECOND);
}

/// Which of two containers' frames for each other arrive, from the first to the second and back.
fn arrives(stage: &Stage, [one, two]: [usize; 2], when: &str) -> [bool; 2] {
    let wires = [one, two].map(|index| tap(&stage.sandboxes[index]));
    let text = |way: usize| format!("{when} {way}.");
    for (way, (from, to)) in [(&wires[0], &wires[1]), (&wires[1], &wires[0])].into_iter().enumerate() {
        from.send(&frame(to.mac(), from.mac(), &text(way)));
    }
    let heard = |wire: &Wire, way| wire.until_silence().iter().any(|frame| says(frame, &text(way)));
    [heard(&wires[1], 0), heard(&wires[0], 1)]
}

/// Whether what one container sends another takes the fast path.
fn is_fast(stage: &Stage, from: usize, to: usize) -> bool {
    let before = report(stage, from).from;
    let (sender, receiver) = (tap(&stage.sandboxes[from]), tap(&stage.sandboxes[to]));
    (0..10).for_each(|_| sender.send(&frame(receiver.mac(), sender.mac(), "which way")));
    report(stage, from).from.fast - before.fast >= 10
}

#[test]
fn ports_that_an_operator_isolates_do_not_reach_each_other_and_stay_fast() {
    let stage = Stage::set();
    assert_eq!(arrives(&stage, [0, 1], "before"), [true, true]);
    set(&stage, 0, &["isolated", "on"]);
    set(&stage, 1, &["isolated", "on"]);
    assert_eq!(arrives(&stage, [0, 1], "isolated"), [false, false]);
    assert_eq!(arrives(&stage, [0, 2], "the third"), [true, true]);
    assert!(is_fast(&stage, 0, 2) && is_fast(&stage, 2, 1));
    assert!(report(&stage, 0).kernels_way.is_empty());
    set(&stage, 1, &["isolated", "off"]);
    assert_eq!(arrives(&stage, [0, 1], "after"), [true, true]);
}

#[test]
fn what_an_operator_sets_by_ip_is_heeded_as_well() {
    let stage = Stage::set();
    for index in [0, 1] {
        let port = report(&stage, index).host_ifname;
        let isolated = ["link", "set", &port, "type", "bridge_slave", "isolated", "on"];
        stage.node.namespace().command("ip", &isolated).unwrap();
    }
    std::thread::sleep(A_SECOND);
    assert_eq!(arrives(&stage, [0, 1], "isolated"), [false, false]);
}

#[test]
fn a_port_that_an_operator_disables_neither_sends_nor_hears() {
    let mut stage = Stage::empty();
    let open = stage.network.clone();
    let mapping = json!([{"hostPort": 8080, "containerPort": 7100, "protocol": "tcp"}]);
    stage.network = open.clone().with("runtimeConfig", json!({"portMappings": mapping}));
    stage.add("one");
    stage.network = open;
    stage.add("two");
    assert_eq!(arrives(&stage, [0, 1], "before"), [true, true]);
    set(&stage, 0, &["state", "0"]);
    assert_eq!(arrives(&stage, [0, 1], "disabled"), [false, false]);
    assert_eq!(report(&stage, 0).kernels_way, ["its bridge port does not forward"]);
    // The node does not get there either.
    let echo = stage.sandboxes[0].echo(stage.sandboxes[0].addresses()[0], 7100).unwrap();
    let node = stage.node.namespace();
    let reached =
        |address| Conversation::open(node, Protocol::Tcp, address).and_then(|mut talk| talk.say(10));
    assert!(reached(echo.address()).is_err(), "the node reaches a container behind a disabled port");
    set(&stage, 0, &["state", "3"]);
    assert_eq!(arrives(&stage, [0, 1], "after"), [true, true]);
    assert!(report(&stage, 0).kernels_way.is_empty() && is_fast(&stage, 0, 1) && is_fast(&stage, 1, 0));
    reached(echo.address()).unwrap();
}

#[test]
fn a_locked_port_sends_from_the_stations_that_the_bridge_was_told_of() {
    let stage = Stage::set();
    set(&stage, 0, &["learning", "off", "locked", "on"]);
    assert_eq!(arrives(&stage, [0, 1], "locked"), [true, true]);
    assert_eq!(report(&stage, 0).kernels_way, ["its bridge port is locked"]);
    // The bridge is told of a station that the operator has authenticated, and of no other.
    let port = report(&stage, 0).host_ifname;
    let (known, unknown) = ([2, 0xbe, 0xef, 0, 0, 1], [2, 0xbe, 0xef, 0, 0, 2]);
    bridge(&stage, &["fdb", "add", "02:be:ef:00:00:01", "dev", &port, "master", "static"]);
    let (from, to) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    for (station, text) in [(known, "authenticated"), (unknown, "nobody")] {
        from.send(&frame(to.mac(), station, text));
        from.send(&frame(BROADCAST, station, text));
    }
    let heard = to.until_silence();
    let heard =
        ["authenticated", "nobody"].map(|text| heard.iter().filter(|frame| says(frame, text)).count());
    assert_eq!(heard, [2, 0]);
    set(&stage, 0, &["locked", "off"]);
    assert!(is_fast(&stage, 0, 1));
}

#[test]
fn on_a_bridge_that_begins_to_filter_vlans_ports_meet_within_their_pvid_only() {
    let stage = Stage::set();
    let node = stage.node.namespace();
    let filter = |on| node.command("ip", &["link", "set", "cni0", "type", "bridge", "vlan_filtering", on]);
    if filter("1").is_err() {
        return skip(Lacking::Kernel("VLAN filtering of bridges (CONFIG_BRIDGE_VLAN_FILTERING)"));
    }
    let port = report(&stage, 0).host_ifname;
    bridge(&stage, &["vlan", "del", "dev", &port, "vid", "1"]);
    bridge(&stage, &["vlan", "add", "dev", &port, "vid", "20", "pvid", "untagged"]);
    std::thread::sleep(A_SECOND);
    assert_eq!(arrives(&stage, [0, 1], "in VLAN 20"), [false, false]);
    assert_eq!(report(&stage, 0).kernels_way.len(), 1, "{:?}", report(&stage, 0));
    // The others are in the bridge's own VLAN, and fast.
    assert!(is_fast(&stage, 1, 2) && report(&stage, 1).kernels_way.is_empty());
    let to_gateway = |index: usize| {
        let echo = Echo::listen(node, "10.77.0.1".parse().unwrap(), 7200).unwrap();
        let talk = Conversation::open(stage.sandboxes[index].namespace(), Protocol::Tcp, echo.address());
        talk.and_then(|mut talk| talk.say(10))
    };
    to_gateway(1).unwrap();
    assert!(to_gateway(0).is_err(), "a container in another VLAN than the bridge's own reaches the gateway");
    // A second one in that VLAN is its neighbour.
    let other = report(&stage, 2).host_ifname;
    bridge(&stage, &["vlan", "add", "dev", &other, "vid", "20", "pvid", "untagged"]);
    std::thread::sleep(A_SECOND);
    assert_eq!(arrives(&stage, [0, 2], "both in VLAN 20"), [true, true]);
    filter("0").unwrap();
    std::thread::sleep(A_SECOND);
    assert_eq!(arrives(&stage, [0, 1], "without VLANs"), [true, true]);
    assert!(is_fast(&stage, 0, 1));
}

#[test]
fn what_is_set_is_heeded_by_the_next_agent_and_by_one_that_was_told_nothing() {
    let mut stage = Stage::set();
    let ports = [0, 1].map(|index| report(&stage, index).host_ifname);
    stage.node.agent_mut().kill().unwrap();
    // Nobody hears of it.
    for port in &ports {
        bridge(&stage, &["link", "set", "dev", port, "isolated", "on"]);
    }
    stage.node.restart_agent().unwrap();
    let begun = Instant::now();
    while stage.node.agent().ports().is_err() {
        assert!(begun.elapsed() < patience(PATIENCE), "the agent does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(arrives(&stage, [0, 1], "isolated"), [false, false]);
}
