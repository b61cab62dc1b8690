//! When an ADD is answered its port works, and an ADD that is refused is answered at once.

use std::time::{Duration, Instant};

use serde_json::Value;
use shunt_lab::Namespace;

use crate::runtime::Runtime;

/// Whether packets get through an interface, by the kernel's word.
fn is_operational(namespace: &Namespace, name: &str) -> bool {
    let told = namespace.command("ip", &["-j", "link", "show", "dev", name]).unwrap();
    let links: Value = serde_json::from_str(&told).unwrap();
    links[0]["operstate"] == "UP"
}

/// The name of the host's end, by a result.
fn host_end(result: &Value) -> &str {
    let interfaces = result["interfaces"].as_array().unwrap();
    let is_it = |interface: &&Value| interface["name"].as_str().unwrap().starts_with("veth");
    interfaces.iter().find(is_it).unwrap()["name"].as_str().unwrap()
}

#[test]
fn a_container_works_when_its_add_is_answered() {
    let runtime = Runtime::new();
    // With the first one the plugin makes the bridge.
    for id in ["c1", "c2"] {
        let container = runtime.container(id);
        let result = runtime.call("ADD", id, &runtime.network("n1")).ok();
        let works = [(&container, "eth0"), (&runtime.node, host_end(&result))]
            .map(|(namespace, name)| is_operational(namespace, name));
        assert_eq!(works, [true; 2], "{id}");
    }
}

#[test]
fn an_add_whose_agent_refuses_is_not_kept_waiting_for_an_interface_that_never_works() {
    let runtime = Runtime::new();
    let (_first, _second) = (runtime.container("c1"), runtime.container("c2"));
    runtime.call("ADD", "c1", &runtime.network("n1")).ok();
    let before = runtime.inventory();
    runtime.agent.with(|books| books.refuse_attach = Some(shunt_agent_api::ErrorKind::Kernel));
    let begun = Instant::now();
    runtime.call("ADD", "c2", &runtime.network("n1")).error();
    assert!(begun.elapsed() < Duration::from_millis(400), "{:?}", begun.elapsed());
    runtime.assert_nothing_new_besides(&before, &["c1"]);
}
