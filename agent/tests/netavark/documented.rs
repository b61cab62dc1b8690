//! The example of `docs/podman.md`, as netavark is given it.

use serde_json::{Value, json};
use shunt_lab::{Container, Lab, Node};

use crate::podman::{Netavark, netns, request};

const PAGE: &str = include_str!("../../../docs/podman.md");

/// The network that the page has.
fn example() -> Value {
    let (_, after) = PAGE.split_once("```json\n").unwrap();
    serde_json::from_str(after.split("```").next().unwrap()).unwrap()
}

#[test]
fn the_documented_network_is_what_create_makes_and_containers_are_on_it() {
    let lab = Lab::new().unwrap();
    let node = Node::start(&lab, "node").unwrap();
    let Some(netavark) = Netavark::of(&lab, &node, true) else { return };
    let network = example();
    let same = ["name", "id", "options", "subnets"].map(|key| (key.to_owned(), network[key].clone()));
    let mut asked: Value = json!({ "network_interface": null, "dns_enabled": true, "ipv6_enabled": false });
    asked.as_object_mut().unwrap().extend(same);
    for subnet in asked["subnets"].as_array_mut().unwrap() {
        subnet.as_object_mut().unwrap().remove("gateway");
    }
    let mut made = netavark.create(node.namespace(), 0, &asked).unwrap();
    made.as_object_mut().unwrap().remove("created").expect("netavark says when");
    assert_eq!(made, network);

    let container = Container::create(&lab, "c1").unwrap();
    let request = request(&network, "c1", &["10.89.5.7", "fd89:5::7"], &[]);
    netavark.run(node.namespace(), &["setup", netns(&container)], &request).unwrap();
    let ports = node.agent().ports().unwrap();
    assert_eq!(ports[0].ips.len(), 2, "{ports:?}");
    assert!(ports[0].restrictions.len() >= 2, "{ports:?}");
    let link = container.namespace().command("ip", &["link", "show", "eth0"]).unwrap();
    assert!(link.contains("mtu 1450"), "{link}");
    let route = container.namespace().command("ip", &["route", "show", "default"]).unwrap();
    assert!(route.contains("via 10.89.5.1") && route.contains("metric 100"), "{route}");
    netavark.run(node.namespace(), &["teardown", netns(&container)], &request).unwrap();
}
