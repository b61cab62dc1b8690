//! Another plugin first, shunt after it.

use serde_json::{Value, json};
use shunt_lab::{Network, Sandbox};

use crate::bandwidth::{BURST, RATE, assert_limited};
use crate::stage::{BRIDGE, Stage};

fn reference_bridge(stage: &Stage) -> Network {
    stage.reference("bridge").with("bridge", json!(BRIDGE)).with("isGateway", json!(true))
}

/// Our own plugin for limits, both ways.
fn limits(stage: &Stage) -> Value {
    json!({ "type": "shunt-bandwidth", "agentSocket": stage.node.agent().socket(), "ingressRate": RATE,
        "ingressBurst": BURST, "egressRate": RATE, "egressBurst": BURST })
}

#[test]
fn the_port_of_a_reference_bridge_is_made_fast_and_left_to_its_maker() {
    let Some(stage) = Stage::set() else { return };
    let network = reference_bridge(&stage).then(stage.shunt_second());
    let before = stage.before(&network);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    stage.assert_talk(&one, &two);
    stage.assert_fast(&one, &two);
    stage.remove(&network, &one);
    stage.remove(&network, &two);
    stage.assert_clean(&before);
}

#[test]
fn the_port_of_a_reference_bridge_is_limited_by_a_chained_bandwidth_of_ours() {
    let Some(stage) = Stage::set() else { return };
    let plain = reference_bridge(&stage);
    let network = plain.clone().then(limits(&stage));
    let before = stage.before(&network);
    let [limited, free] = [stage.add(&network, "limited"), stage.add(&plain, "free")];
    let limits = stage.port(&limited).limits;
    assert_eq!((limits.ingress, limits.egress), (Some(RATE.into()), Some(RATE.into())));
    assert_limited(&free, &limited);
    assert_limited(&limited, &free);
    stage.assert_talk(&limited, &free);
    // Somebody takes the limit away: CHECK says so, or it is there again already.
    limited.namespace().command("tc", &["qdisc", "delete", "dev", "eth0", "root"]).unwrap();
    let result = &limited.attachment().result;
    if let Err(error) = network.check(stage.node.namespace(), limited.container(), result) {
        assert!(error.to_string().contains("the limit of what the container sends is missing"), "{error}");
    }
    stage.remove(&network, &limited);
    stage.remove(&plain, &free);
    stage.assert_clean(&before);
}

/// The reference plugins know no GC, so the list that is collected is one of ours alone.
#[test]
fn gc_takes_what_is_ours_off_the_port_of_a_reference_bridge_and_leaves_the_port() {
    let Some(stage) = Stage::set() else { return };
    let network = reference_bridge(&stage).then(limits(&stage));
    let before = stage.before(&network);
    let [stale, kept] = ["stale", "kept"].map(|id| stage.add(&network, id));
    let is_queued = |sandbox: &Sandbox| {
        sandbox.namespace().command("tc", &["qdisc", "show", "dev", "eth0"]).unwrap().contains("tbf")
    };
    assert!(is_queued(&stale) && is_queued(&kept));
    let ours = Network::new("pods", stage.node.plugins(), limits(&stage));
    ours.collect(stage.node.namespace(), &[kept.container()], kept.container()).unwrap();
    let known: Vec<_> = stage.node.agent().ports().unwrap().into_iter().map(|port| port.container).collect();
    assert_eq!(known, [kept.id()]);
    assert!(!is_queued(&stale) && is_queued(&kept));
    stage.assert_talk(&stale, &kept);
    assert_limited(&stale, &kept);
    stage.remove(&network, &stale);
    stage.remove(&network, &kept);
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
