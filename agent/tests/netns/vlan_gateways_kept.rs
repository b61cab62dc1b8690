//! A VLAN's gateway over time: what somebody takes from it comes back, agents come and go, and networks share it.

use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Echo, Protocol, Sandbox, patience};

use crate::stage::Stage;
use crate::vlan_gateways::{
    GATEWAY, assert_nothing_left, assert_talks_to_node, gateway_mac, has_gateway, in_vlan, ip, links,
    other_vlan, refused, talk, two_vlans,
};

/// How long the agent may take to put something back.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn what_is_taken_from_a_gateway_comes_back() {
    let stage = two_vlans();
    stage.node.settle().unwrap();
    let mac = gateway_mac(&stage, 10);
    let damages = [
        ("the pair", "ip link del cni0.10"),
        ("an address of IPv4", "ip address del 10.77.0.1/24 dev cni0.10"),
        ("an address of IPv6", "ip address del fd77::1/64 dev cni0.10"),
        // One that is up keeps its name before Linux 6.2; in one breath, as the agent puts it up again.
        ("its name", "printf 'link set cni0.10 down\\nlink set cni0.10 name mine\\n' | ip -batch -"),
        ("its MAC address", "ip link set dev cni0.10 address 02:00:00:00:00:99"),
        ("its place in the bridge", "ip link set dev PORT nomaster"),
    ];
    for (what, damage) in damages {
        let damage = damage.replace("PORT", &bridged_end(&stage));
        let before = stage.node.agent().status().unwrap().repairs;
        stage.node.namespace().command("sh", &["-c", &damage]).unwrap();
        await_repair(&stage, before, what);
        stage.node.settle().unwrap();
        assert_talks_to_node(&stage, &stage.sandboxes[0], GATEWAY);
        assert_eq!(gateway_mac(&stage, 10), mac, "{what}");
    }
    let status = stage.node.agent().status().unwrap();
    let before = status.repairs;
    let own: Vec<_> =
        status.programs.into_iter().filter(|program| program.ifname.starts_with("gw")).collect();
    assert_eq!(own.len(), 4);
    crate::hooks::detach(&stage.node, &own);
    await_repair(&stage, before, "programs");
    let begun = Instant::now();
    while stage.node.agent().ask("check").unwrap()["consistent"] != true {
        assert!(begun.elapsed() < patience(PATIENCE), "{}", stage.node.agent().log_tail());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_talks_to_node(&stage, &stage.sandboxes[0], GATEWAY);
    assert_talks_to_node(&stage, &stage.sandboxes[2], ["10.78.0.1", "fd78::1"]);
}

fn bridged_end(stage: &Stage) -> String {
    links(stage).into_iter().find(|name| name.starts_with("gw") && name.ends_with(".10")).unwrap()
}

fn await_repair(stage: &Stage, before: u64, what: &str) {
    let begun = Instant::now();
    while stage.node.agent().status().unwrap().repairs == before {
        assert!(begun.elapsed() < patience(PATIENCE), "{what}: {}", stage.node.agent().log_tail());
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("{what}: back after {:?}", begun.elapsed());
}

#[test]
fn a_gateway_outlives_the_agent_and_the_next_one_looks_after_it() {
    let mut stage = two_vlans();
    stage.node.settle().unwrap();
    let mac = gateway_mac(&stage, 10);
    let echo = Echo::listen(stage.node.namespace(), "10.77.0.1".parse().unwrap(), 7300).unwrap();
    let mut conversation = stage.sandboxes[0].talk_to(Protocol::Tcp, &echo).unwrap();
    stage.node.agent_mut().kill().unwrap();
    conversation.chat(20, 1200).unwrap();
    assert_talks_to_node(&stage, &stage.sandboxes[1], GATEWAY);
    stage.node.restart_agent().unwrap();
    conversation.chat(20, 1200).unwrap();
    assert_eq!(gateway_mac(&stage, 10), mac);
    let counted = stage.node.agent().status().unwrap().vlan_gateways.remove(0);
    assert!(counted.to.packets > 40, "it goes on counting: {counted:?}");

    // One that was deleted meanwhile is made again, as it was.
    stage.node.agent_mut().kill().unwrap();
    ip(&stage, &["link", "del", "cni0.10"]);
    stage.node.restart_agent().unwrap();
    let begun = Instant::now();
    while !has_gateway(&stage, "cni0.10") {
        assert!(begun.elapsed() < patience(PATIENCE), "{}", stage.node.agent().log_tail());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(gateway_mac(&stage, 10), mac);
    stage.node.settle().unwrap();
    assert_talks_to_node(&stage, &stage.sandboxes[1], GATEWAY);

    // One that nobody needs any more is removed by the next agent.
    stage.node.agent_mut().kill().unwrap();
    let (ten, twenty) = (in_vlan(&stage, 10), other_vlan(&stage, 20));
    for (sandbox, network) in stage.sandboxes.drain(..).zip([&ten, &ten, &twenty]) {
        sandbox.delete(&stage.node, network).unwrap();
    }
    stage.node.restart_agent().unwrap();
    assert!(!links(&stage).iter().any(|name| name.contains('.')), "{:?}", links(&stage));
    assert_nothing_left(&stage);
}

#[test]
fn a_bridge_that_is_deleted_comes_back_with_its_gateways() {
    let stage = two_vlans();
    stage.node.settle().unwrap();
    let mac = gateway_mac(&stage, 10);
    ip(&stage, &["link", "del", "cni0"]);
    let begun = Instant::now();
    while !(has_gateway(&stage, "cni0") && has_gateway(&stage, "cni0.10") && has_gateway(&stage, "cni0.20")) {
        assert!(begun.elapsed() < patience(PATIENCE), "{}", stage.node.agent().log_tail());
        std::thread::sleep(Duration::from_millis(50));
    }
    stage.node.settle().unwrap();
    assert_eq!(gateway_mac(&stage, 10), mac);
    assert_talks_to_node(&stage, &stage.sandboxes[0], GATEWAY);
    assert_talks_to_node(&stage, &stage.sandboxes[2], ["10.78.0.1", "fd78::1"]);
}

#[test]
fn two_networks_share_the_gateway_of_their_vlan() {
    let mut stage = Stage::empty();
    let pods = stage.network.clone();
    let six = stage.node.network("six", "cni0", &["fd79::/64"]).with("vlan", json!(10));
    stage.network = in_vlan(&stage, 10);
    stage.add("one");
    stage.network = six.clone();
    stage.add("two");
    stage.network = pods;
    stage.node.settle().unwrap();
    let own = stage.sandboxes[1].namespace();
    talk(own, stage.node.namespace(), "fd79::1", 7200).unwrap();
    assert_talks_to_node(&stage, &stage.sandboxes[0], GATEWAY);

    // Another subnet of IPv4 is in the way of the first, unless it is to have its place.
    let other = stage.node.network("four", "cni0", &["10.80.0.0/24"]).with("vlan", json!(10));
    let refusal = refused(&stage, &other, "three");
    assert_eq!(refusal.code, 999, "{refusal}");
    assert!(
        refusal.to_string().contains("already has an IP address different from 10.80.0.1/24"),
        "{refusal}"
    );
    let forced = other.with("forceAddress", json!(true));
    let three = Sandbox::start(&stage.lab, &stage.node, &forced, "three").unwrap();
    talk(three.namespace(), stage.node.namespace(), "10.80.0.1", 7202).unwrap();
    let shown = ip(&stage, &["address", "show", "dev", "cni0.10"]);
    assert!(!shown.contains("10.77.0.1"), "{shown}");
    three.delete(&stage.node, &forced).unwrap();

    // The address goes with the network that wanted it.
    let two = stage.sandboxes.remove(1);
    two.delete(&stage.node, &six).unwrap();
    let shown = ip(&stage, &["address", "show", "dev", "cni0.10"]);
    assert!(!shown.contains("fd79::1") && shown.contains("fd77::1"), "{shown}");
}
