//! The agent is killed again and again under traffic, and nobody notices.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use shunt_lab::{Namespace, uninterrupted};

use crate::stage::Stage;

/// Datagrams a second.
const RATE: u64 = 5_000;

/// A sender that was held up does not send more than this at once, which a veth's queue holds.
const BURST: u64 = 100;

/// Room for everything that a receiver that is held up is sent meanwhile.
const RECEIVE_BUFFER: usize = 64 << 20;

/// How long a connection may stand still on a machine that does.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends numbered datagrams until it is told to stop. How many.
fn send(socket: &UdpSocket, stop: &AtomicBool) -> u64 {
    let begun = Instant::now();
    let (mut sent, mut skipped) = (0u64, 0);
    while !stop.load(Ordering::Relaxed) {
        let due = begun.elapsed().as_millis() as u64 * RATE / 1000;
        let now = (due - skipped).saturating_sub(sent).min(BURST);
        for _ in 0..now {
            socket.send(&sent.to_be_bytes()).unwrap();
            sent += 1;
        }
        skipped = due - sent;
        thread::sleep(Duration::from_millis(1));
    }
    sent
}

/// Receives until nothing has come for a while. How many different datagrams.
fn receive(socket: &UdpSocket) -> u64 {
    let mut seen = Vec::new();
    let mut bytes = [0; 8];
    while uninterrupted(|| socket.recv(&mut bytes)).is_ok() {
        let number = u64::from_be_bytes(bytes) as usize;
        seen.resize(seen.len().max(number + 1), false);
        seen[number] = true;
    }
    seen.iter().filter(|seen| **seen).count() as u64
}

/// Has everything echoed that it sends, until it is told to stop. How many bytes.
fn stream(client: &Namespace, echo: SocketAddr, stop: &AtomicBool) -> u64 {
    let mut stream = client.enter(|| TcpStream::connect_timeout(&echo, PATIENCE).unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut echoed = 0;
    while !stop.load(Ordering::Relaxed) {
        let sent: Vec<u8> = (0..16_384u64).map(|at| ((echoed + at) % 251) as u8).collect();
        let mut heard = vec![0; sent.len()];
        stream.write_all(&sent).unwrap();
        stream.read_exact(&mut heard).unwrap();
        assert!(heard == sent, "the stream is altered after {echoed} bytes");
        echoed += sent.len() as u64;
    }
    echoed
}

/// Kills and restarts the agent `times` under traffic between three containers; `meanwhile` is done while it is dead.
fn kill_under_traffic(stage: &mut Stage, times: u32, meanwhile: impl Fn(&Path)) {
    let echo = stage.echo(1, 7000);
    let server = stage.sandboxes[2].addresses()[0];
    let server = stage.sandboxes[2].namespace().enter(|| UdpSocket::bind((server, 7300)).unwrap()).unwrap();
    setsockopt(&server.as_fd(), sockopt::RcvBufForce, &RECEIVE_BUFFER).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let client = stage.sandboxes[0].namespace().enter(|| UdpSocket::bind(("0.0.0.0", 0)).unwrap()).unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    // Neighbours are resolved before anything is counted.
    client.send(&[0; 8]).unwrap();
    uninterrupted(|| server.recv(&mut [0; 8])).unwrap();

    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    let Stage { sandboxes, node, .. } = stage;
    let namespace = sandboxes[0].namespace();
    let (sent, received, echoed) = thread::scope(|scope| {
        let sending = scope.spawn(|| send(&client, &stop));
        let receiving = scope.spawn(|| receive(&server));
        let streaming = scope.spawn(|| stream(namespace, echo.address(), &stop));
        let killed = (0..times).try_for_each(|_| {
            node.agent_mut().kill()?;
            thread::sleep(Duration::from_millis(50));
            meanwhile(node.agent().bpffs());
            node.restart_agent()
        });
        stop.store(true, Ordering::Relaxed);
        let outcome = (sending.join(), receiving.join(), streaming.join());
        killed.unwrap();
        (outcome.0.unwrap(), outcome.1.unwrap(), outcome.2.unwrap())
    });
    let (took, lost) = (begun.elapsed(), sent - received);
    println!("{times} kills in {took:.1?}: {sent} datagrams, {lost} lost; {echoed} bytes of one stream");
    assert!(sent > RATE && echoed > 0, "{sent} datagrams and {echoed} bytes are no traffic");
    assert_eq!(lost, 0);
    let status = stage.node.agent().status().unwrap();
    assert!(status.healthy && status.attachments == 3, "{status:?}");
}

/// Ids of the attached programs.
fn ids(stage: &Stage) -> BTreeSet<u32> {
    stage.node.agent().status().unwrap().programs.into_iter().map(|program| program.id).collect()
}

#[test]
#[ignore = "wants a machine to itself: --ignored"]
fn an_agent_that_is_killed_twenty_times_under_traffic_costs_no_packet_and_no_connection() {
    let mut stage = Stage::set();
    let before = ids(&stage);
    kill_under_traffic(&mut stage, 20, |_| {});
    assert_eq!(ids(&stage), before);
}

/// An agent takes programs that are the same as its own for its own, by their pins; without the pins it has to replace
/// every one, as another build has to.
#[test]
#[ignore = "wants a machine to itself: --ignored"]
fn programs_that_are_replaced_under_traffic_cost_no_packet_and_no_connection() {
    let mut stage = Stage::set();
    let before = ids(&stage);
    kill_under_traffic(&mut stage, 5, |pins| {
        for pin in fs::read_dir(pins.join("v1/programs")).unwrap() {
            fs::remove_file(pin.unwrap().path()).unwrap();
        }
    });
    assert!(ids(&stage).is_disjoint(&before), "every program is another one");
}
