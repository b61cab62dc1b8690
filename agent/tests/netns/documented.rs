//! The README's network configuration, with a real agent: a way out, host ports, and the addresses that are asked for.

use std::net::IpAddr;

use serde_json::{Value, json};
use shunt_lab::{Conversation, Echo, Network, Protocol};

use crate::masquerade::{NODE, OUTSIDE, World};

const README: &str = include_str!("../../../README.md");

/// The README's list; its leases are the world's, and so is its agent.
fn documented(world: &World) -> Network {
    let begin = README.find("{ \"cniVersion\"").unwrap();
    let list: Value =
        serde_json::Deserializer::from_str(&README[begin..]).into_iter().next().unwrap().unwrap();
    let mut ipam = list["plugins"][0]["ipam"].clone();
    ipam["dataDir"] = json!(world.node.leases());
    let asked = json!({ "mac": "02:00:00:00:88:09", "ips": ["10.88.0.9/16"],
        "bandwidth": { "ingressRate": 800_000_000, "ingressBurst": 8_000_000 },
        "portMappings": [{ "hostPort": 8080, "containerPort": 7000, "protocol": "tcp" }] });
    for capability in asked.as_object().unwrap().keys() {
        assert_eq!(
            list["plugins"][0]["capabilities"][capability], true,
            "a runtime hands over no {capability}"
        );
    }
    let network = Network::of_list(&list, world.node.plugins()).with("ipam", ipam);
    network.with("agentSocket", json!(world.node.agent().socket())).with("runtimeConfig", asked)
}

#[test]
fn the_readmes_network_has_a_way_out_and_host_ports() {
    let mut world = World::new();
    world.network = documented(&world);
    world.add("one");
    world.node.settle().unwrap();
    let [sandbox] = &*world.sandboxes else { panic!("one container") };
    let own: IpAddr = [10, 88, 0, 9].into();
    assert_eq!(sandbox.addresses(), [own]);
    assert_eq!(sandbox.attachment().result["cniVersion"], "1.1.0");
    // The host outside knows no way to the container: it is masqueraded.
    let [outside, node]: [IpAddr; 2] = [OUTSIDE[0], NODE[0]].map(|address| address.parse().unwrap());
    let echo = Echo::listen(&world.outside, outside, 7000).unwrap();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        Conversation::open(sandbox.namespace(), protocol, echo.address()).unwrap().chat(20, 1400).unwrap();
    }
    let _served = sandbox.echo(own, 7000).unwrap();
    Conversation::open(&world.outside, Protocol::Tcp, (node, 8080).into()).unwrap().chat(20, 1400).unwrap();
    let ports = world.node.agent().ports().unwrap();
    assert_eq!((&*ports[0].mac, ports[0].limits.ingress), ("02:00:00:00:88:09", Some(800_000_000)));
    sandbox.delete(&world.node, &world.network).unwrap();
}
