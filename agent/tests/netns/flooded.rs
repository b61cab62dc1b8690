//! A container that floods: others' masqueraded connections stay, and what it has too many of the kernel masquerades.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use shunt_lab::{Conversation, Echo, Protocol, uninterrupted};

use crate::masquerade::{NODE, OUTSIDE, World, any};

#[test]
fn others_idle_connections_outlive_a_flood_and_the_kernel_masquerades_what_is_too_much() {
    let mut world = World::with(&["--max-flows", "2048"]);
    ["flood", "idle"].into_iter().for_each(|id| world.add(id));
    world.node.settle().unwrap();
    let [flood, idle] = [0, 1].map(|index| world.sandboxes[index].namespace());
    for (outside, node) in OUTSIDE.into_iter().zip(NODE) {
        let outside = outside.parse().unwrap();
        let echo = Echo::listen(&world.outside, outside, 7000).unwrap();
        let mut talk = Conversation::open(idle, Protocol::Tcp, echo.address()).unwrap();
        talk.chat(2, 100).unwrap();
        let silent = world.outside.enter(|| UdpSocket::bind((outside, 7001)).unwrap()).unwrap();
        silent.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let send = |question: &[u8]| {
            let socket = UdpSocket::bind((any(outside), 0)).unwrap();
            // A machine that is short of memory for a moment refuses packets.
            while socket.send_to(question, SocketAddr::new(outside, 7001)).is_err() {}
        };
        flood.enter(|| (0..10_000).for_each(|_| send(b"x"))).unwrap();
        silent.set_nonblocking(true).unwrap();
        let mut heard = 0;
        while let Ok((_, from)) = silent.recv_from(&mut [0; 16]) {
            assert_eq!(from.ip().to_string(), node, "whoever masquerades it");
            heard += 1;
        }
        assert!(heard > 0, "a socket's buffer is full at some time");
        silent.set_nonblocking(false).unwrap();
        flood.enter(|| send(b"the last")).unwrap();
        let mut buffer = [0; 16];
        let (length, from) = uninterrupted(|| silent.recv_from(&mut buffer)).unwrap();
        assert_eq!((&buffer[..length], from.ip().to_string().as_str()), (&b"the last"[..], node));
        talk.chat(2, 100).unwrap_or_else(|error| panic!("after 10,000 of another container's: {error:#}"));
    }
    let ports = world.node.agent().ports().unwrap();
    let of = |id: &str| ports.iter().find(|port| port.container == id).unwrap().from.kernel;
    assert!(of("flood") > 5_000, "the kernel had {} of them", of("flood"));
}
