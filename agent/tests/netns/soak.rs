//! The agent is killed again and again under traffic, and nobody notices.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use shunt_lab::{Lacking, Namespace, skip, uninterrupted};

use crate::stage::Stage;

/// Datagrams a second.
const RATE: u64 = 5_000;

/// A sender that was held up does not send more than this at once: half of what a processor's backlog holds.
const BURST: u64 = 500;

/// Between two pieces of the stream. At full tilt it would leave the datagrams' sender too little of two processors.
const PAUSE: Duration = Duration::from_millis(1);

/// Room for everything that a receiver that is held up is sent meanwhile.
const RECEIVE_BUFFER: usize = 64 << 20;

/// Traffic goes on for as long under the last agent.
const AFTERWARDS: Duration = Duration::from_millis(500);

/// Nothing comes any more.
const SILENCE: Duration = Duration::from_secs(5);

/// How long a connection may stand still on a machine that does.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends numbered datagrams until it is told to stop. How many, and for how long.
fn send(socket: &UdpSocket, stop: &AtomicBool) -> (u64, Duration) {
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
    (sent, begun.elapsed())
}

/// Receives until everything has come, or nothing does any more although nothing is sent. How many different datagrams;
/// how many were `sent` is not known (`u64::MAX`) while they are being sent.
fn receive(socket: &UdpSocket, sent: &AtomicU64) -> u64 {
    let (mut seen, mut count) = (Vec::new(), 0);
    let mut bytes = [0; 8];
    while count < sent.load(Ordering::Relaxed) {
        if uninterrupted(|| socket.recv(&mut bytes)).is_err() {
            if sent.load(Ordering::Relaxed) == u64::MAX {
                continue;
            }
            break;
        }
        let number = u64::from_be_bytes(bytes) as usize;
        seen.resize(seen.len().max(number + 1), false);
        count += u64::from(!std::mem::replace(&mut seen[number], true));
    }
    count
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
        thread::sleep(PAUSE);
    }
    echoed
}

/// What became of the traffic.
struct Outcome {
    sent: u64,
    /// The receiver's silence at the end is no part of it.
    sending: Duration,
    lost: u64,
    echoed: u64,
}

/// What processors of this machine have thrown away because their backlog was full, on whatever interface
/// (net/core/net-procfs.c).
fn overflown() -> u64 {
    let table = fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let dropped = table.lines().filter_map(|line| u64::from_str_radix(line.split(' ').nth(1)?, 16).ok());
    dropped.sum()
}

/// Kills and restarts the agent `times` under traffic between three containers; `meanwhile` is done while it is dead.
/// Done again, three times at most, where the machine itself has thrown packets away.
fn kill_under_traffic(stage: &mut Stage, times: u32, meanwhile: impl Fn(&Path)) {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let before = overflown();
        let Outcome { sent, sending, lost, echoed } = kill_and_watch(stage, times, &meanwhile);
        let overflown = overflown() - before;
        println!(
            "{times} kills in {sending:.1?}: {sent} datagrams ({:.0} a second), {lost} lost ({overflown} of any by full backlogs); \
             {echoed} bytes of one stream",
            sent as f64 / sending.as_secs_f64()
        );
        assert!(sent > RATE / 2 && echoed > 0, "{sent} datagrams and {echoed} bytes are no traffic");
        if lost > 0 && overflown > 0 && attempts < 3 {
            continue;
        }
        assert_eq!(lost, 0);
        break;
    }
    let status = stage.node.agent().status().unwrap();
    assert!(status.healthy && status.attachments == 3, "{status:?}");
}

fn kill_and_watch(stage: &mut Stage, times: u32, meanwhile: &impl Fn(&Path)) -> Outcome {
    let echo = stage.echo(1, 7000);
    let server = stage.sandboxes[2].addresses()[0];
    let server = stage.sandboxes[2].namespace().enter(|| UdpSocket::bind((server, 7300)).unwrap()).unwrap();
    setsockopt(&server.as_fd(), sockopt::RcvBufForce, &RECEIVE_BUFFER).unwrap();
    server.set_read_timeout(Some(SILENCE)).unwrap();
    let client = stage.sandboxes[0].namespace().enter(|| UdpSocket::bind(("0.0.0.0", 0)).unwrap()).unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    // Neighbours are resolved before anything is counted.
    client.send(&[0; 8]).unwrap();
    uninterrupted(|| server.recv(&mut [0; 8])).unwrap();

    let stop = AtomicBool::new(false);
    let total = AtomicU64::new(u64::MAX);
    let Stage { sandboxes, node, .. } = stage;
    let namespace = sandboxes[0].namespace();
    let ((sent, sending), received, echoed) = thread::scope(|scope| {
        let sending = scope.spawn(|| send(&client, &stop));
        let receiving = scope.spawn(|| receive(&server, &total));
        let streaming = scope.spawn(|| stream(namespace, echo.address(), &stop));
        let killed = (0..times).try_for_each(|_| {
            node.agent_mut().kill()?;
            thread::sleep(Duration::from_millis(50));
            meanwhile(node.agent().bpffs());
            node.restart_agent()
        });
        thread::sleep(AFTERWARDS);
        stop.store(true, Ordering::Relaxed);
        let sent = sending.join();
        total.store(sent.as_ref().map_or(0, |&(sent, _)| sent), Ordering::Relaxed);
        let outcome = (receiving.join(), streaming.join());
        killed.unwrap();
        (sent.unwrap(), outcome.0.unwrap(), outcome.1.unwrap())
    });
    Outcome { sent, sending, lost: sent - received, echoed }
}

/// Ids of the attached programs.
fn ids(stage: &Stage) -> BTreeSet<u32> {
    stage.node.agent().status().unwrap().programs.into_iter().map(|program| program.id).collect()
}

#[test]
fn an_agent_that_is_killed_under_traffic_costs_no_packet_and_no_connection() {
    let mut stage = Stage::set();
    let before = ids(&stage);
    kill_under_traffic(&mut stage, 5, |_| {});
    assert_eq!(ids(&stage), before);
}

#[test]
#[ignore = "20 kills take half a minute: xtask test --long"]
fn an_agent_that_is_killed_twenty_times_under_traffic_costs_no_packet_and_no_connection() {
    let mut stage = Stage::set();
    let before = ids(&stage);
    kill_under_traffic(&mut stage, 20, |_| {});
    assert_eq!(ids(&stage), before);
}

/// An agent takes programs that are the same as its own for its own, by their pins; without the pins it has to replace
/// every one, as another build has to.
#[test]
fn programs_that_are_replaced_under_traffic_cost_no_packet_and_no_connection() {
    let mut stage = Stage::set();
    let before = ids(&stage);
    kill_under_traffic(&mut stage, 3, |pins| {
        for pin in fs::read_dir(pins.join("v2/programs")).unwrap() {
            fs::remove_file(pin.unwrap().path()).unwrap();
        }
    });
    assert!(ids(&stage).is_disjoint(&before), "every program is another one");
}

/// Another build with another ABI: programs and maps of both are at work until each link has been moved.
#[test]
fn an_upgrade_to_another_abi_under_traffic_costs_no_packet_and_no_connection() {
    let mut stage = Stage::set();
    let before = ids(&stage);
    kill_under_traffic(&mut stage, 3, |pins| {
        // What an agent of an older version would have left.
        fs::rename(pins.join("v2"), pins.join("v0")).unwrap();
    });
    assert!(ids(&stage).is_disjoint(&before), "every program is another one");
    let pins = stage.node.agent().bpffs();
    assert!(!pins.join("v0").exists() && pins.join("v2").exists());
}

/// Two builds in earnest, there and, if the other's ABI is the same, back.
#[test]
#[ignore = "another build's shunt-agent is named by SHUNT_OTHER_AGENT: xtask test --long"]
fn an_upgrade_to_another_build_under_traffic_costs_no_packet_and_no_connection() {
    let Some(other) = std::env::var_os("SHUNT_OTHER_AGENT") else {
        return skip(Lacking::Build("another shunt-agent, named by SHUNT_OTHER_AGENT,"));
    };
    let mut stage = Stage::set();
    let (before, abi) = (ids(&stage), stage.node.agent().status().unwrap().abi);
    let ours = stage.node.agent_mut().replace_program(other.into());
    kill_under_traffic(&mut stage, 1, |_| {});
    let after = stage.node.agent().status().unwrap();
    println!("ABI {abi} was followed by ABI {}", after.abi);
    assert!(ids(&stage).is_disjoint(&before), "every program is another one");
    if after.abi == abi {
        let between = ids(&stage);
        stage.node.agent_mut().replace_program(ours);
        kill_under_traffic(&mut stage, 1, |_| {});
        assert!(ids(&stage).is_disjoint(&between), "every program is another one");
    }
}
