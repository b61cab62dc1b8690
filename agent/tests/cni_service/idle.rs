//! What nobody has asked for is not there.

use std::fs;

use shunt_lab::{Lab, Node};

#[test]
fn an_agent_without_the_section_has_no_socket_and_no_thread_for_it() {
    let lab = Lab::new().unwrap();
    let node = Node::start_by(&lab, "node", "").unwrap();
    let id = node.agent().id().unwrap();
    let sockets = fs::read_to_string(format!("/proc/{id}/net/unix")).unwrap();
    let own = sockets.lines().filter(|line| line.contains(lab.root().to_str().unwrap()));
    let names: Vec<_> = own.filter_map(|line| line.split(' ').next_back()).collect();
    assert!(names.iter().all(|name| name.contains("agent.sock")), "{names:?}");
    assert!(!names.is_empty());
    let tasks = fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let called: Vec<_> =
        tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap()).collect();
    assert!(called.iter().all(|name| !name.contains("cni")), "{called:?}");
}
