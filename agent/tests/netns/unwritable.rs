//! The agent's state directory is on a disk that is full, or can only be read.

use std::fs;

use shunt_lab::cni::Refusal;
use shunt_lab::{Container, Inventory, Protocol, run};

use crate::stage::Stage;

/// CNI's code for a failure of input or output.
const IO: u64 = 5;

/// Mounts a small file system over the state directory before the first container comes.
fn on_a_small_disk() -> Stage {
    let mut stage = Stage::empty();
    stage.node.agent_mut().terminate().unwrap();
    let state = stage.node.agent().state().to_str().unwrap().to_owned();
    run("mount", &["-t", "tmpfs", "-o", "size=64k", "tmpfs", &state]).unwrap();
    stage.node.restart_agent().unwrap();
    for id in ["one", "two"] {
        stage.add(id);
    }
    stage
}

/// Of a refused ADD nothing is left; what was there serves on, by the fast path, and says why nothing can be added.
fn assert_only_new_ones_are_refused(stage: &Stage) {
    let echo = stage.echo(1, 7000);
    let mut talk = stage.sandboxes[0].talk_to(Protocol::Tcp, &echo).unwrap();
    talk.chat(20, 1000).unwrap();
    let (node, network) = (stage.node.namespace(), &stage.network);
    let before = stage.node.inventory().unwrap();
    let container = Container::create(&stage.lab, "refused").unwrap();
    let inside = Inventory::of_namespace(container.namespace()).unwrap();
    let fast = || stage.node.agent().port("one").unwrap().from.fast;
    let counted = fast();
    for _ in 0..3 {
        let refusal = network.add(node, &container).unwrap_err();
        let code = refusal.downcast_ref::<Refusal>().map(|refusal| refusal.code);
        assert_eq!(code, Some(IO), "{refusal:#}");
        talk.chat(20, 1000).unwrap();
    }
    assert_eq!(stage.node.inventory().unwrap().since(&before), [""; 0]);
    assert_eq!(before.since(&stage.node.inventory().unwrap()), [""; 0]);
    assert_eq!(Inventory::of_namespace(container.namespace()).unwrap().since(&inside), [""; 0]);
    assert!(fast() > counted, "the fast path takes what it took before");
    let status = stage.node.agent().status().unwrap();
    assert!(!status.healthy && status.reasons[0].contains("cannot write"), "{status:?}");
    assert_eq!(status.attachments, 2);
    stage.assert_talk(1, 0);
}

/// Now that there is room, everything goes on, and goes away.
fn assert_recovers(mut stage: Stage) {
    assert!(stage.node.agent().status().unwrap().healthy);
    stage.add("three");
    stage.assert_talk(2, 0);
    for sandbox in &stage.sandboxes {
        sandbox.delete(&stage.node, &stage.network).unwrap();
    }
    assert_eq!(stage.node.agent().status().unwrap().attachments, 0);
    assert_eq!(stage.left(), [""; 0]);
}

#[test]
fn on_a_full_disk_an_add_fails_cleanly_and_traffic_goes_on() {
    let stage = on_a_small_disk();
    let filler = stage.node.agent().state().join("filler");
    fs::write(&filler, vec![1; 1 << 20]).unwrap_err();
    assert_only_new_ones_are_refused(&stage);
    fs::remove_file(filler).unwrap();
    assert_recovers(stage);
}

#[test]
fn on_a_disk_that_can_only_be_read_an_add_fails_cleanly_and_traffic_goes_on() {
    let mut stage = on_a_small_disk();
    let state = stage.node.agent().state().to_str().unwrap().to_owned();
    // Over what the agent has open: a file system that is written to cannot be made read-only by asking.
    run("mount", &["--bind", &state, &state]).unwrap();
    run("mount", &["-o", "remount,bind,ro", &state]).unwrap();
    assert_only_new_ones_are_refused(&stage);
    // Nor is it a reason not to look after those that are there.
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    assert_only_new_ones_are_refused(&stage);
    run("umount", &["--lazy", &state]).unwrap();
    assert_recovers(stage);
}
