//! The network configurations of the documents are what the plugin takes, and do what they are there for.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use shunt_agent_api::Protocol;

use crate::runtime::Runtime;

/// Pages with configurations.
const PAGES: [&str; 2] = ["README.md", "docs/kubernetes.md"];

/// What a runtime says for each capability.
fn arguments() -> [(&'static str, Value); 4] {
    [
        ("portMappings", json!([{ "hostPort": 8080, "containerPort": 80, "protocol": "tcp" }])),
        ("bandwidth", json!({ "ingressRate": 8_000_000, "ingressBurst": 800_000 })),
        ("ips", json!(["10.88.0.9/16"])),
        ("mac", json!("02:00:00:00:88:09")),
    ]
}

/// The lists of plugins in a page: blocks that begin with the specification's version.
fn lists(page: &str) -> Vec<Value> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let text = fs::read_to_string(path).unwrap();
    let begins = text.match_indices("{ \"cniVersion\"").map(|(at, _)| &text[at..]);
    let read = begins.map(|rest| serde_json::Deserializer::from_str(rest).into_iter().next().unwrap());
    read.map(|list| list.unwrap_or_else(|error| panic!("{page}: {error}"))).collect()
}

/// A plugin's configuration as libcni makes it of a list: with the list's name and version, and the arguments of each capability
/// that it declares.
fn configuration(list: &Value, plugin: &Value) -> Value {
    let mut config = plugin.clone();
    (config["cniVersion"], config["name"]) = (list["cniVersion"].clone(), list["name"].clone());
    for (capability, argument) in arguments() {
        if plugin["capabilities"][capability] == true {
            config["runtimeConfig"][capability] = argument;
        }
    }
    config
}

#[test]
fn the_plugin_takes_every_configuration_of_the_documents() {
    let runtime = Runtime::new();
    let mut seen = 0;
    for list in PAGES.into_iter().flat_map(lists) {
        for plugin in list["plugins"].as_array().unwrap() {
            let config = configuration(&list, plugin);
            let outcome = runtime.call("VALIDATE", "c1", &config);
            assert!(outcome.success, "{config}: {}", outcome.printed);
            seen += 1;
        }
    }
    assert!(seen >= PAGES.len(), "{seen}");
}

#[test]
fn the_readmes_configuration_is_complete_and_each_capability_is_had() {
    let [list] = lists("README.md").try_into().unwrap();
    assert_eq!(list["cniVersion"], "1.1.0");
    let plugin = &list["plugins"][0];
    assert_eq!(plugin["ipMasq"], true);
    for (capability, _) in arguments() {
        assert_eq!(plugin["capabilities"][capability], true, "{capability}");
    }
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let mut config = configuration(&list, plugin);
    // Not among the machine's own leases.
    config["ipam"]["dataDir"] = json!(runtime.leases());
    let result = runtime.call("ADD", "c1", &config).ok();
    assert_eq!(
        (&result["cniVersion"], &result["ips"][0]["address"]),
        (&json!("1.1.0"), &json!("10.88.0.9/16"))
    );
    let link = container.command("ip", &["link", "show", "dev", "eth0"]).unwrap();
    assert!(link.contains("02:00:00:00:88:09"), "{link}");
    let routes = container.command("ip", &["route"]).unwrap();
    assert!(routes.contains("default via 10.88.0.1"), "{routes}");
    runtime.agent.with(|books| {
        let port = books.ports.values().next().unwrap();
        let [mapping] = &*port.mappings else { panic!("{:?}", port.mappings) };
        assert_eq!((mapping.protocol, mapping.host_port, mapping.container_port), (Protocol::Tcp, 8080, 80));
        assert_eq!(port.bandwidth.ingress.map(|limit| limit.rate), Some(8_000_000));
        assert!(!port.masquerade.is_empty(), "{port:?}");
    });
    config["prevResult"] = result;
    assert_eq!(runtime.call("CHECK", "c1", &config).ok(), Value::Null);
    assert_eq!(runtime.call("DEL", "c1", &config).ok(), Value::Null);
}
