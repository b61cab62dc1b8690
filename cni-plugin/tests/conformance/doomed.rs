//! "Doomed delete": DEL succeeds whatever became of the ADD, the agent, the namespace or the configuration.

use serde_json::{Value, json};
use shunt_agent_api::ErrorKind;

use crate::runtime::Runtime;

#[test]
fn del_without_an_add_succeeds() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    assert_eq!(runtime.call("DEL", "c1", &runtime.network("n1")).ok(), Value::Null);
    assert_eq!(runtime.call("DEL", "never-born", &runtime.network("n1")).ok(), Value::Null);
    runtime.assert_nothing_new(&before);
}

#[test]
fn del_after_a_failed_add_succeeds() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    runtime.agent.with(|books| books.refuse_attach = Some(ErrorKind::Kernel));
    runtime.call("ADD", "c1", &runtime.network("n1")).error();
    runtime.call("DEL", "c1", &runtime.network("n1")).ok();
    runtime.assert_nothing_new(&before);
}

#[test]
fn del_with_the_agent_down_takes_the_link_and_the_address() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let mut network = runtime.network("n1");
    runtime.call("ADD", "c1", &network).ok();
    network["agentSocket"] = json!("/nonexistent/agent.sock");
    runtime.call("DEL", "c1", &network).ok();
    assert!(!container.command("ip", &["link"]).unwrap().contains("eth0"));
    assert!(!runtime.inventory().has("link veth") && !runtime.inventory().has("lease n1/10."));
}

#[test]
fn del_without_a_namespace_takes_the_host_end_too() {
    for agent in [true, false] {
        let runtime = Runtime::new();
        let _container = runtime.container("c1");
        let mut network = runtime.network("n1");
        runtime.call("ADD", "c1", &network).ok();
        if !agent {
            network["agentSocket"] = json!("/nonexistent/agent.sock");
        }
        let mut environment = runtime.environment("DEL", "c1");
        environment[2].1 = String::new();
        for _ in 0..2 {
            runtime.call_with(&environment, network.to_string().as_bytes()).ok();
        }
        assert!(!runtime.inventory().has("link veth"), "agent {agent}");
        assert!(!runtime.inventory().has("lease n1/10."), "agent {agent}");
    }
}

#[test]
fn del_after_the_namespace_has_gone_succeeds() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let network = runtime.network("n1");
    runtime.call("ADD", "c1", &network).ok();
    drop(container);
    runtime.call("DEL", "c1", &network).ok();
    runtime.agent.with(|books| assert!(books.ports.is_empty()));
    assert!(!runtime.inventory().has("lease n1/10."));
}

#[test]
fn del_under_a_new_network_name_succeeds() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    runtime.call("ADD", "c1", &runtime.network("old")).ok();
    runtime.call("DEL", "c1", &runtime.network("new")).ok();
    let mut stale = runtime.network("old");
    stale["cni.dev/valid-attachments"] = json!([]);
    runtime.call("GC", "", &stale).ok();
    assert!(!runtime.inventory().has("link veth") && !runtime.inventory().has("lease old/10."));
}

#[test]
fn a_killed_add_leaves_nothing_that_del_cannot_take() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let network = runtime.network("n1");
    runtime.call("INIT", "c1", &network).ok();
    let before = runtime.inventory();
    runtime.kill("ADD", &network, |delay| {
        runtime.call("DEL", "c1", &network).ok();
        assert!(!runtime.inventory().has("link veth"), "after {delay} µs");
    });
    runtime.node.command("ip", &["address", "flush", "dev", "br0"]).unwrap();
    runtime.assert_nothing_new(&before);
}

#[test]
fn del_succeeds_after_every_add_that_the_configuration_kept_from_working() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    let cases: [(&str, Value); 16] = [
        ("mtu", json!("1500")),
        ("mtu", json!(-1)),
        ("isGateway", json!("yes")),
        ("vlan", json!(70000)),
        ("vlan", json!(4095)),
        ("dns", json!(5)),
        ("args", json!(5)),
        ("prevResult", json!("")),
        ("prevResult", json!({ "cniVersion": "7.0.0" })),
        ("runtimeConfig", json!({ "portMappings": [{ "hostPort": 70000, "containerPort": 80 }] })),
        ("runtimeConfig", json!({ "bandwidth": { "ingressRate": -1 } })),
        ("ipam", json!({ "type": "no-such-ipam" })),
        ("ipam", json!({ "type": "../bridge" })),
        ("ipam", json!({ "type": "shunt-ipam", "ranges": [[{ "subnet": "10.0.0.1/24" }]] })),
        ("ipam", json!({ "type": "shunt-ipam", "dataDir": 5 })),
        ("ipam", json!("shunt-ipam")),
    ];
    for (key, value) in cases {
        let mut network = runtime.network("n1");
        network[key] = value.clone();
        let (code, text) = runtime.call("ADD", "c1", &network).error();
        assert!(matches!(code, 6 | 7), "{key}={value}: {code} {text}");
        for netns in ["there", ""] {
            let mut environment = runtime.environment("DEL", "c1");
            environment.retain(|(name, _)| *name != "CNI_NETNS" || netns == "there");
            runtime.call_with(&environment, network.to_string().as_bytes()).ok();
        }
        runtime.assert_nothing_new(&before);
    }
}

#[test]
fn del_takes_an_attachment_whose_configuration_was_broken_since() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let mut network = runtime.network("n1");
    runtime.call("ADD", "c1", &network).ok();
    network["mtu"] = json!("1500");
    network["runtimeConfig"] = json!({ "portMappings": 5 });
    runtime.call("DEL", "c1", &network).ok();
    assert!(!container.command("ip", &["link"]).unwrap().contains("eth0"));
    assert!(!runtime.inventory().has("lease n1/10."));
    runtime.agent.with(|books| assert!(books.ports.is_empty()));
    // An IPAM that is gone may hold addresses of it: that is told, once.
    runtime.call("ADD", "c1", &runtime.network("n1")).ok();
    network["ipam"]["type"] = json!("no-such-ipam");
    assert_eq!(runtime.call("DEL", "c1", &network).error().0, 7);
    runtime.call("DEL", "c1", &runtime.network("n1")).ok();
}

/// As between the two halves of an upgrade.
#[test]
fn an_agent_that_speaks_another_version_has_its_code_and_leaves_nothing() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    runtime.agent.with(|books| books.speaks = Some(shunt_agent_api::VERSION + 1));
    let (code, text) = runtime.call("ADD", "c1", &runtime.network("n1")).error();
    assert_eq!(code, 11, "{text}");
    runtime.assert_nothing_new(&before);
    runtime.call("DEL", "c1", &runtime.network("n1")).ok();
    runtime.assert_nothing_new(&before);
}

#[test]
fn del_does_without_an_agent_that_is_stopping_or_of_another_version() {
    for (kind, code) in [(ErrorKind::Unavailable, 0), (ErrorKind::Version, 0), (ErrorKind::State, 5)] {
        let runtime = Runtime::new();
        let container = runtime.container("c1");
        let network = runtime.network("n1");
        runtime.call("ADD", "c1", &network).ok();
        runtime.agent.with(|books| books.refuse_detach = Some(kind));
        let outcome = runtime.call("DEL", "c1", &network);
        assert_eq!(outcome.printed["code"].as_u64().unwrap_or(0), code, "{kind:?}: {}", outcome.printed);
        assert!(!container.command("ip", &["link"]).unwrap().contains("eth0"), "{kind:?}");
        assert!(!runtime.inventory().has("lease n1/10."), "{kind:?}");
    }
}
