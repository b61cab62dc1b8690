//! An agent takes over what another has left.

use aya::programs::TcAttachType::Ingress;
use shunt_agent_api::{BridgePort, ProgramMode};
use shunt_dataplane::abi::{AFFINITY_FAST, AFFINITY_LOOKUP};

use crate::kernel;
use crate::rig::{Rig, eventually};

fn two_attached(mode: &str) -> (Rig, [BridgePort; 2]) {
    let mut rig = Rig::start(mode);
    let ports = [rig.container(2), rig.container(3)];
    for port in &ports {
        rig.attach(port).unwrap();
    }
    (rig, ports)
}

fn are_all(rig: &Rig, mode: ProgramMode) -> bool {
    rig.status().programs.iter().all(|program| program.mode == mode)
}

#[test]
fn a_killed_agents_programs_serve_on_and_the_next_one_has_them_with_their_counters() {
    for mode in ["tcx", "clsact"] {
        let (mut rig, ports) = two_attached(mode);
        rig.exchange(0, 1, 50);
        let before = rig.status();
        rig.kill();
        rig.exchange(0, 1, 50);
        rig.run(mode);
        assert_eq!(rig.status().programs, before.programs, "{mode}");
        let report = &rig.ports()[0];
        assert!(report.from.fast >= 90, "{mode}: {report:?}");
        for port in &ports {
            rig.check(port).unwrap();
            assert_eq!(kernel::port(&rig, port.host.index).unwrap().affinity, AFFINITY_FAST, "{mode}");
        }
    }
}

#[test]
fn an_attachment_made_after_a_restart_shares_no_counters() {
    let (mut rig, ports) = two_attached("auto");
    rig.kill();
    rig.run("auto");
    let third = rig.container(4);
    rig.attach(&third).unwrap();
    let slot = |port: &BridgePort| kernel::port(&rig, port.host.index).unwrap().slot;
    let slots = [slot(&ports[0]), slot(&ports[1]), slot(&third)];
    assert!(slots[0] != slots[1] && slots[1] != slots[2] && slots[0] != slots[2], "{slots:?}");
}

#[test]
fn programs_move_between_filters_and_links_without_a_gap() {
    let (mut rig, ports) = two_attached("clsact");
    for (mode, expected) in
        [("tcx", ProgramMode::Tcx), ("clsact", ProgramMode::Clsact), ("tcx", ProgramMode::Tcx)]
    {
        rig.exchange(0, 1, 5);
        rig.kill();
        rig.run(mode);
        assert!(are_all(&rig, expected));
        let filters = kernel::filters(&rig, "veth2", "ingress");
        assert_eq!(filters.contains("from_container"), expected == ProgramMode::Clsact, "{filters}");
        // The kernel lets go of a link in its own time.
        let links = usize::from(expected == ProgramMode::Tcx);
        eventually("the links are as they should be", || kernel::tcx(&rig, "veth2", Ingress).len() == links);
        for port in &ports {
            rig.check(port).unwrap();
            // Never without a program, so nothing to be learned.
            assert_eq!(kernel::port(&rig, port.host.index).unwrap().affinity, AFFINITY_FAST);
        }
    }
}

#[test]
fn a_port_that_was_without_its_program_learns_which_flows_are_the_kernels() {
    let (mut rig, ports) = two_attached("tcx");
    // So that the node's conntrack sees its own traffic.
    let rule = "table ip t { chain c { type filter hook output priority 0; ct state new accept; }; }";
    rig.node.command("nft", &[rule]).unwrap();
    let socket = rig.node.enter(|| std::net::UdpSocket::bind("10.88.0.1:7777").unwrap()).unwrap();
    socket.send_to(b"a flow that the kernel tracks", "10.88.0.2:8888").unwrap();
    rig.kill();
    std::fs::remove_file(rig.pin("links").join(format!("from_container-{}", ports[0].host.index))).unwrap();
    eventually("the program is gone", || kernel::tcx(&rig, "veth2", Ingress).is_empty());

    rig.run("tcx");
    rig.check(&ports[0]).unwrap();
    assert_eq!(kernel::port(&rig, ports[0].host.index).unwrap().affinity, AFFINITY_LOOKUP);
    assert_eq!(kernel::port(&rig, ports[1].host.index).unwrap().affinity, AFFINITY_FAST);
    let flows = kernel::kernel_flows(&rig);
    assert!(
        flows.iter().any(|flow| flow.protocol == 17 && flow.bridge == ports[0].bridge.index),
        "{flows:?}"
    );
    rig.exchange(0, 1, 5);
}

#[test]
fn what_was_begun_and_not_finished_is_finished_at_the_next_start() {
    let (mut rig, ports) = two_attached("auto");
    rig.kill();
    // As if the agent had died between the first map entry and the last program.
    kernel::remove_station(&rig, ports[1].bridge.index, kernel::container_mac(3));
    rig.run("auto");
    rig.check(&ports[1]).unwrap();
}
