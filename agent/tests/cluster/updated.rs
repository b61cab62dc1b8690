//! The agents are replaced one after the other, as a DaemonSet's update does it, under datagrams; and how soon a node has its network.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use shunt_lab::{Namespace, patience};

use crate::pods::two;
use crate::world::World;

/// Datagrams of each flow a second.
const RATE: u32 = 5000;

/// Bytes that a receiver's socket may hold: all of a test's, as it reads them afterwards.
const ROOM: usize = 256 << 20;

/// Until then the agent has its part of the ten seconds from `kubectl apply` to a ready node; the rest is the images' and the kubelet's.
const READY: Duration = Duration::from_secs(5);

/// Sends from one namespace to another until it is told to stop; how many were sent, and how many came.
fn flow(from: &Namespace, to: &Namespace, address: SocketAddr, stop: &AtomicBool) -> (u32, u32) {
    let receiver = to.enter(|| UdpSocket::bind(address).unwrap()).unwrap();
    setsockopt(&receiver.as_fd(), RcvBufForce, &ROOM).unwrap();
    let sender = from.enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    sender.connect(address).unwrap();
    let begun = Instant::now();
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        // Whoever waited for a processor catches up.
        while f64::from(sent) < begun.elapsed().as_secs_f64() * f64::from(RATE) {
            sender.send(&u32::to_be_bytes(sent)).unwrap();
            sent += 1;
        }
        thread::sleep(Duration::from_millis(1));
    }
    receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut came = 0;
    while receiver.recv(&mut [0; 8]).is_ok() {
        came += 1;
    }
    (sent, came)
}

#[test]
fn nothing_is_lost_while_the_agents_are_replaced_under_datagrams() {
    let mut world = two();
    let pods = [world.pod(0, "one"), world.pod(1, "two"), world.pod(0, "three")];
    let to = |pod: usize| SocketAddr::new(world.address(pods[pod], true), 7000);
    let (across, beside) = (to(1), to(2));
    let stop = AtomicBool::new(false);
    let World { sandboxes, members, .. } = &mut world;
    let inside = |pod: usize| sandboxes[pods[pod]].namespace();
    thread::scope(|scope| {
        let flows = [(1, across), (2, beside)];
        let flows = flows.map(|(pod, to)| {
            let (from, into, stop) = (inside(0), inside(pod), &stop);
            scope.spawn(move || flow(from, into, to, stop))
        });
        thread::sleep(Duration::from_millis(500));
        for member in &mut *members {
            member.node.agent_mut().terminate().unwrap();
            thread::sleep(Duration::from_millis(500));
            member.node.restart_agent().unwrap();
            thread::sleep(Duration::from_millis(500));
        }
        stop.store(true, Ordering::Relaxed);
        for flow in flows {
            let (sent, came) = flow.join().unwrap();
            assert!(sent > 2 * RATE, "{sent}");
            assert_eq!((sent, came), (sent, sent), "of {sent} datagrams {came} came");
        }
    });
}

#[test]
fn a_node_has_its_network_soon_after_the_agent_starts_there() {
    let mut world = two();
    let node = &mut world.members[1].node;
    node.agent_mut().terminate().unwrap();
    std::fs::remove_dir_all(node.agent().state()).unwrap();
    std::fs::remove_file(world.members[1].conflist()).unwrap();
    let begun = Instant::now();
    world.server.nodes().patches.clear();
    world.join(1);
    world.members[1].node.restart_agent().unwrap();
    let b = &world.members[1];
    b.until("NetworkUnavailable is cleared", || {
        world.server.nodes().patches.iter().any(|(name, _)| name == "b")
    });
    let took = begun.elapsed();
    assert!(took < patience(READY), "{took:?}");
    assert!(b.written().is_some());
}
