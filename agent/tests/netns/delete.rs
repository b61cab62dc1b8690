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

/// What a DEL mostly takes, of a container that comes and goes.
fn usual_delete(stage: &Stage) -> Duration {
    let guest = shunt_lab::Container::create(&stage.lab, "guest").unwrap();
    let once = |_| {
        let added = stage.network.add(stage.node.namespace(), &guest).unwrap();
        stage.network.del(stage.node.namespace(), &guest, &added.result).unwrap()
    };
    let mut took: Vec<_> = (0..15).map(once).collect();
    took.sort_unstable();
    took[took.len() / 2]
}

#[test]
fn the_last_container_of_a_network_goes_as_quickly_as_any() {
    let compare = || {
        let stage = Stage::set();
        let beside_others = usual_delete(&stage);
        for sandbox in &stage.sandboxes {
            sandbox.delete(&stage.node, &stage.network).unwrap();
        }
        (usual_delete(&stage), beside_others)
    };
    // A grace period that nobody has expedited is 8 ms at least. The machine may have had other things to do.
    let is_quick =
        |(last, beside_others): &(Duration, Duration)| *last < *beside_others + Duration::from_millis(5);
    let mut seen = Vec::new();
    while seen.len() < 3 && !seen.last().is_some_and(is_quick) {
        seen.push(compare());
    }
    assert!(seen.last().is_some_and(is_quick), "alone and beside others: {seen:?}");
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
