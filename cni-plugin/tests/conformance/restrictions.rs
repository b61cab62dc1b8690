//! What a configuration takes from a port reaches the agent, and the kernel bridge where it has a word for it.

use serde_json::{Value, json};
use shunt_agent_api::{ErrorKind, Restrictions, VlanGateway, Vlans};

use crate::runtime::Runtime;

/// The flag of the one bridge port of the node, as the kernel has it.
fn is_isolated(runtime: &Runtime) -> bool {
    let text = runtime.node.command("ip", &["-json", "-details", "link", "show", "master", "br0"]).unwrap();
    let links: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(links.as_array().unwrap().len(), 1, "{links}");
    links[0]["linkinfo"]["info_slave_data"]["isolated"].as_bool().unwrap()
}

#[test]
fn restrictions_are_handed_to_the_agent_and_compared_by_check() {
    for (key, restrictions) in [
        ("portIsolation", Restrictions { isolated: true, ..Restrictions::default() }),
        ("macspoofchk", Restrictions { mac_check: true, ..Restrictions::default() }),
        ("MacSpoofChk", Restrictions { mac_check: true, ..Restrictions::default() }),
        ("ipspoofchk", Restrictions { ip_check: true, ..Restrictions::default() }),
        ("trusted", Restrictions::default()),
    ] {
        let runtime = Runtime::new();
        let _container = runtime.container("c1");
        let mut network = runtime.network("n1");
        network[key] = json!(true);
        network["prevResult"] = runtime.call("ADD", "c1", &network).ok();
        runtime.agent.with(|books| {
            let handed: Vec<_> = books.ports.values().map(|port| port.restrictions.clone()).collect();
            assert_eq!(handed, std::slice::from_ref(&restrictions), "{key}");
        });
        assert_eq!(is_isolated(&runtime), restrictions.isolated, "{key}");
        runtime.call("CHECK", "c1", &network).ok();
        runtime.call("DEL", "c1", &network).ok();
    }
}

#[test]
fn vlans_are_handed_to_the_agent_and_the_bridge_is_told_to_keep_out() {
    let vlans = |untagged, tagged: &[u16]| Some(Vlans { untagged, tagged: tagged.to_vec(), default: false });
    for (key, value, expected) in [
        ("vlan", json!(10), vlans(Some(10), &[])),
        ("vlanTrunk", json!([{ "id": 7 }, { "minID": 20, "maxID": 22 }]), vlans(Some(1), &[7, 20, 21, 22])),
        ("vlans", json!({ "Untagged": 1234, "tagged": [5, 6, 7] }), vlans(Some(1234), &[5, 6, 7])),
    ] {
        let runtime = Runtime::new();
        let _container = runtime.container("c1");
        let mut network = runtime.network("n1");
        network[key] = value;
        network["isGateway"] = json!(false);
        network["isDefaultGateway"] = json!(false);
        network["prevResult"] = runtime.call("ADD", "c1", &network).ok();
        runtime.agent.with(|books| {
            let handed: Vec<_> = books.ports.values().map(|port| port.restrictions.vlans.clone()).collect();
            assert_eq!(handed, std::slice::from_ref(&expected), "{key}");
        });
        let text = runtime.node.command("bridge", &["-json", "-details", "link", "show"]).unwrap();
        let links: Value = serde_json::from_str(&text).unwrap();
        for (flag, set) in [
            ("locked", true),
            ("learning", false),
            ("flood", false),
            ("mcast_flood", false),
            ("bcast_flood", false),
        ] {
            assert_eq!(links[0][flag], json!(set), "{key} {flag}: {text}");
        }
        runtime.call("CHECK", "c1", &network).ok();
        runtime.call("DEL", "c1", &network).ok();
    }
}

/// What an agent makes of a VLAN's gateway: an interface of the node with its addresses.
fn make_gateway(runtime: &Runtime, name: &str) {
    for arguments in [
        &["link", "add", name, "type", "veth", "peer", "name", "gw0"][..],
        &["link", "set", name, "up"],
        &["address", "add", "10.77.0.1/24", "dev", name],
        &["address", "add", "fd77::1/64", "dev", name, "nodad"],
    ] {
        runtime.node.command("ip", arguments).unwrap();
    }
}

#[test]
fn a_gateway_in_a_vlan_is_the_agents_to_make_and_the_plugins_to_tell_of() {
    for (key, value, name) in [
        ("vlan", json!(10), "br0.10"),
        ("vlans", json!({ "untagged": 10, "tagged": [20] }), "br0.10"),
        ("vlanTrunk", json!([{ "id": 7 }]), "br0.1"),
    ] {
        let runtime = Runtime::new();
        let container = runtime.container("c1");
        let mut network = runtime.network("n1");
        network[key] = value;
        network["forceAddress"] = json!(true);
        make_gateway(&runtime, name);
        let result = runtime.call("ADD", "c1", &network).ok();
        runtime.agent.with(|books| {
            let service = &books.ports.values().next().unwrap().service;
            let addresses = vec!["10.77.0.1/24".to_owned(), "fd77::1/64".to_owned()];
            let wanted = VlanGateway { addresses, force_address: true, mac: String::new() };
            assert_eq!((&service.gateways, &service.vlan_gateway), (&Vec::new(), &Some(wanted)), "{key}");
        });
        let shown = runtime.node.command("ip", &["-brief", "address", "show", "dev", "br0"]).unwrap();
        assert!(!shown.contains("10.77.0.1") && !shown.contains("fd77::1"), "{shown}");
        let routes = container.command("ip", &["route"]).unwrap();
        assert!(routes.contains("default via 10.77.0.1"), "{routes}");
        for setting in ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"] {
            let path = format!("/proc/sys/{setting}");
            assert_eq!(runtime.node.enter(|| std::fs::read_to_string(&path).unwrap()).unwrap().trim(), "1");
        }
        let interfaces: Vec<_> = result["interfaces"].as_array().unwrap().iter().collect();
        assert_eq!((interfaces.len(), &interfaces[3]["name"]), (4, &json!(name)), "{result}");
        assert_eq!((&result["ips"][0]["interface"], &interfaces[2]["name"]), (&json!(2), &json!("eth0")));

        network["prevResult"] = result.clone();
        runtime.call("CHECK", "c1", &network).ok();
        runtime.node.command("ip", &["address", "del", "10.77.0.1/24", "dev", name]).unwrap();
        let (code, text) = runtime.call("CHECK", "c1", &network).error();
        assert_eq!(code, 999, "{text}");
        assert!(
            text.contains(&format!("`{name}` does not have the gateway's address 10.77.0.1/24")),
            "{text}"
        );
        runtime.call("FINALIZE", "c1", &network).ok();
        runtime.call("CHECK", "c1", &network).ok();

        let mut updated = network.clone();
        updated["updateExisting"] = json!(true);
        updated.as_object_mut().unwrap().remove("prevResult");
        let again = runtime.call("ADD", "c1", &updated).ok();
        assert_eq!(again["interfaces"], result["interfaces"]);
        runtime.call("DEL", "c1", &network).ok();
    }
}

#[test]
fn a_gateway_that_the_agent_refuses_leaves_nothing() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    runtime.call("INIT", "c1", &network).ok();
    network["vlan"] = json!(10);
    let before = runtime.inventory();
    runtime.agent.with(|books| books.refuse_attach = Some(ErrorKind::Gateway));
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert_eq!(code, 999, "{text}");
    runtime.call("DEL", "c1", &network).ok();
    runtime.assert_nothing_new(&before);
}

#[test]
fn an_isolated_port_in_hairpin_mode_is_both() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    network["portIsolation"] = json!(true);
    network["hairpinMode"] = json!(true);
    runtime.call("ADD", "c1", &network).ok();
    let text = runtime.node.command("bridge", &["-json", "-details", "link", "show"]).unwrap();
    let links: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&links[0]["isolated"], &links[0]["hairpin"]), (&json!(true), &json!(true)), "{text}");
    runtime.call("DEL", "c1", &network).ok();
}

#[test]
fn a_chained_configuration_restricts_the_port_that_another_plugin_made() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut reference = runtime.network("n1");
    reference["type"] = json!("bridge");
    reference["cniVersion"] = json!("1.0.0");
    reference["ipam"]["type"] = json!("host-local");
    let made = runtime.call_reference("bridge", "ADD", "c1", &reference).ok();
    let chained = json!({ "cniVersion": "1.0.0", "name": "n1", "type": "shunt", "bridge": "br0",
        "portIsolation": true, "prevResult": made });
    runtime.call("ADD", "c1", &chained).ok();
    assert!(is_isolated(&runtime));
    runtime.agent.with(|books| assert!(books.ports.values().all(|port| port.restrictions.isolated)));
    runtime.call("CHECK", "c1", &chained).ok();
    runtime.call("DEL", "c1", &chained).ok();
    runtime.call_reference("bridge", "DEL", "c1", &reference).ok();
}
