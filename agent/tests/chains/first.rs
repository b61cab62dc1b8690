//! Another plugin first, shunt after it.

use serde_json::json;

use crate::stage::{BRIDGE, Stage};

#[test]
fn the_port_of_a_reference_bridge_is_made_fast_and_left_to_its_maker() {
    let Some(stage) = Stage::set() else { return };
    let bridge = stage.reference("bridge").with("bridge", json!(BRIDGE)).with("isGateway", json!(true));
    let network = bridge.then(stage.shunt_second());
    let before = stage.before(&network);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    stage.assert_talk(&one, &two);
    stage.assert_fast(&one, &two);
    stage.remove(&network, &one);
    stage.remove(&network, &two);
    stage.assert_clean(&before);
}

/// There is no bridge to be fast on, and nothing to do: the kernel routes.
#[test]
fn a_reference_ptp_is_passed_on_and_its_containers_talk() {
    let Some(stage) = Stage::set() else { return };
    let network = stage.reference("ptp").then(stage.shunt_second());
    let before = stage.before(&network);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    stage.assert_talk(&one, &two);
    stage.remove(&network, &one);
    stage.remove(&network, &two);
    stage.assert_clean(&before);
}

#[test]
fn addresses_of_an_ipam_alone_are_given_to_the_interface_that_shunt_makes() {
    let Some(stage) = Stage::set() else { return };
    let mut shunt = stage.shunt_second();
    shunt["bridge"] = json!(BRIDGE);
    shunt["isGateway"] = json!(true);
    let network = stage.reference("host-local").then(shunt);
    let before = stage.before(&network);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    let addresses = one.namespace().command("ip", &["address", "show", "eth0"]).unwrap();
    assert!(addresses.contains(&format!("{}/24", one.attachment().ipv4().unwrap())), "{addresses}");
    stage.assert_talk(&one, &two);
    stage.assert_fast(&one, &two);
    stage.remove(&network, &one);
    stage.remove(&network, &two);
    stage.assert_clean(&before);
}
