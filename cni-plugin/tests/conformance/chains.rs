//! shunt among other plugins.

use serde_json::{Value, json};

use crate::runtime::Runtime;

fn then(config: Value, previous: &Value) -> Value {
    let mut config = config;
    config["prevResult"] = previous.clone();
    config
}

#[test]
fn the_reference_plugins_work_after_shunt() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    network["cniVersion"] = json!("1.0.0");
    let result = runtime.call("ADD", "c1", &network).ok();
    let chained = |kind: &str, more: Value| {
        let mut config = json!({ "cniVersion": "1.0.0", "name": "n1", "type": kind });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        then(config, &result)
    };
    let mappings = json!({ "runtimeConfig": { "portMappings": [{ "hostPort": 8080, "containerPort": 80, "protocol": "tcp" }] } });
    let configs = [
        ("tuning", chained("tuning", json!({ "sysctl": { "net.ipv4.conf.eth0.log_martians": "1" } }))),
        ("firewall", chained("firewall", json!({ "ingressPolicy": "open" }))),
        ("portmap", chained("portmap", mappings)),
        ("bandwidth", chained("bandwidth", json!({ "ingressRate": 8000000, "ingressBurst": 800000 }))),
        ("sbr", chained("sbr", json!({}))),
    ];
    for (plugin, config) in &configs {
        let passed = runtime.call_reference(plugin, "ADD", "c1", config).ok();
        assert_eq!(passed["ips"], result["ips"], "{plugin}");
        assert_eq!(passed["interfaces"][0]["name"], "br0", "{plugin}");
    }
    runtime.call("CHECK", "c1", &then(network.clone(), &result)).ok();
    for (plugin, config) in configs.iter().rev() {
        runtime.call_reference(plugin, "DEL", "c1", config).ok();
    }
    runtime.call("DEL", "c1", &then(network, &result)).ok();
    assert!(!runtime.inventory().has("link veth"));
}

#[test]
fn shunt_adopts_the_port_of_a_reference_bridge_and_leaves_it_to_its_maker() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let mut first = runtime.network("n1");
    first["cniVersion"] = json!("1.0.0");
    first["type"] = json!("bridge");
    first["ipam"]["type"] = json!("host-local");
    let made = runtime.call_reference("bridge", "ADD", "c1", &first).ok();
    let second = then(json!({ "cniVersion": "1.0.0", "name": "n1", "type": "shunt" }), &made);
    let passed = runtime.call("ADD", "c1", &second).ok();
    assert_eq!(passed, made, "the result passes through untouched");
    runtime.agent.with(|books| {
        let port = books.ports.values().next().unwrap();
        assert_eq!((port.bridge.name.as_str(), port.ips.len()), ("br0", 2));
    });
    runtime.call("CHECK", "c1", &second).ok();
    runtime.call("DEL", "c1", &second).ok();
    runtime.agent.with(|books| assert!(books.ports.is_empty()));
    assert!(container.command("ip", &["link"]).unwrap().contains("eth0"));
    runtime.call_reference("bridge", "DEL", "c1", &first).ok();
}

#[test]
fn shunt_passes_a_routed_interface_on() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut first = runtime.network("n1");
    first["cniVersion"] = json!("1.0.0");
    first["type"] = json!("ptp");
    first["ipam"]["type"] = json!("host-local");
    let made = runtime.call_reference("ptp", "ADD", "c1", &first).ok();
    let second = then(json!({ "cniVersion": "1.0.0", "name": "n1", "type": "shunt" }), &made);
    assert_eq!(runtime.call("ADD", "c1", &second).ok(), made);
    runtime.call("CHECK", "c1", &second).ok();
    runtime.call("DEL", "c1", &second).ok();
    runtime.call_reference("ptp", "DEL", "c1", &first).ok();
}

#[test]
fn addresses_of_an_ipam_earlier_in_the_chain_are_used() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let mut ipam = runtime.network("n1");
    ipam["type"] = json!("shunt-ipam");
    let addresses = runtime.call("ADD", "c1", &ipam).ok();
    assert_eq!(addresses.get("interfaces"), None);
    let port =
        json!({ "cniVersion": "1.1.0", "name": "n1", "type": "shunt", "bridge": "br0", "isGateway": true });
    let result = runtime.call("ADD", "c1", &then(port.clone(), &addresses)).ok();
    assert_eq!(result["ips"][0]["address"], addresses["ips"][0]["address"]);
    assert_eq!(result["ips"][0]["interface"], 2);
    assert!(container.command("ip", &["address"]).unwrap().contains("10.77.0.2/24"));
    let both = then(runtime.network("n1"), &addresses);
    runtime.call("DEL", "c1", &then(port, &result)).ok();
    assert_eq!(runtime.call("ADD", "c1", &both).error().0, 7, "two IPAMs cannot both be meant");
    runtime.call("DEL", "c1", &ipam).ok();
    assert!(!runtime.inventory().has("lease n1/10."));
}

#[test]
fn plugins_that_have_nothing_to_do_pass_the_result_on() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    network["metadata"] = json!(true);
    let result = runtime.call("ADD", "c1", &network).ok();
    for kind in ["portmap", "shunt-portmap", "bandwidth", "shunt-bandwidth"] {
        let config = json!({ "cniVersion": "1.1.0", "name": "n1", "type": kind });
        assert_eq!(runtime.call("ADD", "c1", &then(config.clone(), &result)).ok(), result, "{kind}");
        assert_eq!(runtime.call("ADD", "c1", &config).error().0, 7, "{kind} alone");
        runtime.call("DEL", "c1", &config).ok();
    }
    let mapped = json!({ "cniVersion": "1.1.0", "name": "n1", "type": "portmap",
        "runtimeConfig": { "portMappings": [{ "hostPort": 80, "containerPort": 80 }] } });
    let mapped = then(mapped, &result);
    let ports = || runtime.agent.with(|books| books.ports.values().next().unwrap().mappings.len());
    assert_eq!(runtime.call("ADD", "c1", &mapped).ok(), result);
    assert_eq!(ports(), 1);
    runtime.call("CHECK", "c1", &mapped).ok();
    runtime.call("DEL", "c1", &mapped).ok();
    assert_eq!(ports(), 0);
    assert_eq!(runtime.call("CHECK", "c1", &mapped).error().0, 999, "it has no such port any more");
}
