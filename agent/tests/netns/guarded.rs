//! A restricted port that loses a program is shut, not open: another one stands behind it (`guard`).

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shunt_lab::{Namespace, Sandbox};

use crate::ingress::with_policy;
use crate::intruder::Intruder;
use crate::restrictions::{assert_talk_to_gateway, drops, stage, tap};
use crate::spoofed::{is_lie, lies};
use crate::stage::Stage;
use crate::wire::{BROADCAST, Wire, frame, says};

/// The programs of a restricted port.
const OF_PORTS: [&str; 4] = ["from_container", "to_container", "guard_from", "guard_to"];

/// How long traffic goes on before something is lost, and after it.
const WHILE: Duration = Duration::from_millis(60);

/// Has programs of this name taken away from restricted ports and bridges, in the middle of what `attack` does over and over. There
/// is no agent to put them back meanwhile; then there is one again.
fn lose_under(stage: &mut Stage, name: &str, attack: impl Fn() + Sync) {
    let restricted = stage.node.agent().port("one").unwrap().host_ifname;
    let programs = stage.node.agent().status().unwrap().programs;
    let lost: Vec<_> = programs
        .into_iter()
        .filter(|program| program.name == name && [&restricted, "cni0"].contains(&program.ifname.as_str()))
        .collect();
    assert_eq!(lost.len(), 1, "{name}");
    stage.node.agent_mut().kill().unwrap();
    while_speaking(attack, || {
        std::thread::sleep(WHILE);
        crate::hooks::detach(&stage.node, &lost);
        std::thread::sleep(WHILE);
    });
}

/// Does something while somebody says the same over and over.
pub(crate) fn while_speaking<T>(speak: impl Fn() + Sync, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                speak();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // A speaker that nobody stops would keep a test that fails from ending.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    })
}

/// What the agent has counted at the first container's port since it was shut.
fn unchecked(stage: &Stage) -> u64 {
    drops(stage, "one", "unchecked")
}

#[test]
fn whichever_program_a_container_held_to_its_addresses_loses_its_lies_are_not_heard() {
    let mut stage = stage("ipspoofchk");
    let (liar, to) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    let lies = lies(&stage, &liar, &to);
    for lost in OF_PORTS {
        let before = unchecked(&stage);
        lose_under(&mut stage, lost, || lies.iter().for_each(|lie| liar.send(lie)));
        let is_guard = lost.starts_with("guard");
        if is_guard {
            // Nobody is shut out by a guard that is gone.
            liar.send(&frame(BROADCAST, liar.mac(), "the truth"));
            let seen = to.until(|frame| says(frame, "the truth"));
            assert!(!seen.iter().any(|frame| is_lie(frame, &liar)), "without {lost}: {seen:02x?}");
        }
        stage.node.restart_agent().unwrap();
        liar.send(&frame(to.mac(), liar.mac(), "the last"));
        let seen = to.until(|frame| says(frame, "the last"));
        assert!(!seen.iter().any(|frame| is_lie(frame, &liar)), "without {lost}: {seen:02x?}");
        let shut = unchecked(&stage) - before;
        assert!(shut > 0 || lost != "from_container", "none was kept from getting through");
    }
    stage.assert_talk(0, 1);
    stage.assert_talk(2, 0);
    assert_talk_to_gateway(&stage, &stage.sandboxes[0]);
}

/// A datagram from another bridge to each of the victim's addresses.
fn datagrams(from: &Namespace, to: &[IpAddr]) {
    from.enter(|| {
        for address in to {
            let socket = UdpSocket::bind(SocketAddr::new(unspecified(*address), 0)).unwrap();
            socket.send_to(b"from another bridge", SocketAddr::new(*address, 7300)).unwrap();
        }
    })
    .unwrap();
}

fn unspecified(family: IpAddr) -> IpAddr {
    if family.is_ipv4() { "0.0.0.0".parse().unwrap() } else { "::".parse().unwrap() }
}

#[test]
fn whichever_program_a_container_loses_that_meets_nobody_nobody_reaches_it() {
    let mut stage = with_policy("isolated");
    stage.add("three");
    let other = stage.node.network("others", "cni1", &["10.79.0.0/24", "fd79::/64"]);
    let stranger = Sandbox::start(&stage.lab, &stage.node, &other, "stranger").unwrap();
    stage.node.settle().unwrap();
    let (victim, neighbor) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[2]));
    let addresses = stage.sandboxes[0].addresses();
    let gateway = Wire::tap(stage.node.namespace(), "cni0");
    let intruder = Intruder::enter(&stage);
    for lost in OF_PORTS.into_iter().chain(["from_host"]) {
        let before = unchecked(&stage);
        lose_under(&mut stage, lost, || {
            for destination in [victim.mac(), BROADCAST] {
                intruder.wire.send(&frame(destination, [2, 0xbe, 0xef, 0, 0, 2], "an attack"));
                neighbor.send(&frame(destination, neighbor.mac(), "an attack"));
            }
            victim.send(&frame(neighbor.mac(), victim.mac(), "from the recluse"));
            datagrams(stranger.namespace(), &addresses);
        });
        stage.node.restart_agent().unwrap();
        for (wire, attack) in [(&victim, "an attack"), (&neighbor, "from the recluse")] {
            gateway.send(&frame(wire.mac(), gateway.mac(), "from the node"));
            let seen = wire.until(|frame| says(frame, "from the node"));
            assert!(!seen.iter().any(|frame| says(frame, attack)), "without {lost}: {seen:02x?}");
            let is_routed = |frame: &Vec<u8>| frame.windows(19).any(|text| text == b"from another bridge");
            assert!(!seen.iter().any(is_routed), "without {lost}: {seen:02x?}");
        }
        let shut = unchecked(&stage) - before;
        let was_needed = ["from_container", "to_container"].contains(&lost);
        assert!(shut > 0 || !was_needed, "without {lost} none was kept from getting through");
    }
    for sandbox in &stage.sandboxes {
        assert_talk_to_gateway(&stage, sandbox);
    }
}
