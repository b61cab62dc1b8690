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
    // The plugin is stopped somewhere on its way: later and later, until it is quicker than its killer.
    for delay in (0..60).map(|step| step * 100) {
        let script = format!(
            "echo '{network}' | {} & pid=$!; busybox usleep {delay}; kill -9 $pid 2>/dev/null; wait",
            env!("CARGO_BIN_EXE_shunt")
        );
        let environment = runtime.environment("ADD", "c1");
        let shell = std::path::Path::new("/bin/sh");
        let mut command = std::process::Command::new(shell);
        let socket = runtime.agent.socket().to_owned();
        command.args(["-c", &script]).envs(environment).env("SHUNT_AGENT_SOCKET", socket);
        command.stdout(std::process::Stdio::null());
        runtime.node.enter(|| command.status().unwrap()).unwrap();
        runtime.call("DEL", "c1", &network).ok();
        assert!(!runtime.inventory().has("link veth"), "after {delay} µs");
    }
    runtime.node.command("ip", &["address", "flush", "dev", "br0"]).unwrap();
    runtime.assert_nothing_new(&before);
}
