//! DEL: nothing stays, whatever was missing.

use std::time::{Duration, Instant};

use serde_json::Value;
use shunt_lab::Namespace;

use crate::stage::Stage;

/// Waits for `attachments` to be what is left of them: the agent hears of a vanished link from the kernel, not from us.
fn wait_for_attachments(stage: &Stage, attachments: usize) {
    let begun = Instant::now();
    while stage.node.agent().status().unwrap().attachments != attachments {
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "the agent still has {:?}",
            stage.node.agent().ports()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn has_eth0(namespace: &Namespace) -> bool {
    namespace.command("ip", &["link", "show", "eth0"]).is_ok()
}

#[test]
fn a_deleted_container_leaves_nothing_on_the_node() {
    let stage = Stage::set();
    for sandbox in &stage.sandboxes {
        assert!(has_eth0(sandbox.namespace()));
        sandbox.delete(&stage.node, &stage.network).unwrap();
        assert!(!has_eth0(sandbox.namespace()), "the link is to be gone when DEL returns");
    }
    assert_eq!(stage.left(), Vec::<String>::new());
    assert!(stage.node.agent().ports().unwrap().is_empty());
    let fdb = stage.node.agent().ask("fdb").unwrap();
    let containers = fdb.as_array().unwrap().iter().filter(|entry| entry["port"] != "cni0").count();
    assert_eq!(containers, 0, "{fdb}");
}

#[test]
fn a_second_delete_succeeds() {
    let stage = Stage::set();
    for _ in 0..2 {
        stage.sandboxes[0].delete(&stage.node, &stage.network).unwrap();
    }
    stage.assert_talk(1, 2);
}

#[test]
fn a_delete_without_a_previous_result_succeeds() {
    let stage = Stage::set();
    for sandbox in &stage.sandboxes {
        stage.network.del(stage.node.namespace(), sandbox.container(), &Value::Null).unwrap();
    }
    assert_eq!(stage.left(), Vec::<String>::new());
}

#[test]
fn a_container_whose_namespace_is_gone_is_forgotten_and_deleted() {
    let mut stage = Stage::set();
    let victim = stage.sandboxes.remove(0);
    let (id, result) = (victim.id().to_owned(), victim.attachment().result.clone());
    drop(victim);
    wait_for_attachments(&stage, 2);
    // A file of that name, but no namespace: what a runtime finds after a reboot.
    let container = shunt_lab::Container::create(&stage.lab, &id).unwrap();
    stage.network.del(stage.node.namespace(), &container, &result).unwrap();
    assert!(!stage.node.inventory().unwrap().has("lease pods/10.77.0.2"));
    stage.assert_talk(0, 1);
}

#[test]
fn a_delete_with_the_agent_dead_removes_link_and_lease() {
    let mut stage = Stage::set();
    stage.node.agent_mut().kill().unwrap();
    let sandbox = &stage.sandboxes[0];
    let lease = format!("lease pods/{}", sandbox.addresses()[0]);
    assert!(stage.node.inventory().unwrap().has(&lease));
    sandbox.delete(&stage.node, &stage.network).unwrap();
    assert!(!has_eth0(sandbox.namespace()));
    assert!(!stage.node.inventory().unwrap().has(&lease));
}
