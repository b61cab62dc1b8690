//! STATUS says whether an ADD would work, and why not.

use serde_json::json;

use crate::runtime::Runtime;

#[test]
fn status_follows_the_agents_health() {
    let runtime = Runtime::new();
    let network = runtime.network("n1");
    runtime.call("STATUS", "", &network).ok();
    runtime.agent.with(|books| books.reasons.push("programs are not loaded".to_owned()));
    let (code, text) = runtime.call("STATUS", "", &network).error();
    assert!(code == 50 && text.contains("programs are not loaded"), "{text}");
    runtime.agent.with(|books| books.reasons.clear());
    runtime.call("STATUS", "", &network).ok();
}

#[test]
fn status_without_an_agent_is_not_available() {
    let runtime = Runtime::new();
    let mut network = runtime.network("n1");
    network["agentSocket"] = json!("/nonexistent/agent.sock");
    let (code, text) = runtime.call("STATUS", "", &network).error();
    assert!(code == 50 && text.contains("/nonexistent/agent.sock"), "{text}");
}

#[test]
fn status_asks_the_built_in_ipam_too() {
    let runtime = Runtime::new();
    let mut network = runtime.network("n1");
    network["ipam"]["ranges"] = json!([[{ "subnet": "10.77.0.0/30" }]]);
    runtime.call("STATUS", "", &network).ok();
    let _container = runtime.container("c1");
    runtime.call("ADD", "c1", &network).ok();
    let (code, text) = runtime.call("STATUS", "", &network).error();
    assert!(code == 50 && text.contains("1 of 1 are in use"), "{text}");
}

#[test]
fn status_asks_for_ranges_only_where_no_add_would_bring_them() {
    let runtime = Runtime::new();
    let mut network = runtime.network("n1");
    network["ipam"].as_object_mut().unwrap().remove("ranges");
    let (code, text) = runtime.call("STATUS", "", &network).error();
    assert!(code == 50 && text.contains("no address ranges"), "{text}");
    network["capabilities"] = json!({ "ipRanges": true });
    runtime.call("STATUS", "", &network).ok();
    network["runtimeConfig"] = json!({ "ipRanges": [[{ "subnet": "10.77.0.0/30" }]] });
    runtime.call("STATUS", "", &network).ok();
    let _container = runtime.container("c1");
    runtime.call("ADD", "c1", &network).ok();
    let (code, text) = runtime.call("STATUS", "", &network).error();
    assert!(code == 50 && text.contains("1 of 1 are in use"), "{text}");
}

#[test]
fn a_plugin_behind_another_one_needs_the_agent_too() {
    let runtime = Runtime::new();
    for kind in ["shunt-portmap", "shunt-bandwidth"] {
        let mut config = json!({ "cniVersion": "1.1.0", "name": "n1", "type": kind });
        runtime.call("STATUS", "", &config).ok();
        runtime.agent.with(|books| books.reasons.push("programs are not loaded".to_owned()));
        let (code, text) = runtime.call("STATUS", "", &config).error();
        assert!(code == 50 && text.contains("programs are not loaded"), "{kind}: {text}");
        runtime.agent.with(|books| books.reasons.clear());
        config["agentSocket"] = json!("/nonexistent/agent.sock");
        assert_eq!(runtime.call("STATUS", "", &config).error().0, 50, "{kind}");
    }
}
