//! What a configuration takes from a port reaches the agent, and the kernel bridge where it has a word for it.

use serde_json::{Value, json};
use shunt_agent_api::{Restrictions, Vlans};

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

#[test]
fn a_gateway_in_a_vlan_is_refused_by_name() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    network["vlan"] = json!(10);
    network["isGateway"] = json!(true);
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert_eq!(code, 100, "{text}");
    assert!(text.contains("isGateway"), "{text}");
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
