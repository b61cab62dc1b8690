//! Connected UDP sockets of the node: whom they talk to was decided when they connected, and the container may be another
//! by now.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde_json::json;
use shunt_lab::{Echo, Namespace, patience, uninterrupted};

use crate::stage::{NODE, Stage, address, mapping};

const PATIENCE: Duration = Duration::from_secs(10);
/// How long a change may take to be followed.
const SOON: Duration = Duration::from_secs(2);

/// What a process of the node may call it.
const NAMES: [&str; 4] = ["127.0.0.1", "::1", NODE[0], NODE[1]];

/// A socket in a namespace that is connected to `to`.
pub(crate) fn connected(inside: &Namespace, to: SocketAddr) -> UdpSocket {
    let any = if to.is_ipv4() { "0.0.0.0" } else { "::" };
    let socket = inside.enter(|| UdpSocket::bind((address(any), 0)).unwrap()).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// What it says comes back.
pub(crate) fn talk(socket: &UdpSocket, what: &str) {
    for round in 0..3u8 {
        socket.send(&[round; 30]).unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut heard = [0; 100];
        let length =
            uninterrupted(|| socket.recv(&mut heard)).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(heard[..length], [round; 30], "{what}");
    }
}

/// It reaches whoever has the host port now, without having been connected anew by its owner.
pub(crate) fn reaches_somebody(socket: &UdpSocket, what: &str) {
    let peer = socket.peer_addr().unwrap_or_else(|error| panic!("{what}: it has its peer: {error}"));
    let begun = Instant::now();
    while ask(socket).is_err() {
        assert!(begun.elapsed() < patience(SOON), "{what}: nobody is reached at {peer}");
    }
    // Answers to what was asked before may still come.
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    while uninterrupted(|| socket.recv(&mut [0; 100])).is_ok() {}
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    talk(socket, what);
}

/// The node refuses what it sends.
pub(crate) fn is_refused(socket: &UdpSocket, what: &str) {
    let begun = Instant::now();
    let told = loop {
        match ask(socket) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => break error,
            _ => assert!(begun.elapsed() < patience(SOON), "{what}: it is told nothing"),
        }
    };
    assert_eq!(told.kind(), ErrorKind::ConnectionRefused, "{what}");
}

/// What comes back for one datagram.
fn ask(socket: &UdpSocket) -> std::io::Result<usize> {
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let answered = socket.send(b"anybody?").and_then(|_| uninterrupted(|| socket.recv(&mut [0; 100])));
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    answered
}

#[test]
fn sockets_that_talked_to_a_container_that_is_gone_are_refused_and_then_talk_to_the_next_one() {
    let mut stage = Stage::new();
    for setting in ["net/ipv4/icmp_ratelimit", "net/ipv6/icmp/ratelimit"] {
        stage.node.namespace().sysctl(setting, "0").unwrap();
    }
    stage.add("one", &[mapping(8080, 7000, "udp"), mapping(8080, 7000, "tcp")]);
    stage.add("other", &[mapping(8090, 7000, "udp")]);
    let echo = stage.echo(0, 7000);
    let _other = stage.echo(1, 7000);
    let node = stage.node.namespace();
    let own = Echo::listen(node, address(NODE[0]), 9000).unwrap();
    let led = NAMES.map(|name| (SocketAddr::new(address(name), 8080), name));
    let led = led.map(|(to, name)| (connected(node, to), name));
    // Sockets that have nothing to do with it: of another host port, past all of them, and of the node's own server.
    let kept = [
        SocketAddr::new(address("127.0.0.1"), 8090),
        SocketAddr::new(stage.sandboxes[1].addresses()[0], 7000),
        own.address(),
    ];
    let kept = kept.map(|to| (connected(node, to), to));
    led.iter().for_each(|(socket, name)| talk(socket, name));
    let known = led.each_ref().map(|(socket, _)| (socket.peer_addr().unwrap(), socket.local_addr().unwrap()));
    drop(echo);
    stage.sandboxes.remove(0).delete(&stage.node, &stage.network).unwrap();
    led.iter().for_each(|(socket, name)| is_refused(socket, name));
    stage.add("two", &[mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(1, 7000);
    for ((socket, name), known) in led.iter().zip(known) {
        reaches_somebody(socket, name);
        assert_eq!((socket.peer_addr().unwrap(), socket.local_addr().unwrap()), known, "{name}");
    }
    for (socket, to) in &kept {
        talk(socket, &to.to_string());
    }
}

#[test]
fn sockets_that_had_connected_to_the_node_before_there_was_a_mapping_come_by_it_afterwards() {
    let mut stage = Stage::new();
    let node = stage.node.namespace();
    let own = Echo::listen(node, address(NODE[0]), 8080).unwrap();
    let early = connected(node, own.address());
    talk(&early, "the node's own server");
    let mute = connected(node, SocketAddr::new(address("::1"), 8080));
    // Neither are theirs who ask for the same number elsewhere, or for the other protocol's.
    let elsewhere = connected(node, SocketAddr::new(address("192.0.2.9"), 8080));
    let unmapped = connected(node, SocketAddr::new(address(NODE[0]), 8081));
    stage.add("one", &[mapping(8080, 7000, "udp"), mapping(8081, 7000, "tcp")]);
    drop(own);
    let _echo = stage.echo(0, 7000);
    reaches_somebody(&early, "the node's address");
    reaches_somebody(&mute, "loopback");
    for untouched in [elsewhere, unmapped] {
        assert!(untouched.take_error().unwrap().is_none());
        assert!(untouched.peer_addr().is_ok(), "it has its peer");
    }
}

/// An IPv6 socket that asked for an IPv4 address is one of IPv6 to the kernel; one that its owner bound keeps its port.
#[test]
fn bound_sockets_and_those_of_both_families_are_connected_anew_as_they_were() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp")]);
    let echo = stage.echo(0, 7000);
    let mapped = stage.node.namespace().enter(|| UdpSocket::bind("[::]:5353").unwrap()).unwrap();
    let to: Ipv4Addr = NODE[0].parse().unwrap();
    mapped.connect((to.to_ipv6_mapped(), 8080)).unwrap();
    mapped.set_read_timeout(Some(PATIENCE)).unwrap();
    talk(&mapped, "before");
    drop(echo);
    stage.sandboxes.remove(0).delete(&stage.node, &stage.network).unwrap();
    stage.add("two", &[mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    reaches_somebody(&mapped, "after");
    assert_eq!(mapped.local_addr().unwrap().port(), 5353);
}

#[test]
fn an_update_and_a_restart_of_the_agent_change_those_of_ended_mappings_only() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp"), mapping(8081, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let node = stage.node.namespace();
    let [kept, ended] = [8080, 8081].map(|port| connected(node, (address("127.0.0.1"), port).into()));
    [&kept, &ended].into_iter().for_each(|socket| talk(socket, "before"));
    let updated = stage.mapped(&[mapping(8080, 7000, "udp")]).with("updateExisting", json!(true));
    updated.add(node, stage.sandboxes[0].container()).unwrap();
    talk(&kept, "its mapping is there as before");
    is_refused(&ended, "its mapping is gone");
    stage.node.agent_mut().kill().unwrap();
    talk(&kept, "without an agent");
    stage.node.restart_agent().unwrap();
    talk(&kept, "with the next agent");
    // The container ends while there is no agent.
    stage.node.agent_mut().kill().unwrap();
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    stage.node.restart_agent().unwrap();
    is_refused(&kept, "the next agent has found it");
}

/// A socket that no process has open, as it is on its way from one to another, stands for those that the agent may not have: their owners are told once.
#[test]
fn a_socket_that_cannot_be_had_is_told_that_its_peer_is_gone() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let to = SocketAddr::new(address("127.0.0.1"), 8080);
    let socket = connected(stage.node.namespace(), to);
    talk(&socket, "before");
    let travelling = Travelling::of(socket);
    stage.sandboxes.remove(0).delete(&stage.node, &stage.network).unwrap();
    stage.add("two", &[mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let begun = Instant::now();
    while !stage.node.agent().log_tail().contains("aborted=1") {
        assert!(begun.elapsed() < patience(SOON), "{}", stage.node.agent().log_tail());
        sleep(Duration::from_millis(20));
    }
    let socket = travelling.arrived();
    let told = socket.take_error().unwrap().expect("it is told");
    assert_eq!(told.kind(), ErrorKind::ConnectionAborted);
    assert!(socket.send(b"x").is_err(), "it has no peer any more");
    socket.connect(to).unwrap();
    talk(&socket, "its owner has connected it anew");
}

/// The agent has no power over files that are another user's, and what a process has open is for its user alone.
#[test]
fn a_socket_of_another_users_process_is_connected_anew() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp")]);
    let echo = stage.echo(0, 7000);
    let socket = connected(stage.node.namespace(), SocketAddr::new(address("127.0.0.1"), 8080));
    talk(&socket, "before");
    let _holder = Holder::of(&socket);
    let travelling = Travelling::of(socket);
    drop(echo);
    stage.sandboxes.remove(0).delete(&stage.node, &stage.network).unwrap();
    stage.add("two", &[mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let socket = travelling.arrived();
    reaches_somebody(&socket, "after");
    assert!(socket.take_error().unwrap().is_none());
}

/// A process of nobody's that has a socket open.
struct Holder(Child);

impl Holder {
    fn of(socket: &UdpSocket) -> Self {
        const NOBODY: u32 = 65534;
        let socket = OwnedFd::from(socket.try_clone().unwrap());
        Self(Command::new("sleep").arg("60").uid(NOBODY).gid(NOBODY).stdin(socket).spawn().unwrap())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A socket in a message that waits to be read.
struct Travelling(UnixStream);

impl Travelling {
    fn of(socket: UdpSocket) -> Self {
        let (from, to) = UnixStream::pair().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        let descriptors = [socket.as_fd()];
        assert!(with.push(SendAncillaryMessage::ScmRights(&descriptors)));
        sendmsg(&from, &[IoSlice::new(b"x")], &mut with, SendFlags::empty()).unwrap();
        Self(to)
    }

    fn arrived(self) -> UdpSocket {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        recvmsg(&self.0, &mut [IoSliceMut::new(&mut [0])], &mut with, RecvFlags::empty()).unwrap();
        let sockets = with.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        UdpSocket::from(sockets.flatten().next().expect("the socket"))
    }
}
