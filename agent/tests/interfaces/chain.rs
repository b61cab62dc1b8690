//! VLANs on the interface that the chain's first plugin made.

use std::net::IpAddr;

use serde_json::{Value, json};
use shunt_agent_api::interface_name;
use shunt_lab::cni::{Call, Refusal};
use shunt_lab::{Container, Network, Sandbox};

use crate::stage::{By, Stage, until};
use crate::wire::{BROADCAST, Wire, arp, frame, says};

/// The chain of the plugins' own example: a main plugin, and two VLANs on its interface.
fn chain(stage: &Stage, by: By) -> Network {
    let main = stage.here.network("pods", "cni0", &["10.77.0.0/24", "fd77::/64"]);
    main.then(vlan(stage, 10, by)).then(vlan(stage, 20, by))
}

fn vlan(stage: &Stage, vid: u16, by: By) -> Value {
    json!({
        "type": "shunt-vlan",
        "master": "",
        "linkInContainer": true,
        "vlanId": vid,
        "dataplane": by.key(),
        "agentSocket": stage.here.agent().socket(),
        "ipam": stage.ipam(&stage.here, vid),
    })
}

fn names(sandbox: &Sandbox) -> Vec<String> {
    let interfaces = sandbox.attachment().result["interfaces"].as_array().unwrap();
    interfaces.iter().map(|interface| interface["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_chain_of_two_vlans_by_the_kernel_works_as_in_the_example() {
    a_chain_of_two_vlans_works_as_in_the_example(By::Kernel);
}

#[test]
fn a_chain_of_two_vlans_by_the_programs_works_as_in_the_example() {
    a_chain_of_two_vlans_works_as_in_the_example(By::Programs);
}

fn a_chain_of_two_vlans_works_as_in_the_example(by: By) {
    let Some(stage) = Stage::set_by(by) else { return };
    let network = chain(&stage, by);
    let [one, two] = ["one", "two"].map(|id| stage.start(&stage.here, &network, id));
    assert_eq!(names(&one)[2..], ["eth0", "eth0.10", "eth0.20"]);
    let ips = one.attachment().result["ips"].as_array().unwrap();
    let places: Vec<_> = ips.iter().map(|ip| ip["interface"].as_u64().unwrap()).collect();
    assert_eq!(places, [2, 2, 3, 3, 4, 4], "each interface has its own addresses: {ips:?}");
    stage.assert_talk(&one, &two, &[0, 1, 2, 3, 4, 5]);

    // What one VLAN hears the other does not.
    let [ten, twenty] = ["eth0.10", "eth0.20"].map(|name| Wire::tap(one.namespace(), name));
    let [there, other] = ["eth0.10", "eth0.20"].map(|name| Wire::tap(two.namespace(), name));
    ten.send(&frame(BROADCAST, ten.mac(), "for VLAN 10"));
    twenty.send(&frame(BROADCAST, twenty.mac(), "for VLAN 20"));
    assert!(!other.until(|frame| says(frame, "for VLAN 20")).iter().any(|frame| says(frame, "for VLAN 10")));
    there.until(|frame| says(frame, "for VLAN 10"));

    network.collect(stage.here.namespace(), &[one.container(), two.container()], one.container()).unwrap();
    stage.check(&stage.here, &network, &one);
    for sandbox in [&one, &two] {
        for _ in 0..2 {
            sandbox.delete(&stage.here, &network).unwrap();
        }
    }
    stage.assert_clean();
}

#[test]
fn vlans_on_a_trunk_port_are_those_of_the_trunk() {
    let stage = Stage::set();
    let main = stage.here.network("pods", "cni0", &["10.77.0.0/24"]).with("isDefaultGateway", json!(false));
    let trunk = main.clone().with("vlans", json!({ "untagged": 5, "tagged": [10, 30] }));
    let network = trunk.then(vlan(&stage, 10, By::Programs)).then(vlan(&stage, 20, By::Programs));
    let [one, two] = ["one", "two"].map(|id| stage.start(&stage.here, &network, id));
    stage.assert_talk(&one, &two, &[0, 1, 2]);
    // 20 is not the port's.
    let twenty = Wire::tap(one.namespace(), "eth0.20");
    twenty.send(&frame(BROADCAST, twenty.mac(), "for VLAN 20"));
    until("the trunk drops VLAN 20", || {
        let drops = stage.here.agent().drops().unwrap();
        drops.iter().any(|drop| drop.reason == "not_member" && drop.packets > 0)
    });
    // An access port of VLAN 10 is in it, too.
    let access = main.with("vlan", json!(10)).with("ipam", stage.ipam(&stage.here, 10));
    let three = stage.start(&stage.here, &access, "three");
    stage.assert_served(&three, &one, one.addresses()[1]);
    stage.assert_served(&two, &three, three.addresses()[0]);
}

#[test]
fn interfaces_may_be_deleted_in_any_order() {
    let stage = Stage::set();
    let main = stage.here.network("pods", "cni0", &["10.77.0.0/24"]);
    let [ten, twenty] =
        [10, 20].map(|vid| Network::new("pods", stage.here.plugins(), vlan(&stage, vid, By::Programs)));
    let whole = main.clone().then(vlan(&stage, 10, By::Programs)).then(vlan(&stage, 20, By::Programs));
    for (id, order) in [("one", [&main, &ten, &twenty]), ("two", [&ten, &main, &twenty])] {
        let sandbox = stage.start(&stage.here, &whole, id);
        for network in order {
            sandbox.delete(&stage.here, network).unwrap();
        }
        stage.assert_clean();
    }
}

#[test]
fn a_parent_that_is_gone_takes_its_vlans_along() {
    let stage = Stage::set();
    let main = stage.here.network("pods", "cni0", &["10.77.0.0/24"]);
    let whole = main.clone().then(vlan(&stage, 10, By::Programs));
    let sandbox = stage.start(&stage.here, &whole, "one");
    sandbox.namespace().command("ip", &["link", "del", "eth0"]).unwrap();
    let list = || sandbox.namespace().command("ip", &["-o", "link"]).unwrap();
    until("eth0.10 goes with eth0", || !list().contains("eth0.10"));
    sandbox.delete(&stage.here, &whole).unwrap();
    stage.assert_clean();
}

#[test]
fn a_name_that_is_too_long_is_shortened_and_found_again() {
    let stage = Stage::set();
    let container = Container::create(&stage.lab, "long").unwrap();
    let parent = "fifteen-letters";
    let mut main = json!({
        "cniVersion": "1.0.0", "name": "pods", "type": "shunt", "bridge": "cni0",
        "agentSocket": stage.here.agent().socket(), "ipam": stage.ipam(&stage.here, 77),
    });
    let mut second = vlan(&stage, 10, By::Programs);
    second["cniVersion"] = json!("1.0.0");
    second["name"] = json!("pods");
    let call = |verb: &str, config: &Value| {
        let text = config.to_string();
        let call = Call {
            verb,
            container: container.id(),
            netns: container.namespace().path(),
            ifname: parent,
            path: stage.here.plugins(),
            plugin: config["type"].as_str().unwrap(),
            config: text.as_bytes(),
        };
        call.run(stage.here.namespace()).unwrap().outcome.unwrap()
    };
    second["prevResult"] = call("ADD", &main);
    let result = call("ADD", &second);
    let name = result["interfaces"][3]["name"].as_str().unwrap();
    assert_eq!((name, name.len()), (interface_name(parent, 10).as_str(), 15));
    container.namespace().command("ip", &["link", "show", "dev", name]).unwrap();
    second["prevResult"] = result.clone();
    main["prevResult"] = result;
    for config in [&second, &main] {
        call("CHECK", config);
    }
    for config in [&second, &main] {
        call("DEL", config);
    }
    stage.assert_clean();
}

#[test]
fn a_parent_that_is_held_to_its_addresses_speaks_for_its_vlans_too() {
    let stage = Stage::set();
    let main = stage.here.network("pods", "cni0", &["10.77.0.0/24", "fd77::/64"]);
    let checked = main.with("ipspoofchk", json!(true)).with("isDefaultGateway", json!(false));
    let ten = Network::new("pods", stage.here.plugins(), vlan(&stage, 10, By::Programs));
    // As the kernel's devices would not tell the agent, `auto` takes programs where the kernel has devices as well.
    let mut second = vlan(&stage, 10, By::Programs);
    second["dataplane"] = json!("auto");
    let network = checked.clone().with("vlans", json!({ "untagged": 5, "tagged": [10] })).then(second);
    let [one, two] = ["one", "two"].map(|id| stage.start(&stage.here, &network, id));
    stage.assert_talk(&one, &two, &[0, 1, 2, 3]);
    let checks = |mac: [u8; 6], address: [u8; 4]| {
        let tap = Wire::tap(two.namespace(), "eth0.10");
        let from = Wire::tap(one.namespace(), "eth0.10");
        from.send(&arp(BROADCAST, mac, 1, address, [10, 10, 1, 99]));
        from.send(&frame(BROADCAST, from.mac(), "the last"));
        let heard = tap.until(|frame| says(frame, "the last"));
        heard.iter().any(|frame| frame.get(28..32) == Some(&address[..]) && frame[6..12] == mac)
    };
    let mac = Wire::tap(one.namespace(), "eth0.10").mac();
    let IpAddr::V4(own) = one.addresses()[2] else { panic!("{:?}", one.addresses()) };
    let IpAddr::V4(others) = two.addresses()[2] else { panic!("{:?}", two.addresses()) };
    assert!(checks(mac, own.octets()), "its own address on the VLAN");
    assert!(!checks(mac, others.octets()), "the neighbour's address on the VLAN");

    // A new agent knows them as well, and no longer than the interface is there.
    let mut stage = stage;
    stage.here.agent_mut().kill().unwrap();
    stage.here.restart_agent().unwrap();
    stage.assert_talk(&one, &two, &[0, 2]);
    one.delete(&stage.here, &ten).unwrap();
    let status = stage.here.agent().status().unwrap();
    assert_eq!((status.attachments, status.repairs), (3, 0));
    for sandbox in [&one, &two] {
        sandbox.delete(&stage.here, &network).unwrap();
    }
    stage.assert_clean();
}

#[test]
fn a_device_of_the_kernels_on_a_parent_that_is_held_to_its_addresses_is_refused() {
    let stage = Stage::set();
    let main = stage.here.network("pods", "cni0", &["10.77.0.0/24"]).with("ipspoofchk", json!(true));
    let container = Container::create(&stage.lab, "one").unwrap();
    let network = main.then(vlan(&stage, 10, By::Kernel));
    let error = network.add(stage.here.namespace(), &container).unwrap_err();
    let refusal = error.downcast_ref::<Refusal>().unwrap();
    let text = format!("{} {}", refusal.message, refusal.details);
    assert!(refusal.code == 7 && text.contains("ipspoofchk"), "{refusal}");
    assert_eq!(stage.left(), Vec::<String>::new());
}
