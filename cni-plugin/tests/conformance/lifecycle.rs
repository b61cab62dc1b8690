//! An attachment from ADD to DEL, as the kernel sees it.

use serde_json::{Value, json};

use crate::runtime::Runtime;

#[test]
fn add_makes_what_the_result_says_and_del_leaves_nothing() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let network = runtime.network("n1");
    runtime.call("INIT", "c1", &network).ok();
    let before = runtime.inventory();
    let result = runtime.call("ADD", "c1", &network).ok();
    assert_eq!(result["interfaces"][0]["name"], "br0");
    assert_eq!(result["interfaces"][2]["name"], "eth0");
    assert_eq!(result["interfaces"][2]["mtu"], 1500);
    assert_eq!(result["ips"][1], json!({ "address": "fd77::2/64", "gateway": "fd77::1", "interface": 2 }));
    let addresses = container.command("ip", &["-brief", "address", "show", "dev", "eth0"]).unwrap();
    assert!(addresses.contains("10.77.0.2/24") && addresses.contains("fd77::2/64"), "{addresses}");
    let mac = result["interfaces"][2]["mac"].as_str().unwrap();
    assert!(container.command("ip", &["link", "show", "dev", "eth0"]).unwrap().contains(mac));
    runtime.agent.with(|books| {
        let port = books.ports.values().next().unwrap();
        assert!(port.peer_up && port.mac == mac && port.bridge.name == "br0");
    });
    let host = result["interfaces"][1]["name"].as_str().unwrap();
    for (place, name) in [(&container, "eth0"), (&runtime.node, host)] {
        let link = place.command("ip", &["-details", "link", "show", "dev", name]).unwrap();
        assert!(link.contains("numtxqueues 1 ") && link.contains("numrxqueues 1 "), "{link}");
    }
    // The bridge answers: packets pass both ways.
    assert!(container.command("busybox", &["ping", "-c", "1", "-W", "2", "10.77.0.1"]).is_ok());
    let mut checked = network.clone();
    checked["prevResult"] = result;
    assert_eq!(runtime.call("CHECK", "c1", &checked).ok(), Value::Null);
    assert_eq!(runtime.call("DEL", "c1", &checked).ok(), Value::Null);
    assert_eq!(runtime.call("DEL", "c1", &network).ok(), Value::Null);
    runtime.node.command("ip", &["address", "flush", "dev", "br0"]).unwrap();
    runtime.assert_nothing_new(&before);
    assert!(!container.command("ip", &["link"]).unwrap().contains("eth0"));
}

#[test]
fn check_names_what_is_wrong_and_finalize_puts_it_right() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let mut network = runtime.network("n1");
    let result = runtime.call("ADD", "c1", &network).ok();
    let host = result["interfaces"][1]["name"].as_str().unwrap().to_owned();
    network["prevResult"] = result;
    let breaks: [(bool, Vec<&str>, &str); 6] = [
        (true, vec!["address", "del", "10.77.0.2/24", "dev", "eth0"], "address 10.77.0.2/24 is missing"),
        (true, vec!["route", "del", "default"], "0.0.0.0/0 via 10.77.0.1 is missing"),
        (true, vec!["link", "set", "eth0", "down"], "`eth0` is down"),
        (false, vec!["link", "set", &host, "nomaster"], "is not a port of bridge `br0`"),
        (false, vec!["link", "set", &host, "down"], "is down"),
        (false, vec!["address", "del", "10.77.0.1/24", "dev", "br0"], "gateway's address 10.77.0.1/24"),
    ];
    for (inside, command, complaint) in breaks {
        let place = if inside { &container } else { &runtime.node };
        place.command("ip", &command).unwrap();
        let (code, text) = runtime.call("CHECK", "c1", &network).error();
        assert!(code == 999 && text.contains(complaint), "{text}");
        runtime.call("FINALIZE", "c1", &network).ok();
        runtime.call("CHECK", "c1", &network).ok();
    }
    container.command("ip", &["link", "set", "eth0", "address", "02:00:00:00:00:99"]).unwrap();
    let (_, text) = runtime.call("CHECK", "c1", &network).error();
    assert!(text.contains("`eth0` has the address 02:00:00:00:00:99"), "{text}");
    assert_eq!(
        runtime.call("FINALIZE", "c1", &network).error().0,
        999,
        "a MAC may be another plugin's choice"
    );
}

#[test]
fn check_wants_the_agents_word_too() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    network["prevResult"] = runtime.call("ADD", "c1", &network).ok();
    runtime.agent.with(|books| books.ports.clear());
    let (code, text) = runtime.call("CHECK", "c1", &network).error();
    assert!(code == 999 && text.contains("is not as it was attached"), "{text}");
    runtime.call("FINALIZE", "c1", &network).ok();
    runtime.call("CHECK", "c1", &network).ok();
    network["agentSocket"] = json!("/nonexistent/agent.sock");
    assert_eq!(runtime.call("CHECK", "c1", &network).error().0, 11);
    network.as_object_mut().unwrap().remove("prevResult");
    assert_eq!(runtime.call("CHECK", "c1", &network).error().0, 7);
}

#[test]
fn the_runtimes_mac_and_addresses_are_used_by_precedence() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    let arguments = "IgnoreUnknown=1;MAC=02:00:00:00:00:01;IP=10.77.0.50;K8S_POD_NAME=p";
    let result = runtime.call_args("ADD", "c1", arguments, &network).ok();
    assert_eq!(result["interfaces"][2]["mac"], "02:00:00:00:00:01");
    assert_eq!(result["ips"][0]["address"], "10.77.0.50/24");
    runtime.call("DEL", "c1", &network).ok();
    network["args"] = json!({ "cni": { "mac": "02:00:00:00:00:02" } });
    assert_eq!(
        runtime.call_args("ADD", "c1", arguments, &network).ok()["interfaces"][2]["mac"],
        "02:00:00:00:00:02"
    );
    runtime.call("DEL", "c1", &network).ok();
    network["RuntimeConfig"] = json!({ "MAC": "02:00:00:00:00:03", "ips": ["fd77::99/64"] });
    let result = runtime.call("ADD", "c1", &network).ok();
    assert_eq!(result["interfaces"][2]["mac"], "02:00:00:00:00:03");
    assert_eq!(result["ips"][1]["address"], "fd77::99/64");
}

#[test]
fn the_agent_is_told_whose_container_it_is_as_far_as_the_runtime_says() {
    let runtime = Runtime::new();
    let network = runtime.network("n1");
    let whole = "IgnoreUnknown=1;K8S_POD_NAMESPACE=team;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u-1";
    let _containers = ["c1", "c2"].map(|id| runtime.container(id));
    runtime.call_args("ADD", "c1", whole, &network).ok();
    runtime.call_args("ADD", "c2", "IgnoreUnknown=1;K8S_POD_NAME=web", &network).ok();
    let mut pods = runtime.agent.with(|books| {
        let pods = books.ports.values().map(|port| port.pod.clone().unwrap());
        pods.collect::<Vec<_>>()
    });
    pods.sort_by_key(|pod| pod.uid.is_empty());
    let [told, nameless] = pods.as_slice() else { panic!("{pods:?}") };
    assert_eq!([&*told.namespace, &told.name, &told.uid, &told.runtime], ["team", "web", "u-1", ""]);
    // Where the UID is missing, the process that called the plugin is named: this test.
    assert_eq!([&*nameless.name, &nameless.uid], ["web", ""]);
    assert!(!nameless.runtime.is_empty(), "{nameless:?}");
}

#[test]
fn the_metrics_of_a_route_are_applied_and_reported() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let mut network = runtime.network("n1");
    network["ipam"]["routes"] = json!([
        { "dst": "192.0.2.0/24", "mtu": 1300, "advmss": 1200, "priority": 77 },
        { "dst": "198.51.100.0/24", "gw": "10.77.0.1", "table": 100, "scope": 0 },
        { "dst": "203.0.113.0/24", "scope": 253 },
        { "dst": "2001:db8:1::/48", "mtu": 1400, "advmss": 1300, "priority": 7, "table": 100 },
        { "dst": "2001:db8:2::/48", "gw": "fd77::1" },
        { "dst": "2001:db8:2::/48", "gw": "fd77::7" },
    ]);
    let result = runtime.call("ADD", "c1", &network).ok();
    assert_eq!(
        result["routes"][0],
        json!({ "dst": "192.0.2.0/24", "mtu": 1300, "advmss": 1200, "priority": 77 })
    );
    let main = container.command("ip", &["route", "show", "192.0.2.0/24"]).unwrap();
    assert_eq!(main.trim(), "192.0.2.0/24 via 10.77.0.1 dev eth0 metric 77 mtu 1300 advmss 1200");
    let of_table = |family| container.command("ip", &[family, "route", "show", "table", "100"]).unwrap();
    assert_eq!(of_table("-4").trim(), "198.51.100.0/24 via 10.77.0.1 dev eth0");
    let v6 = "2001:db8:1::/48 via fd77::1 dev eth0 metric 7 mtu 1400 advmss 1300 pref medium";
    assert_eq!(of_table("-6").trim(), v6);
    let near = container.command("ip", &["route", "show", "203.0.113.0/24"]).unwrap();
    assert_eq!(near.trim(), "203.0.113.0/24 dev eth0 scope link");
    network["prevResult"] = result;
    // Equal-cost paths, which the kernel lists as one route, are found again too.
    runtime.call("CHECK", "c1", &network).ok();
    for lost in ["-4 route del 203.0.113.0/24", "-6 route del 2001:db8:2::/48 via fd77::7"] {
        container.command("ip", &lost.split(' ').collect::<Vec<_>>()).unwrap();
        assert_eq!(runtime.call("CHECK", "c1", &network).error().0, 999, "{lost}");
        runtime.call("FINALIZE", "c1", &network).ok();
        runtime.call("CHECK", "c1", &network).ok();
    }
}

#[test]
fn metadata_is_there_when_asked_for_and_only_then() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    assert_eq!(runtime.call("ADD", "c1", &network).ok()["interfaces"][2].get("metadata"), None);
    runtime.call("DEL", "c1", &network).ok();
    for (key, value) in [
        ("metadata", json!(true)),
        ("updateExisting", json!(true)),
        ("egressRate", json!(8_000_000)),
        ("egressBurst", json!(80_000)),
    ] {
        network[key] = value;
    }
    for _ in 0..2 {
        let result = runtime.call("ADD", "c1", &network).ok();
        let expected = json!({ "shunt.dev/mode": "bridge", "shunt.dev/programs": [], "shunt.dev/egressRate": 8_000_000 });
        assert_eq!(result["interfaces"][2]["metadata"], expected);
    }
}

#[test]
fn somebody_elses_metadata_passes_through_untouched() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut reference = runtime.network("n1");
    reference["type"] = json!("bridge");
    reference["cniVersion"] = json!("1.0.0");
    reference["ipam"]["type"] = json!("host-local");
    let mut made = runtime.call_reference("bridge", "ADD", "c1", &reference).ok();
    let facts = json!({ "example.org/rack": { "Name": null, "MTU": [1, "x"] } });
    made["interfaces"][2]["metadata"] = facts.clone();
    for (metadata, count) in [(false, 1), (true, 3)] {
        let chained = json!({ "cniVersion": "1.0.0", "name": "n1", "type": "shunt", "bridge": "br0",
            "metadata": metadata, "prevResult": made });
        let said = runtime.call("ADD", "c1", &chained).ok()["interfaces"][2]["metadata"].clone();
        assert_eq!(said["example.org/rack"], facts["example.org/rack"]);
        assert_eq!(said.as_object().unwrap().len(), count, "{said}");
        runtime.call("DEL", "c1", &chained).ok();
    }
    runtime.call_reference("bridge", "DEL", "c1", &reference).ok();
}

#[test]
fn a_runtime_that_insists_may_use_the_nodes_own_namespace() {
    let runtime = Runtime::new();
    let network = json!({ "cniVersion": "1.1.0", "name": "n1", "type": "shunt", "bridge": "br0" });
    runtime.call("INIT", "", &network).ok();
    let before = runtime.inventory();
    let own = runtime.node.path().display().to_string();
    for (insists, code) in [("0", 8), ("", 8), ("TRUE", 0), ("1", 0)] {
        for verb in ["ADD", "DEL"] {
            let mut environment = runtime.environment(verb, "c1");
            environment[2].1.clone_from(&own);
            environment.push(("CNI_NETNS_OVERRIDE", insists.to_owned()));
            let outcome = runtime.call_with(&environment, network.to_string().as_bytes());
            let found = outcome.printed["code"].as_u64().unwrap_or(0);
            assert_eq!(found, code, "{verb} {insists}: {}", outcome.printed);
            assert_eq!(runtime.inventory().has("link eth0"), verb == "ADD" && code == 0, "{verb} {insists}");
        }
    }
    runtime.assert_nothing_new(&before);
}

#[test]
fn init_and_deinit_make_and_take_down_an_idle_network() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let network = runtime.network("n1");
    let before = runtime.inventory();
    for _ in 0..2 {
        runtime.call("INIT", "c1", &network).ok();
    }
    assert!(runtime.inventory().has("link br0"));
    runtime.call("ADD", "c1", &network).ok();
    let (code, text) = runtime.call("DEINIT", "c1", &network).error();
    assert!(code == 11 && text.contains("1 ports"), "{text}");
    runtime.call("DEL", "c1", &network).ok();
    for _ in 0..2 {
        runtime.call("DEINIT", "c1", &network).ok();
    }
    runtime.assert_nothing_new(&before);
    runtime.node.command("ip", &["link", "add", "br0", "type", "bridge"]).unwrap();
    runtime.call("DEINIT", "c1", &network).ok();
    assert!(runtime.inventory().has("link br0"), "another's bridge stays");
}
