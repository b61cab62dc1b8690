//! What is wrong is refused with the right code, and nothing of it stays.

use serde_json::{Value, json};
use shunt_lab::Container;
use shunt_lab::cni::{Call, Refusal};

use crate::stage::{By, MASTER, Stage};

fn config(stage: &Stage, changes: &Value) -> Value {
    let mut config = json!({
        "cniVersion": "1.0.0",
        "name": "vlan10",
        "type": "shunt-vlan",
        "master": MASTER,
        "vlanId": 10,
        "dataplane": "ebpf",
        "agentSocket": stage.here.agent().socket(),
        "ipam": stage.ipam(&stage.here, 10),
    });
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn add(stage: &Stage, container: &Container, config: &Value) -> Result<Value, Refusal> {
    let text = config.to_string();
    let call = Call {
        verb: "ADD",
        container: container.id(),
        netns: container.namespace().path(),
        ifname: "eth0",
        path: stage.here.plugins(),
        plugin: config["type"].as_str().unwrap(),
        config: text.as_bytes(),
    };
    call.run(stage.here.namespace()).unwrap().outcome
}

#[test]
fn configurations_that_make_no_sense_are_refused_and_leave_nothing() {
    let stage = Stage::set();
    let container = Container::create(&stage.lab, "victim").unwrap();
    // Somebody's in the container: as a master it is in another namespace than where it is looked for.
    container.namespace().command("ip", &["link", "add", "inside", "type", "bridge"]).unwrap();
    stage.here.namespace().command("ip", &["link", "add", "bridge", "type", "bridge"]).unwrap();
    let before = stage.here.inventory().unwrap();
    for (changes, code, mentions) in [
        (json!({ "vlanId": 4095 }), 7, "vlanId"),
        (json!({ "vlanId": -1 }), 7, "vlanId"),
        (json!({ "vlanId": "ten" }), 7, "vlanId"),
        (json!({ "vlanId": 0 }), 7, "vlanId"),
        (json!({ "vlanId": 0, "dataplane": "auto", "master": "lo" }), 105, "lo"),
        (json!({ "master": "" }), 7, "master"),
        (json!({ "master": "nowhere" }), 7, "nowhere"),
        (json!({ "master": "inside" }), 7, "inside"),
        (json!({ "master": MASTER, "linkInContainer": true }), 7, MASTER),
        (json!({ "master": "", "linkInContainer": true }), 7, "prevResult"),
        (json!({ "master": "inside", "linkInContainer": true }), 105, "inside"),
        (json!({ "master": "bridge" }), 105, "bridge"),
        (json!({ "master": "lo" }), 105, "lo"),
        (json!({ "mtu": 1501 }), 7, "mtu"),
        (json!({ "mtu": 67 }), 7, "mtu"),
        (json!({ "dataplane": "magic" }), 7, "dataplane"),
        (json!({ "isGateway": true }), 7, "isGateway"),
        (json!({ "type": "shunt", "mode": "vlan", "vlans": { "untagged": 5 } }), 7, "vlans"),
        (json!({ "type": "shunt", "mode": "vlan", "vlanId": 4095 }), 7, "vlanId"),
        (json!({ "type": "shunt-bridge", "mode": "vlan" }), 7, "mode"),
        (json!({ "agentSocket": "/nonexistent" }), 11, "nonexistent"),
        (json!({ "ipam": { "type": "shunt-ipam" } }), 7, "range"),
        (json!({ "ipam": { "type": "nobody" } }), 7, "nobody"),
    ] {
        let refused = add(&stage, &container, &config(&stage, &changes));
        let refusal = refused.expect_err(&changes.to_string());
        assert_eq!(refusal.code, code, "{changes}: {refusal}");
        let text = format!("{} {}", refusal.message, refusal.details);
        assert!(text.contains(mentions), "{changes}: {text:?} does not mention {mentions}");
        let left = stage.here.inventory().unwrap().since(&before);
        assert_eq!(left, Vec::<String>::new(), "after {changes}");
    }
    let inside = container.namespace().command("ip", &["-o", "link"]).unwrap();
    assert!(!inside.contains("eth0"), "{inside}");
}

#[test]
fn addresses_that_are_used_up_leave_no_interface() {
    let stage = Stage::set();
    let [one, two] = ["one", "two"].map(|id| Container::create(&stage.lab, id).unwrap());
    let ranges = json!([[{ "subnet": "10.10.0.0/24", "rangeStart": "10.10.0.9", "rangeEnd": "10.10.0.9" }]]);
    let ipam = json!({ "type": "shunt-ipam", "dataDir": stage.here.leases(), "ranges": ranges });
    let config = config(&stage, &json!({ "ipam": ipam }));
    add(&stage, &one, &config).unwrap();
    let before = stage.here.inventory().unwrap();
    let refusal = add(&stage, &two, &config).unwrap_err();
    assert!(refusal.message.contains("10.10.0"), "{refusal}");
    assert_eq!(stage.here.inventory().unwrap().since(&before), Vec::<String>::new());
    let inside = two.namespace().command("ip", &["-o", "link"]).unwrap();
    assert!(!inside.contains("eth0"), "{inside}");
}

#[test]
fn a_name_that_is_taken_is_refused_and_the_old_one_stays() {
    let stage = Stage::set();
    let container = Container::create(&stage.lab, "victim").unwrap();
    container.namespace().command("ip", &["link", "add", "eth0", "type", "bridge"]).unwrap();
    let before = stage.here.inventory().unwrap();
    let refusal = add(&stage, &container, &config(&stage, &json!({}))).unwrap_err();
    assert!(refusal.message.contains("eth0"), "{refusal}");
    assert_eq!(stage.here.inventory().unwrap().since(&before), Vec::<String>::new());
    container.namespace().command("ip", &["link", "show", "dev", "eth0"]).unwrap();
}

#[test]
fn one_vlan_twice_in_a_chain_is_refused_by_the_kernel() {
    one_vlan_twice_in_a_chain_is_refused(By::Kernel);
}

#[test]
fn one_vlan_twice_in_a_chain_is_refused_by_the_programs() {
    one_vlan_twice_in_a_chain_is_refused(By::Programs);
}

fn one_vlan_twice_in_a_chain_is_refused(by: By) {
    let Some(stage) = Stage::set_by(by) else { return };
    let container = Container::create(&stage.lab, "victim").unwrap();
    let vlan = |master: &str| {
        let mut vlan = config(&stage, &json!({ "linkInContainer": true, "dataplane": by.key() }));
        vlan["master"] = json!(master);
        vlan
    };
    let network = stage.here.network("pods", "cni0", &["10.77.0.0/24"]).then(vlan("")).then(vlan(""));
    let error = network.add(stage.here.namespace(), &container).unwrap_err();
    let refusal = error.downcast_ref::<Refusal>().unwrap();
    assert_eq!(refusal.code, 106, "{refusal}");
    assert_eq!(stage.left(), Vec::<String>::new());
    let inside = container.namespace().command("ip", &["-o", "link"]).unwrap();
    assert!(!inside.contains("eth0"), "{inside}");
}
