//! Interfaces on a master of the node's.

use serde_json::json;
use shunt_lab::Sandbox;

use crate::stage::{By, MASTER, Stage};
use crate::wire::{BROADCAST, Wire, frame, says, tag, tagged};

#[test]
fn a_vlan_by_the_kernel_reaches_the_next_node() {
    a_vlan_reaches_the_next_node(By::Kernel);
}

#[test]
fn a_vlan_by_the_programs_reaches_the_next_node() {
    a_vlan_reaches_the_next_node(By::Programs);
}

fn a_vlan_reaches_the_next_node(by: By) {
    let Some(stage) = Stage::set_by(by) else { return };
    let networks = [&stage.here, &stage.there].map(|node| stage.network(node, 10, by));
    let one = stage.start(&stage.here, &networks[0], "one");
    let two = stage.start(&stage.there, &networks[1], "two");
    let interfaces = &one.attachment().result["interfaces"];
    assert_eq!((interfaces[0]["name"].as_str(), interfaces[1].is_null()), (Some("eth0"), true));
    assert_eq!(one.attachment().result["ips"][0]["interface"], json!(0));
    stage.assert_talk(&one, &two, &[0, 1]);
    for (node, network, sandbox) in [(&stage.here, &networks[0], &one), (&stage.there, &networks[1], &two)] {
        for _ in 0..2 {
            sandbox.delete(node, network).unwrap();
        }
    }
    stage.assert_clean();
}

#[test]
fn shunt_in_the_mode_vlan_makes_the_same_interface() {
    let stage = Stage::set();
    let network = stage.network(&stage.here, 10, By::Programs);
    let as_shunt = network.clone().with("type", json!("shunt")).with("mode", json!("vlan"));
    let one = stage.start(&stage.here, &as_shunt, "one");
    let two = stage.start(&stage.here, &network, "two");
    stage.assert_talk(&one, &two, &[0, 1]);
    one.delete(&stage.here, &as_shunt).unwrap();
    two.delete(&stage.here, &network).unwrap();
    stage.assert_clean();
}

#[test]
fn containers_by_programs_and_by_the_kernel_are_in_one_vlan() {
    let Some(stage) = Stage::set_by(By::Kernel) else { return };
    let one = stage.start(&stage.here, &stage.network(&stage.here, 10, By::Programs), "one");
    let two = stage.start(&stage.there, &stage.network(&stage.there, 10, By::Kernel), "two");
    stage.assert_talk(&one, &two, &[0, 1]);
}

#[test]
fn two_containers_of_one_vlan_talk_without_leaving_the_node() {
    let stage = Stage::set();
    let network = stage.network(&stage.here, 10, By::Programs);
    let [one, two] = ["one", "two"].map(|id| stage.start(&stage.here, &network, id));
    let beyond = Wire::tap(stage.there.namespace(), MASTER);
    stage.assert_talk(&one, &two, &[0, 1]);
    let macs = [&one, &two].map(|sandbox| Wire::tap(sandbox.namespace(), "eth0").mac());
    let left = beyond.until_silence();
    let between = left.iter().find(|frame| macs.iter().any(|mac| frame[..6] == *mac));
    assert!(between.is_none(), "it has left the node: {between:02x?}");
    for id in ["one", "two"] {
        let port = stage.here.agent().port(id).unwrap();
        assert!(port.from.fast > 100 && port.to.fast > 100, "{port:?}");
        assert_eq!((port.from.kernel, port.from.dropped, port.vlan.untagged), (0, 0, 10), "{port:?}");
    }
}

#[test]
fn what_is_not_of_its_vlan_or_not_for_it_reaches_nobody() {
    let stage = Stage::set();
    let [red, blue] = [10, 20].map(|vid| stage.network(&stage.here, vid, By::Programs));
    let [one, two] = ["one", "two"].map(|id| stage.start(&stage.here, &red, id));
    let three = stage.start(&stage.here, &blue, "three");
    let tap = |sandbox: &Sandbox| Wire::tap(sandbox.namespace(), "eth0");
    let [one, two, three] = [&one, &two, &three].map(tap);
    let beyond = Wire::tap(stage.there.namespace(), MASTER);

    beyond.send(&tagged(20, frame(one.mac(), beyond.mac(), "VLAN 20 for one of 10")));
    beyond.send(&frame(one.mac(), beyond.mac(), "no tag"));
    beyond.send(&tagged(0xe000, frame(BROADCAST, beyond.mac(), "a priority alone")));
    beyond.send(&tagged(11, frame(BROADCAST, beyond.mac(), "VLAN 11")));
    beyond.send(&tagged(0xa00a, frame(one.mac(), beyond.mac(), "for one")));
    beyond.send(&tagged(10, frame(BROADCAST, beyond.mac(), "for VLAN 10")));
    beyond.send(&tagged(20, frame(BROADCAST, beyond.mac(), "for VLAN 20")));
    let by_wire = |frames: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
        frames.into_iter().filter(|frame| frame[6..12] == beyond.mac()).collect()
    };
    let heard = by_wire(one.until(|frame| says(frame, "for VLAN 10")));
    assert!(matches!(&heard[..], [one] if says(one, "for one") && tag(one).is_none()), "{heard:02x?}");
    assert!(by_wire(two.until(|frame| says(frame, "for VLAN 10"))).is_empty());
    assert!(by_wire(three.until(|frame| says(frame, "for VLAN 20"))).is_empty());

    // What the containers send: neighbours get it as it is, the wire gets it with its tag, a tag of their own nobody.
    one.send(&tagged(20, frame(BROADCAST, one.mac(), "a tag of its own")));
    one.send(&frame(two.mac(), one.mac(), "for two"));
    one.send(&frame(BROADCAST, one.mac(), "for all of 10"));
    let heard = two.until(|frame| says(frame, "for all of 10"));
    assert!(heard.iter().any(|frame| says(frame, "for two")), "{heard:02x?}");
    three.send(&frame(BROADCAST, three.mac(), "for all of 20"));
    let seen = beyond.until(|frame| says(frame, "for all of 20") && tag(frame) == Some(20));
    let tags = |text: &str| -> Vec<_> {
        seen.iter().filter(|frame| says(frame, text)).map(|frame| tag(frame)).collect()
    };
    assert_eq!(tags("for all of 10"), [Some(10)]);
    assert_eq!((tags("a tag of its own"), tags("for two")), (Vec::new(), Vec::new()));
}
