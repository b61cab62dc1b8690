//! Somebody else's interface on the same bridge: what it sends reaches containers by the kernel's way alone.

use std::time::{Duration, Instant};

use serde_json::json;
use shunt_dataplane::abi::PORT_FOREIGN;
use shunt_lab::{Namespace, patience};

use crate::restrictions::{drops, ports_map, stage, tap};
use crate::stage::Stage;
use crate::wire::{BROADCAST, Mac, Wire, arp, frame, says, tagged};

/// How long the agent may take to hear of a new port.
const PATIENCE: Duration = Duration::from_secs(10);

const GROUP: Mac = [0x01, 0x00, 0x5e, 0, 0, 7];
const NOBODY: Mac = [2, 0xbe, 0xef, 0, 0, 1];

/// A veth on the bridge `cni0` that no plugin knows of; the attacker is behind it.
pub(crate) struct Intruder {
    pub(crate) namespace: Namespace,
    pub(crate) wire: Wire,
    port: String,
}

impl Intruder {
    pub(crate) fn enter(stage: &Stage) -> Self {
        let namespace = stage.lab.namespace("intruder").unwrap();
        let there = namespace.path().to_str().unwrap();
        let node = stage.node.namespace();
        let run = |arguments: &[&str]| drop(node.command("ip", arguments).unwrap());
        run(&["link", "add", "intruder0", "type", "veth", "peer", "name", "eth0", "netns", there]);
        run(&["link", "set", "intruder0", "master", "cni0", "up"]);
        namespace.command("ip", &["link", "set", "eth0", "up"]).unwrap();
        let begun = Instant::now();
        while !node
            .command("bridge", &["link", "show", "dev", "intruder0"])
            .unwrap()
            .contains("state forwarding")
        {
            assert!(begun.elapsed() < patience(PATIENCE), "the intruder's port does not forward");
            std::thread::sleep(Duration::from_millis(20));
        }
        let wire = Wire::tap(&namespace, "eth0");
        Self { namespace, wire, port: "intruder0".to_owned() }
    }

    /// Waits until the agent has heard of it.
    fn assert_noticed(&self, stage: &Stage) {
        let ports = ports_map(stage);
        let begun = Instant::now();
        while !ports.iter().any(|entry| entry.is_ok_and(|(_, port)| port.flags & PORT_FOREIGN != 0)) {
            assert!(begun.elapsed() < patience(PATIENCE), "the agent has not heard of {}", self.port);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Everything that a stranger can say to the stage's first container, in the names of all, and the second and the third; the third
/// is an open one. Nothing of it gets to the first, whom `friend` reaches. How much was to get there at least.
fn assert_attacked_in_vain(stage: &Stage, friend: &Wire, own_names: &[Mac]) -> u64 {
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let (victim, other, open) = (tap(one), tap(two), tap(three));
    let gateway = Wire::tap(stage.node.namespace(), "cni0");
    let intruder = Intruder::enter(stage);
    intruder.assert_noticed(stage);
    // The victim's name last: from then on the bridge looks for it where it was said.
    let others = [other.mac(), open.mac(), gateway.mac(), victim.mac()];
    let mut sent = 0;
    for pretended in own_names.iter().copied().chain(others) {
        for destination in [victim.mac(), BROADCAST, GROUP] {
            let attack = frame(destination, pretended, "an attack");
            for tci in [0, 1, 10, 20, 0xe00a] {
                intruder.wire.send(&tagged(tci, attack.clone()));
            }
            intruder.wire.send(&tagged(10, tagged(20, attack.clone())));
            intruder.wire.send(&attack);
            // A victim that is not checked is where its name is sent from, and a bridge sends nothing back there.
            sent += if pretended == destination { 0 } else { 7 };
        }
        intruder.wire.send(&arp(BROADCAST, pretended, 1, [10, 77, 0, 200], [10, 77, 0, 2]));
    }
    // It was on the wire: an open port has heard it.
    open.until(|frame| says(frame, "an attack"));
    friend.send(&frame(victim.mac(), friend.mac(), "the last"));
    let seen = victim.until(|frame| says(frame, "the last"));
    assert!(!seen.iter().any(|frame| says(frame, "an attack")), "{seen:02x?}");
    assert!(!seen.iter().any(|frame| frame.get(28..32) == Some(&[10, 77, 0, 200])), "ARP came through");
    sent
}

/// Names that no container has.
const OWN_NAMES: [Mac; 2] = [[2, 0xbe, 0xef, 0, 0, 2], NOBODY];

fn dropped(stage: &Stage) -> u64 {
    ["stranger", "impostor"].iter().map(|reason| drops(stage, "one", reason)).sum()
}

#[test]
fn a_stranger_on_the_bridge_reaches_no_isolated_container_whoever_it_pretends_to_be() {
    let stage = stage("portIsolation");
    let sent = assert_attacked_in_vain(&stage, &tap(&stage.sandboxes[2]), &OWN_NAMES);
    let dropped = dropped(&stage);
    assert!(dropped >= sent, "{dropped} of {sent}: {:?}", stage.node.agent().drops());
    stage.assert_talk(0, 2);
    crate::restrictions::assert_talk_to_gateway(&stage, &stage.sandboxes[0]);
}

/// `same-bridge` is about other bridges: whoever is on this one gets in under a name of its own, and under nobody else's.
#[test]
fn a_stranger_on_the_bridge_reaches_no_container_that_takes_nothing_of_it() {
    for (policy, own_names) in [("isolated", &OWN_NAMES[..]), ("same-bridge", &[])] {
        let mut stage = crate::ingress::with_policy(policy);
        stage.add("three");
        let gateway = Wire::tap(stage.node.namespace(), "cni0");
        let sent = assert_attacked_in_vain(&stage, &gateway, own_names);
        let dropped = dropped(&stage);
        assert!(dropped >= sent, "{policy}: {dropped} of {sent}: {:?}", stage.node.agent().drops());
        crate::restrictions::assert_talk_to_gateway(&stage, &stage.sandboxes[0]);
    }
}

#[test]
fn a_stranger_on_the_bridge_reaches_no_container_in_a_vlan_with_any_tag() {
    let mut stage = Stage::empty();
    stage.network = stage.network.with("isDefaultGateway", json!(false));
    for id in ["one", "two"] {
        crate::uplinks::add_in(&mut stage, id, "vlan", json!(10));
    }
    stage.add("three");
    assert_attacked_in_vain(&stage, &tap(&stage.sandboxes[1]), &OWN_NAMES);
    stage.assert_talk(0, 1);
}

#[test]
fn a_stranger_does_not_take_a_checked_containers_place_in_the_kernels_bridge() {
    let mut stage = stage("macspoofchk");
    let [one, two, _] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let (victim, sender) = (tap(one), tap(two));
    let intruder = Intruder::enter(&stage);
    // From here on everything goes by the kernel's way.
    crate::restrictions::lose_programs(&mut stage.node);
    for _ in 0..3 {
        intruder.wire.send(&frame(BROADCAST, victim.mac(), "I am one"));
        sender.until(|frame| says(frame, "I am one"));
        sender.send(&frame(victim.mac(), sender.mac(), "for one alone"));
        victim.until(|frame| says(frame, "for one alone"));
    }
    sender.send(&frame(BROADCAST, sender.mac(), "the last"));
    let seen = intruder.wire.until(|frame| says(frame, "the last"));
    assert!(!seen.iter().any(|frame| says(frame, "for one alone")), "{seen:02x?}");
}

#[test]
fn a_container_held_to_its_mac_address_is_held_without_our_programs_too() {
    let mut stage = stage("macspoofchk");
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let (from, to, open) = (tap(one), tap(two), tap(three));
    crate::restrictions::lose_programs(&mut stage.node);
    for pretended in [NOBODY, open.mac()] {
        for destination in [to.mac(), BROADCAST] {
            from.send(&frame(destination, pretended, "a lie"));
        }
    }
    from.send(&frame(to.mac(), from.mac(), "the truth"));
    let seen = to.until(|frame| says(frame, "the truth"));
    assert!(!seen.iter().any(|frame| says(frame, "a lie")), "{seen:02x?}");
}

#[test]
fn check_compares_what_the_kernels_bridge_restricts() {
    for (key, flag) in [("portIsolation", "isolated"), ("macspoofchk", "locked")] {
        let mut stage = Stage::empty_without_repairs();
        let restricted = stage.network.clone().with(key, json!(true));
        stage.network = restricted.clone();
        stage.add("one");
        let one = &stage.sandboxes[0];
        let check = || restricted.check(stage.node.namespace(), one.container(), &one.attachment().result);
        check().unwrap();
        let port = stage.node.agent().port("one").unwrap().host_ifname;
        stage.node.namespace().command("bridge", &["link", "set", "dev", &port, flag, "off"]).unwrap();
        let error = check().unwrap_err().to_string();
        assert!(error.contains("not isolated or locked"), "{flag}: {error}");
    }
}
