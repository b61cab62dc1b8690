//! What nobody has asked for is not there, and what has nothing to do is asleep.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use shunt_lab::{Done, Lab, Node, Threads};

use crate::world::World;

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

/// The agent's thread is woken each second, and the runtime's each fifth.
#[test]
fn an_agent_with_nothing_to_do_is_woken_little_more_than_once_a_second() {
    const SECONDS: u64 = 4;
    let world = World::start();
    let threads = || Threads::of(world.node.agent().id().unwrap()).unwrap();
    // What its start has begun.
    sleep(Duration::from_secs(3));
    let watched = || {
        let before = threads();
        sleep(Duration::from_secs(SECONDS));
        threads().since(&before)
    };
    let is_idle = |done: &Done| (SECONDS..=SECONDS + 3).contains(&done.sleeps);
    // What is looked for each ten seconds, or what a busy machine delays, may fall into one of them.
    let done = [watched(), watched(), watched()];
    assert!(done.iter().any(is_idle), "{done:?}");
}
